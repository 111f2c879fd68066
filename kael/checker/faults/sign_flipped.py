"""The sign is wrong.

## What was seen

The analytic gradient is the negative of the numeric one in every entry, at the given point and at
points beside it; or one term of it is.

## Why it happens

A minus was lost or doubled: the derivative of `-x`, `cos(x)`, `1/x`, `exp(-x)` or of the second
operand of a difference. In gradients of losses, `target - prediction` was written for
`prediction - target`.

## How to mend it

Put the minus where the derivative has it. For a claimed derivative, the remedy in the report shows
the term and what it would have to be.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 300


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is the negative of right, or one term of right turned over."""
    if evidence.fits(lambda view: -view.right):
        return evidence.tell("sign-flipped", f"has the wrong sign{evidence.among}")
    for text, term in evidence.terms():
        if evidence.fits(lambda view, term=term: view.right - 2 * term(view)):  # type: ignore[misc]
            return evidence.tell("sign-flipped", f"has the term through {text} with the wrong sign")
    return None
