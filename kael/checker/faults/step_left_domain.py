"""Every step leaves the domain of the function, so nothing can be compared.

## What was seen

The function has a value at the given point, but is NaN or infinite at every perturbed point that
was tried, however small the step and to both sides.

## Why it happens

The point is at the edge of a domain (`sqrt` at 0 beside `sqrt` of its negative, `acos` at 1 from
above), or the function is defined on a set without an inside, such as `x == 0`.

## How to mend it

Move the case into the domain, by more than rounding. `--allow-inconclusive` lets it pass.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 20


def found(evidence: Evidence) -> Diagnosis | None:
    """The checker met no finite value beside the point."""
    if evidence.reason != "domain":
        return None
    name = evidence.name
    told = f"cannot be verified{evidence.among}: every step from {name} leaves the domain"
    if evidence.problem.raised:
        told += f" (it raises: {evidence.problem.raised})"
    return evidence.tell("step-left-domain", told, "move the case away from the edge")
