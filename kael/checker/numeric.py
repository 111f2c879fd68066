"""The numeric derivative along one line, with its own error.

A line is a function of one number t, the distance walked from the given point; what lies at
both ends of some steps is handed in as changes of value. Central and one-sided rates at
shrinking steps are extrapolated to step zero (Richardson, in powers of t^2 and t), and how far
the extrapolations still move, with the rounding of the values, is the error.

How a formula is evaluated lives in `subject`, what a kink is in `kinks`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

EPSILON = float(np.finfo(np.float64).eps)

# An extrapolation cannot be trusted to gain more than this over the one before it.
_GAIN = 50.0

# How many terms of the series of a rate an extrapolation may take away.
_COLUMNS = 4

# Round inputs and round steps meet in points that are special, such as x - h = 0 exactly.
_OFF = 0.83


class Estimate(NamedTuple):
    """A derivative, its own error, and the step that gave it (infinite error: none found)."""

    value: float
    error: float
    step: float


NONE = Estimate(math.nan, math.inf, math.nan)


@dataclass
class Ladder:
    """The changes of one number along one line, at steps of many sizes.

    `right[h]` is (step really taken, f(x+h) - f(x)), `left[h]` is (step, f(x) - f(x-h)), both
    keyed by the step asked for; `noise` is the rounding of a change, as far as values show it.
    """

    noise: float
    value: float = 0.0
    right: dict[float, tuple[float, float]] = field(default_factory=dict)
    left: dict[float, tuple[float, float]] = field(default_factory=dict)

    def add(self, step: float, taken: tuple[float, float], changes: tuple[float, float]) -> None:
        """Keep what is finite of one pair of evaluations; a step that vanished is no step."""
        for side, length, change in zip((self.right, self.left), taken, changes, strict=True):
            if length > 0 and math.isfinite(change):
                side[step] = (length, change)

    def one_sided(self, side: dict[float, tuple[float, float]]) -> list[tuple[float, float]]:
        """(step, change) of one side, largest step first."""
        return [side[step] for step in sorted(side, reverse=True)]

    def central(self) -> list[tuple[float, float]]:
        """(step, change) from one end to the other, where both ends are finite."""
        both = sorted(self.right.keys() & self.left.keys(), reverse=True)
        return [
            (self.right[h][0] + self.left[h][0], self.right[h][1] + self.left[h][1]) for h in both
        ]


def slope(points: list[tuple[float, float]], order: int, noise: float) -> Estimate:
    """The limit of change/step as the step goes to zero, for steps given largest first.

    `order` is the power of the step in which the error of a rate is a series: 2 for central
    rates, 1 for one-sided. Where two scales each agree with themselves and not with each other,
    the smaller one is the derivative, the larger has stepped over something.
    """
    points = spread(points)
    if not points:
        return NONE
    rates = [change / step for step, change in points]
    steps = [step for step, _ in points]
    level = observed_noise(rates, steps, noise)
    candidates = _candidates(rates, steps, order, level)
    best = min(range(len(candidates)), key=lambda j: candidates[j].error)
    while True:
        chosen = candidates[best]
        smaller = _plateau(candidates, best)
        if not smaller:
            break
        best = min(smaller, key=lambda j: candidates[j].error)
    if order == 1 and len(rates) > 3:
        limits = [_geometric(rates[j - 3 : j + 1], level, steps[j]) for j in range(3, len(rates))]
        return min(chosen, *limits, key=lambda limit: limit.error)
    return chosen


def _plateau(candidates: list[Estimate], best: int) -> list[int]:
    """Candidates at smaller steps that contradict the best, two running and of one mind."""
    found: list[int] = []
    for j in range(best + 2, len(candidates)):
        pair = candidates[j - 1], candidates[j]
        apart = all(_contradict(candidates[best], one) for one in pair)
        if apart and not _contradict(*pair):
            found += [j - 1, j]
    return found


def _contradict(one: Estimate, other: Estimate) -> bool:
    return abs(one.value - other.value) > 10 * (one.error + other.error)


def spread(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points whose steps really differ: near the spacing of a big input several coincide."""
    kept: list[tuple[float, float]] = []
    for step, change in points:
        if not kept or step < 0.7 * kept[-1][0]:
            kept.append((step, change))
    return kept


