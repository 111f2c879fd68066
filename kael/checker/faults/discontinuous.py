"""The function jumps at this point, so it has no derivative here.

## What was seen

However small the step, the value does not come close to the value at the point itself.

## Why it happens

The formula steps: `floor`, `round`, `sign`, a comparison turned into a number, a `where` whose two
branches do not meet, an index that changes with the input. At the step itself no gradient is right
or wrong. A smooth function can look like that too, where it rises from one level to another within
a far smaller change than the smallest step: `tanh(1e12*x)` at 0, energies in joules beside 1.

## How to mend it

Move the case away from the jump; the gradient on either side of it can be verified. For a steep
slope give a first step of its scale (`--eps 1e-14`, or `gradcheck: {eps: 1e-14}`), or measure the
input in units in which it is about 1.
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
    if met:
        return evidence.tell(
            "discontinuous", f"{told}, by {met}", "move the case away from the jump"
        )
    # No operation that jumps was met: it may be a slope too steep for every step taken.
    return evidence.tell(
        "discontinuous",
        f"{told}, or is too steep for the steps that were taken",
        "move the case away from the jump; for a steep slope give a smaller first step: --eps",
    )
