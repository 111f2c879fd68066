"""The gradient is wrong only where the input is zero.

## What was seen

The entries that are wrong are exactly 0; beside them, where the same entries are not quite 0, the
gradient is right. The function has a derivative at 0.

## Why it happens

A guard against division by zero answers the point itself wrongly: `where(x == 0, 0, …)` for
`sin(x)/x`, a product differentiated as `prod / x`, a power with the exponent 0 or 1, a norm.

## How to mend it

Return the limit of the derivative at 0, or compute it in a form without the division.
"""

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 130


def found(evidence: Evidence) -> Diagnosis | None:
    """Wrong at zeros, and right when they are moved a little."""
    if not evidence.special():
        return None
    x = evidence.given[0].x
    if not (x[evidence.wrong_at_given] == 0).all():
        return None
    some = "" if np.count_nonzero(x == 0) == evidence.wrong_at_given.sum() else "some entries "
    where = f"is wrong only where {some}{evidence.name} is 0"
    return evidence.tell("only-zero", f"{where}{evidence.among}")
