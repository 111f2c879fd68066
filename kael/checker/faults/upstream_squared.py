"""The upstream gradient is used twice.

## What was seen

With twice the upstream gradient the gradient becomes four times as large, and with its negative
it stays the same: it is quadratic in what arrives, where it must be linear.

## Why it happens

A backward multiplies by the upstream gradient, and a part of what it multiplies has the upstream
gradient in it already: `g * g * f(x)`, or a helper that was given g and applies it once more. Where
the output is summed, g is 1 and nothing shows.

## How to mend it

Let each term of the gradient have exactly one factor g.
"""

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 62


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is even and of degree two in the upstream gradient; or right under its square."""
    upstream = evidence.problem.upstream
    if upstream is not None:
        if np.array_equal(upstream, upstream * upstream):
            return None
        if evidence.fits(lambda view: view.under(view.upstream**2)):
            return evidence.tell("upstream-squared", "has the upstream gradient in it twice")
        return None
    probe = evidence.probe()
    if probe is None or not np.abs(probe.one).max(initial=0.0) > 0:
        return None
    quadratic = np.allclose(probe.double, 4 * probe.one, 1e-9, 0.0)
    even = np.allclose(probe.negative, probe.one, 1e-9, 0.0)
    if not (quadratic and even):
        return None
    return evidence.tell("upstream-squared", "has the upstream gradient in it twice")
