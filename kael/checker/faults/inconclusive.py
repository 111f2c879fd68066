"""The numbers cannot tell whether the gradient is right.

## What was seen

The differences are uncertain by more than the tolerances allow, whatever the step: the verdict is
neither right nor wrong.

## Why it happens

Rounding hides the slope. `(x + 1e12) - 1e12` does not move at all for a small step; a sum of large
terms that cancel, or a float32 constant inside, does the same on a smaller scale.

## How to mend it

Rescale the formula or the inputs, or give tolerances that the numbers can meet (`--atol`,
`--rtol`). `--mode complex` has no such cancellation, where all operations extend to complex
numbers. A claimed derivative is compared with kael's own exactly. `--allow-inconclusive` lets the
verdict pass.
"""

from kael.checker.model import Check, Diagnosis


def diagnosis(check: Check) -> Diagnosis:
    """The diagnosis of a check that stays undecided for no reason with a code of its own."""
    of = f" of {check.input}" if check.input else ""
    because = f": {check.note}" if check.note else ""
    return Diagnosis("inconclusive", f"cannot verify the gradient{of}{because}", None, check.input)
