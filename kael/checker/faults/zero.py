"""The gradient is zero everywhere, although the output moves with the input.

## What was seen

Every entry of the analytic gradient is exactly 0, at the given point and at the points beside
it, while the finite differences are not.

## Why it happens

The history was cut on the way: `detach()`, `numpy()`, `item()`, a section under `no_grad`, a
conversion to an integer dtype, or an operation without a derivative (`floor`, `argmax`, a
comparison). A hand-written backward returns zeros, or None, for an input that does matter.
Where kael can see the place at which the history ends, the sentence names it.

## How to mend it

Keep the computation inside tensors from the input to the output. Where the cut is meant, say so:
give the input `requires_grad: false`, and it is not checked. In a hand-written backward, return a
gradient for each input that the forward reads.
"""

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 200


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is 0 wherever anybody looked."""
    if any(view.claimed.any() for view in evidence.views):
        # Also where the slopes bend, of which a prediction says nothing.
        return None
    if not evidence.fits(lambda view: np.zeros(len(view.entries))):
        return None
    return evidence.tell("zero", f"is zero{evidence.among}, and the differences are not")
