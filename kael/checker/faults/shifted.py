"""The gradient stands some places beside where it belongs.

## What was seen

The analytic gradient is the numeric one moved along a dim, by the number of places that the
sentence names; what moved in at the end is zero, or what fell out at the other.

## Why it happens

The backward of a slice, a pad, a shift, a difference or a convolution writes into the wrong
positions: off by one at the start of a slice, or rolled the same way as the forward where the
opposite way is due.

## How to mend it

For `x[a:b]` the gradient goes to `grad[a:b]`; for `roll(x, k)` it is `roll(g, -k)`.
"""

from __future__ import annotations

import numpy as np

from kael.checker.evidence import Evidence, View
from kael.checker.model import Array, Diagnosis, Floats

RANK = 350

MOST = 8


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is right, or right of what arrived, moved along a dim."""
    if not evidence.complete or any(not view.claimed.any() for view in evidence.views):
        # Zeros are what is left of many a shift.
        return None
    for dim, length in enumerate(evidence.shape):
        for by in _places(length):
            for fill in (True, False):
                if evidence.fits(lambda view: _moved(view, evidence, dim, by, fill)):  # noqa: B023
                    return evidence.tell("shifted", _told(dim, by, evidence))
    for dim, length in enumerate(evidence.problem.output_shape):
        for by in _places(length):
            for fill in (True, False):
                if evidence.fits(lambda view: _above(view, evidence, dim, by, fill)):  # noqa: B023
                    told = "takes the upstream gradient shifted"
                    return evidence.tell("shifted", f"{told} by {by:+d} along dim {dim}")
    return None


def _places(length: int) -> list[int]:
    if length < 3:
        return []
    return [sign * k for k in range(1, min(length - 1, MOST) + 1) for sign in (1, -1)]


def _told(dim: int, by: int, evidence: Evidence) -> str:
    along = f" along dim {dim}" if len(evidence.shape) > 1 else ""
    return f"is shifted by {by:+d} place{'s' * (abs(by) != 1)}{along}"


def _moved(view: View, evidence: Evidence, dim: int, by: int, fill: bool) -> Floats | None:
    if len(view.entries) != evidence.size:
        return None
    return roll(view.right.reshape(evidence.shape), dim, by, fill).reshape(-1)


def _above(view: View, evidence: Evidence, dim: int, by: int, fill: bool) -> Floats:
    shape = evidence.problem.output_shape
    return view.under(roll(view.upstream.reshape(shape), dim, by, fill).reshape(-1))


def roll(array: Array, dim: int, by: int, fill: bool) -> Array:
    """The array moved along a dim; `fill` puts zeros where nothing moved in.

    >>> roll(np.array([1, 2, 3]), 0, 1, fill=True)
    array([0, 1, 2])
    """
    rolled = np.roll(array, by, dim)
    if fill:
        empty = slice(0, by) if by > 0 else slice(by, None)
        rolled[(slice(None),) * dim + (empty,)] = 0
    return rolled
