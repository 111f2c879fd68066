"""Many entries at once: random directions first, then halving to find the wrong ones.

Along a direction u of random signs every entry takes part with full weight, so one wrong entry
shows itself in each direction unless another cancels it by chance; a first direction of random
lengths as well leaves no chance to that. The tolerance is the numeric
side's own error for that very sum, on the scale of the root of the sum of squared terms, never a
share of the sum: that is what lets one entry in a million be seen. What differs is halved with
the same signs until single entries are left; those are judged one by one by `entries`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from kael.checker.entries import Heads
from kael.checker.kinks import SURE, Tolerance
from kael.checker.model import Array, Floats
from kael.checker.numeric import EPSILON, Estimate, Ladder, slope
from kael.checker.subject import Subject

# Random lengths and one way for all; between them plain signs, where they cost next to nothing.
DIRECTIONS, DIRECTIONS_IF_SMALL = 3, 2
SMALL = 256

MOST_SUSPECTS = 96
MOST_BLUNT = 512
# Of those that even the absolute tolerance covers.
MOST_SMALL = 64
MOST_EVALUATIONS = 900

# The least that is called a difference, as a share of the root of the sum of squared terms.
_FLOOR, _FLOOR_FLOAT32 = 1e-9, 3e-5

# Up to here the steps are a share of the largest entry of an input, beyond of max(1, |x|).
_SMALL_INPUT = 1e-3

_FIRST = (8.3e-5, 8.3e-6)
_MORE = (8.3e-7, 8.3e-4, 8.3e-8, 8.3e-3, 8.3e-9)


@dataclass
class Directed:
    """What directions found: suspects to be judged one by one, and how sharp the look was.

    `sharpness` is the smallest error in one entry that would have been seen. `unresolved` says
    that more differs than could be traced to single entries; `between` that there the two sides
    have different slopes which enclose the analytic one; `vague` that a difference came and went
    with the steps. `blunt` are entries, if not too many, in which an error that the rule of
    comparison forbids would not have been seen; `unseen` says how many others there are.
    """

    suspects: list[int] = field(default_factory=list)
    sharpness: float = 0.0
    directions: int = 0
    unresolved: bool = False
    between: bool = False
    vague: bool = False
    excess: float = 0.0
    differs: bool = False
    sharpness_here: float = np.inf
    blunt: list[int] = field(default_factory=list)
    unseen: int = 0

    def saw(self, allowed: Floats, off: Floats) -> None:
        """Keep the sharpest look and the largest difference of the directions that agreed."""
        self.sharpness_here = min(self.sharpness_here, float(allowed.max()))
        self.excess = max(self.excess, float(off.max()))


class Walker:
    """Walks some inputs along signed directions and compares with what the gradient predicts.

    The inputs are one long line of entries, one input behind the other; `analytic` has a row an
    entry and a column a head.
    """

    def __init__(
        self, subject: Subject, inputs: Sequence[int], analytic: Floats, heads: Heads
    ) -> None:
        self.subject, self.heads = subject, heads
        self.analytic = analytic
        self.flats = [subject.flat(which) for which in inputs]
        sizes = [subject.arrays[which].size for which in inputs]
        self.bounds = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        self.x = np.concatenate([np.array(flat, dtype=np.float64) for flat in self.flats])
        self.work = self.x.copy()
        self.scale = np.maximum(1.0, np.abs(self.x))
        for start, end in pairwise(self.bounds):
            largest = float(np.abs(self.x[start:end]).max(initial=0.0))
            if 0 < largest < _SMALL_INPUT:
                # In SI units a whole formula may live within 1e-10.
                self.scale[start:end] = largest
        self.floor = _FLOOR_FLOAT32 if subject.float32 else _FLOOR

    def load(self, values: Floats) -> None:
        """Put a line of values into the inputs' own storage."""
        for flat, start, end in zip(self.flats, self.bounds, self.bounds[1:], strict=False):
            flat[:] = values[start:end]

    def relative_steps(self) -> None:
        """Step by a share of each entry, which stays inside of a domain that ends at 0."""
        self.scale = np.abs(self.x)

    def norm(self, entries: Array) -> Floats:
        """The scale of a sum over these entries with random signs, one number a head."""
        terms = self.analytic[entries] * self.scale[entries, None]
        # Scaled first: the square of a large term need not exist.
        unit = float(np.abs(terms).max(initial=0.0)) or 1.0
        terms /= unit
        return np.asarray(unit * np.sqrt((terms * terms).sum(axis=0)))

    def excess(self, entries: Array, signs: Floats, step: float) -> tuple[Floats, Floats, Floats]:
        """What f changes by to either side beyond the prediction, and the rounding in it."""
        right, noise = self._one_way(entries, signs, step)
        left, _ = self._one_way(entries, signs, -step)
        return right, -left, noise

    def _one_way(self, entries: Array, signs: Floats, step: float) -> tuple[Floats, Floats]:
        x = self.x[entries]
        moved = x + step * signs * self.scale[entries]
        self.work[entries] = moved
        try:
            self.load(self.work)
            row = self.subject.evaluate()
        finally:
            self.work[entries] = x
        change, noise = self.heads.change(row)
        predicted = (moved - x) @ self.analytic[entries]
        return change - predicted, noise + EPSILON * np.abs(predicted)

    def climb(
        self,
        entries: Array,
        signs: Floats,
        steps: tuple[float, ...],
        ladders: list[Ladder] | None = None,
    ) -> list[Ladder]:
        """Ladders of what is left over along one direction, one a head."""
        ladders = ladders or [Ladder(0.0) for _ in range(self.heads.count)]
        for step in steps:
            right, left, noise = self.excess(entries, signs, step)
            for head, ladder in enumerate(ladders):
                if np.isfinite(noise[head]):
                    ladder.noise = max(ladder.noise, float(noise[head]))
                ladder.add(step, (step, step), (float(right[head]), float(left[head])))
        return ladders


