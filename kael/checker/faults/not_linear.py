"""The gradient is not linear in the upstream gradient.

## What was seen

For the sum of two upstream gradients the gradient is not the sum of the two gradients, or for an
upstream gradient of zero it is not zero. It is neither independent of what arrives nor quadratic
in it, which have codes of their own (`upstream-ignored`, `upstream-squared`).

## Why it happens

A backward treats the upstream gradient as data: takes its absolute value, clips or normalizes it,
divides by it, adds a constant, or branches on its sign. Gradient clipping belongs to the optimizer;
in a backward it makes a wrong derivative.

## How to mend it

A vector-Jacobian product is `J.T @ g`: use g as a factor, once in each term, and nowhere else.
"""

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 64


def found(evidence: Evidence) -> Diagnosis | None:
    """The claimed gradients of two upstream gradients do not add up to that of their sum."""
    if evidence.problem.upstream is not None:
        return None
    probe = evidence.probe()
    if probe is None:
        return None
    expected = probe.one + probe.other
    size = np.abs(probe.one) + np.abs(probe.other) + np.abs(probe.both)
    slack = 1e-6 * size + 1e-9 * float(np.max(size, initial=0.0, where=np.isfinite(size)))
    if (probe.zero != 0).any():
        return evidence.tell("not-linear", "is not zero for an upstream gradient of zero")
    if (np.abs(probe.both - expected) <= slack).all():
        return None
    told = "is not linear in the upstream gradient"
    if np.allclose(probe.negative, probe.one, 1e-9, 0.0):
        told += ": it is the same for g and for -g"
    return evidence.tell("not-linear", told)
