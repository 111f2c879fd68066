"""Two evaluations at one point give two values, so no derivative can be measured.

## What was seen

The function, or its backward, was evaluated twice with the same inputs and gave different numbers.

## Why it happens

It draws random numbers (dropout, noise, a shuffled order), keeps state between calls (a counter, a
running mean, a cache), or reads the clock. Differences of such a function are noise divided by the
step.

## How to mend it

Draw the random numbers once, outside of the function, or seed a generator inside of it; freeze the
state (evaluation mode). The gradient is not called wrong: it was not compared.
"""

from kael.checker.model import Diagnosis


def diagnosis(message: str) -> Diagnosis:
    """The diagnosis, with the sentence of the check that saw it."""
    return Diagnosis(
        "not-deterministic", message.partition(": fix")[0], "fix the seed or freeze the state"
    )
