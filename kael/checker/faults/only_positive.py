"""The gradient is wrong only where the input is positive.

## What was seen

Every entry above zero is wrong and every entry below zero is right, also when the signs of the
inputs are turned over.

## Why it happens

Two branches were exchanged, or the branch for positive values has another slope in the backward
than in the forward.

## How to mend it

Compare the mask of the backward with that of the forward: same comparison, same side.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 112


def found(evidence: Evidence) -> Diagnosis | None:
    """Wrong above zero, right below."""
    if not evidence.wrong_where(lambda x: x > 0):
        return None
    return evidence.tell("only-positive", f"is wrong only where {evidence.name} is positive")
