"""At which other points a formula is checked, and the smallest inputs at which it fails.

Points are drawn as the inputs themselves are declared, and then come the values at which formulas
break: zeros, ties, ones of both signs, the tiny, the huge, the ends of a declared range. A failing
point is shrunk: numbers become 0, 1 or short as long as the same thing fails. Nothing depends on
the order of a run; the streams of random numbers are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kael.checker.model import Array

TINY, HUGE = 1e-8, 1e6

MOST_ENTRIES = 64
"""Entries of an input that is shrunk entry by entry; a larger one as a whole."""

MOST_TRIALS = 400

Stream = Callable[..., "np.random.Generator"]
"""The random numbers of an input at a point: `stream(input, point)`."""


@dataclass(frozen=True)
class Source:
    """Where the values of one input come from.

    `draw` makes new values; `low` and `high` bound what may be tried, None where nothing does.
    """

    name: str
    values: Array
    draw: Callable[[np.random.Generator], Array]
    low: float | None = None
    high: float | None = None

    def admits(self, value: float) -> bool:
        """Whether a value lies in the declared range."""
        above = self.low is None or value >= self.low
        return above and (self.high is None or value <= self.high)


@dataclass(frozen=True)
class Sampled:
    """One point: the values of every input that moves, and what is special about it."""

    label: str
    arrays: dict[str, Array]
    edge: bool = False
    """Whether it is made of special values, at which not being sure is no news."""


def points(sources: Sequence[Source], count: int, stream: Stream) -> Iterator[Sampled]:
    """`count` points as declared, then those of special values."""
    for number in range(1, count + 1):
        arrays = {one.name: one.draw(stream(one.name, number)) for one in sources}
        yield Sampled(f"sample {number}", arrays)
    if count:
        yield from special_points(sources, stream)


def special_points(sources: Sequence[Source], stream: Stream) -> Iterator[Sampled]:
    """Points at which all entries are one special value, are tied, or are special values mixed."""
    for label, value in (
        ("all 0", 0.0),
        ("all 1", 1.0),
        ("all -1", -1.0),
        (f"all {TINY:g}", TINY),
        (f"all {-TINY:g}", -TINY),
        (f"all {HUGE:g}", HUGE),
        (f"all {-HUGE:g}", -HUGE),
    ):
        moved = {one.name: np.full_like(one.values, value) for one in sources if one.admits(value)}
        if moved:
            yield Sampled(label, _with_rest(sources, moved), edge=True)
    for label, side in (("the declared low", "low"), ("the declared high", "high")):
        bounded = {
            one.name: np.full_like(one.values, getattr(one, side))
            for one in sources
            if getattr(one, side) is not None
        }
        if bounded:
            yield Sampled(label, _with_rest(sources, bounded), edge=True)
    tied = {
        one.name: np.full_like(one.values, one.values.reshape(-1)[0])
        for one in sources
        if one.values.size > 1
    }
    if tied:
        yield Sampled("all tied", _with_rest(sources, tied), edge=True)
    for number in (1, 2):
        mixed = {one.name: _mixed(one, stream(one.name, f"mixed {number}")) for one in sources}
        yield Sampled("special values mixed", mixed, edge=True)


def _with_rest(sources: Sequence[Source], moved: Mapping[str, Array]) -> dict[str, Array]:
    return {one.name: moved.get(one.name, one.values) for one in sources}


def _mixed(source: Source, rng: np.random.Generator) -> Array:
    special = [v for v in (0.0, 1.0, -1.0, TINY, -TINY, source.low, source.high)
               if v is not None and source.admits(v)]  # fmt: skip
    drawn = source.draw(rng)
    if special:
        chosen = rng.choice(special, drawn.shape)
        drawn = np.where(rng.random(drawn.shape) < 0.5, chosen, drawn)
    return np.asarray(drawn, source.values.dtype)


def shrink(
    sources: Sequence[Source],
    arrays: Mapping[str, Array],
    fails: Callable[[dict[str, Array]], bool],
    trials: int = MOST_TRIALS,
) -> dict[str, Array]:
    """The simplest values found at which it still fails: first whole inputs, then entries.

    >>> source = Source("x", np.zeros(3), lambda rng: rng.random(3))
    >>> shrink([source], {"x": np.array([0.3, -2.7, 5.1])}, lambda a: a["x"][1] < 0)["x"].tolist()
    [0.0, -1.0, 0.0]
    """
    search = _Shrinking(dict(arrays), fails, trials)
    again = True
    while again and search.trials > 0:
        again = False
        for source in sources:
            again |= search.simplify(source)
    return search.best


class _Shrinking:
    """The simplest failing point so far."""

    def __init__(
        self, best: dict[str, Array], fails: Callable[[dict[str, Array]], bool], trials: int
    ) -> None:
        self.best, self.fails, self.trials = best, fails, trials

    def simplify(self, source: Source) -> bool:
        """Make one input simpler where it still fails; whether that was possible."""
        name, better = source.name, False
        for make in (np.zeros_like, np.ones_like, np.round):
            better |= self._try(source, make(self.best[name]))
        if self.best[name].size > MOST_ENTRIES:
            return better
        for entry in range(self.best[name].size):
            value = float(self.best[name].reshape(-1)[entry])
            for simple in simpler(value):
                array = self.best[name].copy()
                array.reshape(-1)[entry] = simple
                if self._try(source, array):
                    better = True
                    break
        return better

    def _try(self, source: Source, array: Array) -> bool:
        old = self.best[source.name]
        if self.trials <= 0 or np.array_equal(array, old):
            return False
        if not all(source.admits(v) for v in (float(array.min()), float(array.max()))):
            return False
        if weight(array) >= weight(old):
            return False
        self.trials -= 1
        candidate = {**self.best, source.name: array}
        if not self.fails(candidate):
            return False
        self.best = candidate
        return True


def simpler(value: float) -> list[float]:
    """Simpler numbers that may stand for one, the simplest first.

    >>> simpler(2.718)
    [0.0, 1.0, 2.0, 3.0, 2.7, 2.72]
    """
    sign = -1.0 if value < 0 else 1.0
    tried = [0.0, 1.0, sign, 2 * sign, float(round(value)), float(int(value))]
    tried += [float(f"{value:.2g}"), float(f"{value:.3g}")]
    return [one for one in dict.fromkeys(tried) if one != value]


def weight(array: Array) -> tuple[int, float]:
    """How far from simple values are: the digits it takes to write them, then their size."""
    digits = 0
    for value in array.reshape(-1)[:MOST_ENTRIES].tolist():
        digits += 0 if value == 0 else len(f"{value:.17g}".lstrip("-")) + (value < 0)
    return digits, float(np.abs(array).sum())


def written(array: Array) -> Any:
    """The values as a literal of the command line: nested lists of plain numbers."""
    return array.tolist()
