"""The function is not defined at the given point.

## What was seen

The output is NaN or infinite at the point itself, or its slope grows without bound there; the
sentence names the first operation whose operands are finite and whose result is not.

## Why it happens

An argument outside of a domain (`log` or `sqrt` of a negative number, `acosh` below 1), a division
by zero, or an overflow (`exp` beyond 709).

## How to mend it

Correct the inputs of the case, or guard the formula. `kael anomaly` shows which elements are hit
and what they reach.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 24


def found(evidence: Evidence) -> Diagnosis | None:
    """The slope grows without bound."""
    if evidence.reason != "undefined":
        return None
    told = f"cannot be verified{evidence.among}: the slope grows without bound as the step shrinks"
    return evidence.tell("undefined", told)


def diagnosis(message: str) -> Diagnosis:
    """The diagnosis for an output that is not finite, with the sentence that says where."""
    return Diagnosis("undefined", message, "kael anomaly shows the elements and the cause")
