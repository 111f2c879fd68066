"""The upstream gradient is not used.

## What was seen

The gradient is the same whatever gradient arrives from above: the derivative of the operation
alone, as if ones had arrived.

## Why it happens

A backward returns the local derivative without multiplying by the gradient it was given. Checks
that end in `sum()` do not see it, because there the upstream gradient is 1 everywhere. In a spec
with an `upstream`, a derivative was claimed as if there were none.

## How to mend it

Multiply by the upstream gradient: `return g * derivative`. For a claim under `upstream`, weight the
terms of the output with it.
"""

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 60


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed does not change with the upstream gradient; or is right under ones."""
    told = "does not depend on the upstream gradient"
    if evidence.problem.upstream is not None:
        if (evidence.problem.upstream == 1).all():
            return None
        if evidence.fits(lambda view: view.under(np.ones(view.upstream.size))):
            return evidence.tell("upstream-ignored", "is the one for an upstream gradient of ones")
        return None
    probe = evidence.probe()
    if probe is None or not np.abs(probe.one).max(initial=0.0) > 0:
        return None
    alike = all(np.allclose(probe.one, other, 1e-9, 0.0) for other in (probe.other, probe.zero))
    return evidence.tell("upstream-ignored", told) if alike else None
