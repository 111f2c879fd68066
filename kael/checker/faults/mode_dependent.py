"""The value with recording on is not the value with recording off.

## What was seen

The same function at the same point gives one value under `no_grad` and another while the graph is
recorded.

## Why it happens

The function asks for the grad mode, or for `requires_grad`, and computes something else in the one
than in the other.

## How to mend it

Let the value depend on the inputs alone.
"""

from kael.checker.model import Diagnosis


def diagnosis(message: str) -> Diagnosis:
    """The diagnosis, with the sentence of the check that saw it."""
    return Diagnosis("mode-dependent", message)
