"""The gradient is wrong at a kink, and right beside it.

## What was seen

At this point the slopes of the two sides differ, and the analytic gradient lies outside them; or
the function is smooth here, but is made of operations that are at their kinks, and what they
return there does not add up. Where the input is moved a little, the gradient is right.

## Why it happens

At a kink any value between the two slopes is a valid answer (0 to 1 for `relu` at 0), and no other
one is. A convention chosen for each part does not always make one for the whole:
`relu(x) + log(1 + exp(-abs(x)))` is softplus, whose slope at 0 is 1/2, while `relu` and `abs` both
answer 0 there.

## How to mend it

Return a value between the one-sided slopes, or write the smooth function in a smooth form
(`softplus`, `logaddexp`, `hypot`). Where the point is of no interest, move the case away from it.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 125


def found(evidence: Evidence) -> Diagnosis | None:
    """Wrong where the slopes of the sides differ, or where an operation has its kink."""
    if not evidence.special():
        return None
    # Sides also part where the function turns over within the step, as sin does at 1e10.
    if evidence.reason == "kink" and evidence.given[0].point.bent[evidence.wrong_at_given].any():
        return evidence.tell(
            "at-kink", f"lies outside the one-sided slopes at a kink{evidence.among}"
        )
    for entry in evidence.given[0].entries[evidence.wrong_at_given][:4].tolist():
        met = evidence.problem.kink_at(evidence.index, entry)
        if met:
            told = f"is wrong at a kink of {met}, and right beside it"
            return evidence.tell("at-kink", told)
    return None
