"""The gradient is the one that is due to another input.

## What was seen

The analytic gradient of one input equals the numeric gradient of another input of the same shape,
in all entries and at every point that was looked at.

## Why it happens

A backward returns its gradients in another order than the forward takes its inputs, or multiplies
by the operand itself where the other operand is due (`g * x` for the gradient of x in `x * y`). In
a spec, the claims of two inputs stand under each other's names.

## How to mend it

Return one gradient for each input, in the order of the inputs of `forward`.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 380


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is what is right for another input of the same shape."""
    for other, name in enumerate(evidence.problem.names):
        if other == evidence.index or evidence.problem.arrays[other].shape != evidence.shape:
            continue
        if evidence.fits(lambda view, other=other: evidence.right_of(other, view)):  # type: ignore[misc]
            told = f"is the one that is due to {name}{evidence.among}"
            return evidence.tell("swapped", told)
    return None