def search(
    subject: Subject,
    inputs: Sequence[int],
    analytic: Floats,
    heads: Heads,
    tolerance: Tolerance,
    rng: np.random.Generator,
    budget: int = MOST_EVALUATIONS,
    agreed_only: bool = False,
) -> Directed:
    """Look along random directions for entries whose analytic derivative is not the slope.

    With `agreed_only` the first direction that differs ends it, before anything is halved.
    """
    walker = Walker(subject, inputs, analytic, heads)
    try:
        limit = subject.evaluations + budget
        return _Search(walker, tolerance, rng, limit, agreed_only).run()
    finally:
        walker.load(walker.x)


class _Search:
    """One search while it runs."""

    def __init__(
        self,
        walker: Walker,
        tolerance: Tolerance,
        rng: np.random.Generator,
        limit: int,
        agreed_only: bool,
    ) -> None:
        self.walker, self.tolerance, self.rng = walker, tolerance, rng
        self.limit, self.agreed_only = limit, agreed_only
        self.found = Directed()

    def run(self) -> Directed:
        """Directions over groups of entries of like size, until nothing differs."""
        # No step leads away from an infinite input, and no sum with a NaN says anything.
        finite = np.isfinite(_sizes(self.walker))
        if not finite.all():
            self.found.differs = True
            odd = np.flatnonzero(~finite)
            self.found.suspects += odd[:MOST_SUSPECTS].tolist()
            self.found.unseen += len(odd[MOST_SUSPECTS:])
        for entries in _by_size(self.walker, np.flatnonzero(finite)):
            self.group(entries)
            if self.found.unresolved or (self.agreed_only and self.found.differs):
                break
        return self.found

    def group(self, left: Array) -> None:
        """Directions over one group: each that differs is halved, and what it led to set apart."""
        found, clean, vanished = self.found, 0, 0
        found.sharpness_here = np.inf
        drift: Floats | None = None
        wanted = DIRECTIONS_IF_SMALL if len(left) <= SMALL else DIRECTIONS
        while clean < wanted and len(left):
            signs = self.signs(clean, len(left), last=clean == wanted - 1)
            found.directions += 1
            agrees, drift = _agrees(self.walker, left, signs, found, drift)
            if agrees:
                clean += 1
                continue
            found.differs = True
            if self.agreed_only:
                return
            drift = None
            suspects = _halve(self.walker, left, signs, self.limit, found)
            found.suspects += suspects
            if found.unresolved:
                return
            # Gone under other steps: look again with those, and say so if it comes back.
            vanished += not suspects
            if vanished > 2:
                found.vague = True
                return
            left = np.setdiff1d(left, suspects, assume_unique=True)
            clean = 0
        self.add_blunt(left)

    def add_blunt(self, entries: Array) -> None:
        """Keep the entries for which the look was not as sharp as the rule of comparison."""
        walker, rule = self.walker, self.tolerance
        if not np.isfinite(self.found.sharpness_here):
            return
        seen = self.found.sharpness_here / min(1.0, float(walker.scale[entries].min(initial=1.0)))
        self.found.sharpness = max(self.found.sharpness, seen)
        size = np.abs(walker.analytic[entries]).max(axis=1, initial=0.0)
        sharp = 2 * self.found.sharpness_here / walker.scale[entries]
        forbidden = sharp > rule.atol + rule.rtol * size
        small = (sharp > rule.rtol * size) & (size > 0) & ~forbidden & rule.strict
        for which, most in ((forbidden, MOST_BLUNT), (small, MOST_SMALL)):
            blunt = entries[which]
            if len(self.found.blunt) + len(blunt) <= most:
                self.found.blunt += blunt.tolist()
            else:
                self.found.unseen += len(blunt)

    def signs(self, number: int, size: int, last: bool) -> Floats:
        """Random lengths and signs, then plain signs, then one way for all.

        Random lengths let no two wrong entries cancel; ties and sums show themselves most when
        all entries move one way.
        """
        if last:
            return np.ones(size)
        signs = np.asarray(self.rng.integers(0, 2, size) * 2.0 - 1.0, dtype=np.float64)
        if number == 0:
            signs = np.asarray(signs * self.rng.uniform(0.5, 1.0, size))
        return signs


