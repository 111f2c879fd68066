"""A term is missing from the gradient of an input that is used more than once.

## What was seen

The analytic gradient lacks exactly what comes back along one use of the input in the formula. The
sentence names the use.

## Why it happens

An input that is used in several places gets the sum of what comes back from all of them. A
product rule with one summand (`x * tanh(x)` differentiated as `tanh(x)`), a residual connection
left out, or a use behind `detach()` or `numpy()` loses one.

## How to mend it

Add the term, or keep the history of that use.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 440


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is right without what one use of the input contributes."""
    for text, term in evidence.terms():
        if evidence.fits(lambda view, term=term: view.right - term(view)):  # type: ignore[misc]
            return evidence.tell("missing-term", f"lacks the term through {text}")
    return None