def _candidates(rates: list[float], steps: list[float], order: int, level: float) -> list[Estimate]:
    """One extrapolated derivative for each step: Neville's scheme, as deep as it gains."""
    if len(rates) == 1:
        return [Estimate(rates[0], math.inf, steps[0])]
    rows = [[rates[0]]]
    for j in range(1, len(rates)):
        row = [rates[j]]
        for k in range(1, min(j, _COLUMNS) + 1):
            # A product of floats that is too large is infinite, where a power raises.
            ratio = steps[j - k] / steps[j]
            shrunk = (ratio * ratio if order == 2 else ratio) - 1
            row.append(row[k - 1] + (row[k - 1] - rows[j - 1][k - 1]) / shrunk)
        rows.append(row)
    found = [Estimate(rows[1][1], abs(rates[1] - rates[0]) + level / steps[1], steps[1])]
    for j in range(2, len(rates)):
        row, above = rows[j], rows[j - 1]
        moved, value = min(
            (max(abs(row[k] - row[k - 1]), abs(row[k - 1] - above[k - 1]) / _GAIN), row[k])
            for k in range(2, len(row))
        )
        found.append(Estimate(value, moved + level / steps[j], steps[j]))
    for j, (value, error, step) in enumerate(found[:-1]):
        # What the next smaller step says, but for its rounding, this one has not seen.
        ahead = abs(rows[j + 2][1] - value) - 4 * level / steps[j + 2]
        found[j] = Estimate(value, max(error, ahead + level / step), step)
    return found


def _geometric(rates: list[float], level: float, step: float) -> Estimate:
    """Aitken's limit of four rates, for one-sided slopes that are no series in whole powers.

    At 0 the slope of x**1.5 is h**0.5: it falls by one factor a step, whatever the power.
    """
    d1, d2, d3 = rates[1] - rates[0], rates[2] - rates[1], rates[3] - rates[2]
    if d2 == d1 or d3 == d2 or abs(d3) >= 0.9 * abs(d2) or abs(d2) >= 0.9 * abs(d1):
        return Estimate(rates[3], math.inf, step)
    earlier, later = rates[2] - d2 * d2 / (d2 - d1), rates[3] - d3 * d3 / (d3 - d2)
    moved = abs(later - earlier) + abs(d3) / 1e3
    return Estimate(later, moved + 2 * level / step, step)


def observed_noise(rates: list[float], steps: list[float], noise: float) -> float:
    """The rounding of a change: at least what the values imply, more if the rates scatter.

    At the smallest steps nothing but rounding makes neighbouring rates differ, so their
    differences show the rounding of intermediate values that the result does not show.
    """
    scatter = sorted(
        abs(rates[j] - rates[j - 1]) * steps[j] for j in range(max(1, len(rates) - 3), len(rates))
    )
    if len(rates) < 5 or not scatter:
        return 2 * noise
    return max(2 * noise, scatter[len(scatter) // 2])


def first_step(x: float, eps: float) -> float:
    """The first step: `eps` relative to max(1, |x|), and never below the spacing of x."""
    return max(eps * max(1.0, abs(x)), 4 * float(np.spacing(abs(x))))


def near_steps(x: float, eps: float) -> list[float]:
    """The steps tried first when one difference does not settle an entry."""
    h = first_step(x, eps)
    floor = 4 * float(np.spacing(abs(x)))
    return [step for k in range(2, -3, -1) if (step := _OFF * h * 10.0**k) >= floor]


def far_steps(x: float, eps: float) -> list[float]:
    """The steps tried when the near ones do not settle it either.

    Up to the size of the input, where rounding drowns small steps; down to the spacing of a big
    input, whose size need not be the scale of the formula; and down to a small part of a small
    input, which may lie close to the edge of a domain.
    """
    h = first_step(x, eps)
    scale = max(1.0, abs(x))
    floor = 4 * float(np.spacing(abs(x)))
    steps = [_OFF * h * 10.0**k for k in range(3, 12) if h * 10.0**k <= 1.001 * scale]
    smallest = min(1e-4 * h, 1e-5)
    k = 3
    while (step := _OFF * h * 10.0**-k) >= max(floor, smallest):
        steps.append(step)
        k += 1
    if 0 < abs(x) < 10 * h:
        steps += [_OFF * abs(x) * 10.0**-k for k in range(1, 6)]
    return [step for step in steps if step >= floor]


def deep_steps(smallest: float, floor: float) -> list[float]:
    """The steps below the smallest one taken, down to a floor, ten at most."""
    steps = [smallest * 10.0**-k for k in range(1, 11)]
    return [step for step in steps if step >= floor]


def fine_steps(x: float) -> list[float]:
    """The steps of the extrapolated mode: large enough to be free of rounding."""
    scale = max(1.0, abs(x))
    return [scale * 10.0 ** (-k / 2) for k in range(2, 9)]
