"""The gradient is wrong only where values are tied.

## What was seen

The entries that are wrong are equal to one another, or to the entry of another input beside them;
where the ties are broken, the gradient is right.

## Why it happens

The backward of a maximum, minimum, median or sort finds the chosen entry by comparison, `x == out`.
With ties several entries are equal to it, and each gets the whole gradient: together more than
arrived. Or a tie was given to neither side.

## How to mend it

Divide the gradient by the number of tied entries, or give it to one of them (its index kept from
the forward): the parts must add up to what arrived.
"""

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 120


def found(evidence: Evidence) -> Diagnosis | None:
    """Wrong at values that occur more than once, and right when they are parted."""
    if not evidence.special() or not evidence.tied()[evidence.wrong_at_given].all():
        return None
    values = evidence.given[0].x[evidence.wrong_at_given]
    bent = evidence.given[0].point.bent[evidence.wrong_at_given]
    if (values == 0).all() and not bent.any():
        # Zeros are tied with one another; where nothing bends, it is the zero that matters.
        return None
    tied = f" (the value {values[0]:.6g})" if len(np.unique(values)) == 1 else ""
    return evidence.tell("only-tied", f"is wrong only where values are tied{tied}{evidence.among}")
