"""The gradient differs from the finite differences, in no way that has a name.

## What was seen

Entries differ by more than the tolerances and by more than the numeric side's own error. None of
the other diagnoses predicts the numbers at all the points that were looked at, so none is given.

## Why it happens

Any error of the derivative that is not a single slip: another function's derivative, two slips at
once, a wrong inner function.

## How to mend it

Read the table of the worst entries: index, analytic, numeric. `kael explain` shows the formula
step by step; splitting it under `let` and giving `derivatives` for parts of it narrows the search.
"""

from kael.checker.evidence import Evidence
from kael.checker.model import Check, Diagnosis


def of(evidence: Evidence) -> Diagnosis:
    """The diagnosis of an input of which nothing better is known."""
    return evidence.tell("mismatch", f"differs from the finite differences{evidence.among}")


def diagnosis(check: Check, what: str = "", where: str = "") -> Diagnosis:
    """The diagnosis of a check for which nothing better is known."""
    of = f" of {check.input}" if check.input else ""
    many = f" in {check.wrong} of {check.compared} entries" if check.compared > 1 else ""
    if check.kind == "numeric":
        told = f"{what or f'the gradient{of}'} differs from the finite differences{many}{where}"
    elif check.kind == "derivative":
        told = f"the derivative claimed for {check.input} is wrong{many}"
    else:
        told = check.note or f"the check '{check.kind}'{of} does not hold{many}"
    return Diagnosis("mismatch", told, None, check.input)
