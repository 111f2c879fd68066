"""The gradient is not summed over a dim that was broadcast.

## What was seen

The gradient has the shape of the output where the smaller shape of the input is due; or it is the
share of one slice of the output, where the sum over all of them is due.

## Why it happens

Where an input of shape [3] meets one of shape [2, 3], each of its entries is used twice, and both
uses send a gradient back: they have to be added. A backward that returns `g * other` has forgotten
the sum; one that returns `g[0] * other[0]` has the right shape and only a part of the gradient.

## How to mend it

`kael.autograd.sum_to_shape(gradient, x.shape)` undoes any broadcasting.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kael.checker.evidence import Evidence, View
from kael.checker.model import Array, Diagnosis
from kael.engine.node import sum_to_shape

RANK = 50


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed has the output's shape, or is right for one slice of a broadcast dim alone."""
    for view in evidence.given:
        if view.whole.shape != evidence.shape and _sums_to(view.whole, evidence.shape):
            summed = np.asarray(sum_to_shape(view.whole, evidence.shape)).reshape(-1)[view.entries]
            if (np.abs(summed - view.right) <= view.slack(view.right) + 1e-300).all():
                told = (
                    f"is not summed over the broadcast: its shape is {list(view.whole.shape)}, "
                    f"that of the input {list(evidence.shape)}"
                )
                return evidence.tell("not-summed", told, "sum_to_shape(gradient, x.shape)")
    for mask, told in _slices(evidence):
        if evidence.fits(lambda view, mask=mask: _of_slice(view, mask)):  # type: ignore[misc]
            return evidence.tell("not-summed", told, "sum over the dims that were broadcast")
    return None


def _sums_to(whole: Array, shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(whole.shape, shape) == whole.shape
    except ValueError:
        return False


def _slices(evidence: Evidence) -> Iterator[tuple[Array, str]]:
    out, shape = evidence.problem.output_shape, evidence.shape
    if len(out) < len(shape):
        return
    aligned = (1,) * (len(out) - len(shape)) + shape
    if any(a not in (1, b) for a, b in zip(aligned, out, strict=True)):
        return
    for dim, (a, b) in enumerate(zip(aligned, out, strict=True)):
        if a != 1 or b < 2:
            continue
        for at, which in ((0, "first"), (b - 1, "last")):
            mask = np.zeros(out)
            mask[(slice(None),) * dim + (at,)] = 1
            told = f"is not summed over dim {dim} of the output: it is that of the {which} slice"
            yield mask.reshape(-1), told


def _of_slice(view: View, mask: Array) -> Array:
    return view.under(view.upstream * mask)
