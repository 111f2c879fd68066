"""The gradient is wrong only where the input is large.

## What was seen

Every entry beyond some size is wrong and every entry below it is right, also at other points.

## Why it happens

A formula that is right in exact arithmetic overflows or cancels: `exp(x) / (1 + exp(x))` for large
x, `1 - tanh(x)**2` where tanh rounds to 1, a series cut off, a clip or a saturation that the
backward has and the forward has not (or the reverse).

## How to mend it

Use the form that stays exact (`sigmoid(x) * sigmoid(-x)`, `log1p`, `expm1`), and the limits of the
forward in the backward.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 140


def found(evidence: Evidence) -> Diagnosis | None:
    """Wrong beyond a size, right below."""
    beyond = evidence.wrong_beyond()
    if beyond is None:
        return None
    right, wrong = beyond
    told = (
        f"is wrong only where {evidence.name} is large: right up to a size of {right:.4g}, "
        f"wrong from {wrong:.4g} on"
    )
    return evidence.tell("only-large", told)
