"""The gradient has a term that does not belong there.

## What was seen

Without one term of the claimed derivative, or with one use of the input counted once instead of
twice, all entries hold. The sentence names the term.

## Why it happens

A contribution was added twice (once by hand, once by the engine), a term of another input was
written into the claim, or a constant was differentiated to something.

## How to mend it

Take the term out.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 460


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is right plus once more what one use of the input contributes."""
    for text, term in evidence.terms():
        if evidence.fits(lambda view, term=term: view.right + term(view)):  # type: ignore[misc]
            return evidence.tell("extra-term", f"has the term through {text} twice")
    return None
