"""What a verification will cost, told before it begins: evaluations, and the time they take."""

from __future__ import annotations

from collections.abc import Callable

from kael.checker.one_by_one import COST
from kael.checker.together import by_directions
from kael.checker.trial import Trial

Forecast = Callable[[int, float], None]
"""Told how many evaluations are expected, and how many seconds they take."""

# What directions take where everything is right, whatever the size.
_DIRECTIONS = 24

# A backward takes about as long as two evaluations.
_BACKWARD = 2


def expected(trial: Trial) -> tuple[int, float]:
    """The evaluations a right gradient takes, as far as the budget lets them, and the seconds."""
    size = sum(array.size for array in trial.subject.arrays)
    mode = trial.options.mode
    count = _DIRECTIONS if by_directions(trial, size) else size * COST[mode]
    left = trial.left()
    count = count if left is None else min(count, left)
    backwards = trial.ex.value.size if mode == "full" else 0
    return count, (count + _BACKWARD * backwards) * trial.seconds
