"""The gradient has another shape or dtype than its input.

## What was seen

A backward returned an array that is neither of the input's shape nor, summed over broadcast dims or
transposed, the right gradient (those have codes of their own: `not-summed`, `transposed`).

## Why it happens

A reduction lost a dim (`keepdim`), a reshape was not undone, or float32 and float64 were mixed.

## How to mend it

Return each gradient in the shape and dtype of its input.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 900


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed has a shape that is not the input's."""
    for view in evidence.given:
        if view.whole.shape != evidence.shape:
            told = f"has shape {list(view.whole.shape)}, its input {list(evidence.shape)}"
            return evidence.tell("wrong-shape", told)
    return None