def _sizes(walker: Walker) -> Floats:
    """By how much each entry moves the result, on the scale of its steps."""
    return np.asarray(np.abs(walker.analytic).max(axis=1, initial=0.0) * walker.scale)


def _by_size(walker: Walker, entries: Array) -> list[Array]:
    """Groups of entries of like size, or the large ones would hide the small ones."""
    size = _sizes(walker)[entries]
    largest = size.max(initial=0.0)
    small = (1e-5 if len(entries) < 1000 else 1e-4) * largest
    if len(entries) and size.min() >= small and largest > 0:
        return [entries]
    groups = []
    for high, low in pairwise([np.inf, small, 1e-4 * small, 0.0]):
        groups.append(entries[(size < high) & (size >= low) & (size > 0)])
    groups.append(entries[size == 0])
    return [group for group in groups if len(group)]


def _agrees(
    walker: Walker, entries: Array, signs: Floats, found: Directed, drift: Floats | None
) -> tuple[bool, Floats | None]:
    """Whether the gradient is the slope along one direction, but for the numeric side's error.

    `drift` is how much the rate at the last of the first steps was off for a direction before;
    where it is known, that step alone is tried first.
    """
    norm = walker.norm(entries)
    quick = None
    if drift is not None:
        right, left, noise = walker.excess(entries, signs, _FIRST[-1])
        off = np.abs(right + left) / (2 * _FIRST[-1])
        quick = SURE * (drift + 2 * noise / _FIRST[-1]) + walker.floor * norm
        if ((off <= quick) & np.isfinite(quick)).all():
            found.saw(quick, off)
            return True, drift
    ladders = walker.climb(entries, signs, _FIRST)
    wanted = np.maximum(walker.floor * norm, 1e-5 * norm / np.sqrt(len(entries)))
    for more in (None, _MORE):
        if more is not None:
            walker.load(walker.x)
            walker.heads.look_inside()
            ladders = walker.climb(entries, signs, more, ladders)
        if not all(ladder.right.keys() & ladder.left.keys() for ladder in ladders):
            continue
        centrals = [ladder.central() for ladder in ladders]
        limit = _two_steps if more is None else partial(slope, order=2)
        estimates = [
            limit(central, noise=ladder.noise)
            for central, ladder in zip(centrals, ladders, strict=True)
        ]
        values = np.array([abs(e.value) for e in estimates])
        errors = np.array([e.error for e in estimates])
        allowed = np.maximum(SURE * errors, walker.floor * norm)
        # What is off by an unknown amount agrees with nothing.
        fits = bool(((values <= allowed) & np.isfinite(allowed)).all())
        if fits and not norm.any() and not values.any():
            found.saw(allowed, values)
            return True, None
        dull = more is None and bool((allowed > SURE * wanted + 1e-300).any())
        if fits and not dull:
            found.saw(allowed, values)
            last = np.array([central[-1][1] / central[-1][0] for central in centrals])
            return True, np.abs(last - [e.value for e in estimates]) + errors
    return False, None


