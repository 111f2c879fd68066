"""The function jumps at this point, so it has no derivative here.

## What was seen

However small the step, the value does not come close to the value at the point itself.

## Why it happens

The formula steps: `floor`, `round`, `sign`, a comparison turned into a number, a `where` whose two
branches do not meet, an index that changes with the input. At the step itself no gradient is right
or wrong.

## How to mend it

Move the case away from the jump; the gradient on either side of it can be verified.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 22


def found(evidence: Evidence) -> Diagnosis | None:
    """The checker saw the value stay away from that at the point."""
    if evidence.reason != "discontinuous":
        return None
    told = f"cannot be verified{evidence.among}: the value jumps here"
    met = None
    if evidence.failing is not None and len(evidence.failing):
        met = evidence.problem.kink_at(evidence.index, int(evidence.failing[0]))
    told += f", by {met}" if met else ""
    return evidence.tell("discontinuous", told, "move the case away from the jump")
