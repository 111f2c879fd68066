"""A gradient is NaN or infinite where the slope is finite, or became NaN on the way.

## What was seen

The analytic gradient is NaN or infinite in entries in which the finite differences settle on a
finite slope. With `--anomaly`, the backward pass stopped at the first node that returned NaN.

## Why it happens

0/0, inf - inf or 0 * inf in a local derivative: the square root or the norm at 0, `log` at 0, a
masked branch whose derivative is infinite, an overflow inside of a formula that saturates.

## How to mend it

`kael anomaly` names the sub-expression, the elements and the reason, and often a remedy.
"""

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 5


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is not finite in each entry that is wrong at the given point."""
    if not evidence.given or not evidence.wrong_at_given.any():
        return None
    if any(view.whole.shape != evidence.shape for view in evidence.given):
        return None
    claimed = np.array([view.claimed for view in evidence.given])[:, evidence.wrong_at_given]
    if np.isfinite(claimed).any():
        return None
    kind = "NaN" if np.isnan(claimed).any() else "infinite"
    return evidence.tell("anomaly", f"is {kind}{evidence.among}, and the slope is finite")