def _two_steps(points: list[tuple[float, float]], noise: float) -> Estimate:
    """The limit of two central rates, and its error: most of what the second did not change."""
    if len(points) < 2:
        return slope(points, 2, noise)
    (large, first), (small, second) = points
    moved = second / small - first / large
    value = second / small + moved / ((large / small) ** 2 - 1)
    return Estimate(value, 0.1 * abs(moved) + 2 * noise / small, small)


def _halve(walker: Walker, entries: Array, signs: Floats, limit: int, found: Directed) -> list[int]:
    """The entries at which the difference along one direction is at home."""
    step = _usable_step(walker, entries, signs)
    if step is None:
        step = _MORE[2]
    size = walker.norm(entries)
    total, noise = _difference(walker, entries, signs, step)
    again, _ = _difference(walker, entries, signs, step / 3)
    drift = np.abs(total - again)
    suspects: list[int] = []
    pending = [(np.arange(len(entries)), total)]
    while pending:
        at, known = pending.pop()
        if len(at) == 1:
            suspects.append(int(entries[at[0]]))
            continue
        if len(suspects) > MOST_SUSPECTS or walker.subject.evaluations > limit:
            found.unresolved = True
            # One way for all is the sharpest: each entry adds its own share to the sum.
            found.between = all(_between(walker, entries, u) for u in (signs, np.abs(signs)))
            break
        first, second = at[: len(at) // 2], at[len(at) // 2 :]
        one, noise = _difference(walker, entries[first], signs[first], step)
        other = known - one
        if not np.isfinite(other).all():
            other, _ = _difference(walker, entries[second], signs[second], step)
        for part, difference in ((second, other), (first, one)):
            norm = walker.norm(entries[part])
            share = np.divide(norm, size, out=np.zeros_like(norm), where=size > 0)
            allowed = np.maximum.reduce([SURE * noise, SURE * drift * share, walker.floor * norm])
            if not (np.abs(difference) <= allowed).all():
                pending.append((part, difference))
    return suspects


def _difference(
    walker: Walker, entries: Array, signs: Floats, step: float
) -> tuple[Floats, Floats]:
    right, left, noise = walker.excess(entries, signs, step)
    return (right + left) / (2 * step), noise / step


def _usable_step(walker: Walker, entries: Array, signs: Floats) -> float | None:
    """The step at which the difference is most certain; None if no step is finite.

    Where absolute steps leave the domain, steps relative to each entry are tried.
    """
    for relative in (False, True):
        if relative:
            if not (walker.x[entries] != 0).any():
                return None
            walker.relative_steps()
        ladders = walker.climb(entries, signs, (8.3e-4, *_FIRST, 8.3e-7, 8.3e-8))
        estimates = [
            slope(ladder.central(), 2, ladder.noise)
            for ladder in ladders
            if ladder.right.keys() & ladder.left.keys()
        ]
        if estimates:
            best = max(estimates, key=lambda e: abs(e.value))
            return best.step / 2
    return None


def _between(walker: Walker, entries: Array, signs: Floats) -> bool:
    """Whether the one-sided slopes along a direction enclose the predicted one."""
    for ladder, norm in zip(
        walker.climb(entries, signs, (8.3e-6, 8.3e-7, 8.3e-8, 8.3e-9)),
        walker.norm(entries),
        strict=True,
    ):
        right = slope(ladder.one_sided(ladder.right), 1, ladder.noise)
        left = slope(ladder.one_sided(ladder.left), 1, ladder.noise)
        low, high = sorted((right.value, left.value))
        slack = SURE * (right.error + left.error) + walker.floor * float(norm)
        if not low - slack <= 0 <= high + slack:
            return False
    return True
