"""The gradient is wrong only where the input is negative.

## What was seen

Every entry below zero is wrong and every entry above zero is right, also when the signs of the
inputs are turned over.

## Why it happens

The formula was derived for positive values: the derivative of `abs(x)` written as 1, of `log(x**2)`
or `sqrt(x**2)` without the sign, a backward of `relu` without its mask, a leaky slope forgotten, a
power taken through `exp(p * log(x))`.

## How to mend it

Treat the negative branch by its own derivative, with `where(x > 0, …, …)` or `sign(x)`.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 110


def found(evidence: Evidence) -> Diagnosis | None:
    """Wrong below zero, right above."""
    if not evidence.wrong_where(lambda x: x < 0):
        return None
    return evidence.tell("only-negative", f"is wrong only where {evidence.name} is negative")
