"""The gradient, or the matrix it was multiplied with, is transposed.

## What was seen

The analytic gradient is the numeric one with its last two dims exchanged; or it has the
transposed shape; or it is what the transposed Jacobian gives: `W @ g` where `W.T @ g` is due.

## Why it happens

The gradient of `a @ b` is `g @ b.T` for a and `a.T @ g` for b. With square matrices a forgotten
`.T` has the right shape and goes unnoticed; so does a gradient written for row vectors and used
with column vectors.

## How to mend it

Transpose the operand that the sentence is about. Test with matrices that are neither square nor
symmetric: then most of these faults are errors of shape at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kael.checker.evidence import Evidence, View
from kael.checker.model import Diagnosis, Floats

RANK = 360


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is right with two dims exchanged, or right by the transposed Jacobian."""
    for view in evidence.given:
        whole = view.whole
        turned = whole.ndim >= 2 and whole.shape != evidence.shape
        if turned and np.swapaxes(whole, -1, -2).shape == evidence.shape and evidence.complete:
            straight = np.swapaxes(whole, -1, -2).reshape(-1)[view.entries]
            if (np.abs(straight - view.right) <= view.slack(view.right) + 1e-300).all():
                shape = list(whole.shape)
                return evidence.tell("transposed", f"is transposed: its shape is {shape}")
    rules: tuple[tuple[Callable[[View], Floats | None], str], ...] = (
        (lambda view: _swapped_dims(view, evidence), "is transposed"),
        (
            lambda view: _turned_jacobian(view, evidence),
            "is multiplied by a matrix that should be transposed",
        ),
        (lambda view: _turned_upstream(view, evidence), "takes the upstream gradient transposed"),
    )
    for rule, told in rules:
        if evidence.fits(rule):
            return evidence.tell("transposed", told)
    return None


def _swapped_dims(view: View, evidence: Evidence) -> Floats | None:
    shape = evidence.shape
    if len(shape) < 2 or shape[-1] != shape[-2] or len(view.entries) != evidence.size:
        return None
    return np.swapaxes(view.right.reshape(shape), -1, -2).reshape(-1)


def _turned_jacobian(view: View, evidence: Evidence) -> Floats | None:
    shape, out = evidence.shape, evidence.problem.output_shape
    whole = len(view.entries) == evidence.size and view.point.outputs is None
    if not shape or not out or shape[-1] != out[-1] or not whole:
        return None
    m = shape[-1]
    jacobian = view.point.slopes.reshape(-1, m, view.point.slopes.shape[1] // m, m)
    turned = jacobian.transpose(0, 3, 2, 1).reshape(view.point.slopes.shape)
    return np.asarray(turned @ view.upstream)


def _turned_upstream(view: View, evidence: Evidence) -> Floats | None:
    out = evidence.problem.output_shape
    if len(out) < 2 or out[-1] != out[-2]:
        return None
    return view.under(np.swapaxes(view.upstream.reshape(out), -1, -2).reshape(-1))
