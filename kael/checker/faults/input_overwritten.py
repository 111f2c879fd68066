"""The function writes into its input.

## What was seen

After the function, or its backward, ran, the input has other values than before.

## Why it happens

An in-place operation (`x.add_(1)`, `x -= mean`) or a write through `numpy` into the input itself,
where a copy was meant. The gradient then belongs to other values than those that were given.

## How to mend it

Work on `x.clone()`, or use the operation without the underscore.
"""

from kael.checker.model import Diagnosis


def diagnosis(message: str, name: str | None) -> Diagnosis:
    """The diagnosis, with the sentence of the check that saw it."""
    return Diagnosis("input-overwritten", message, "work on a clone of the input", name)
