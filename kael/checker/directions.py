"""Many entries at once: random directions first, then halving to find the wrong ones.

Along a direction u of random signs every entry takes part with full weight, so one wrong entry
shows itself in each direction unless another cancels it by chance. The tolerance is the numeric
side's own error for that very sum, on the scale of the root of the sum of squared terms, never a
share of the sum: that is what lets one entry in a million be seen. What differs is halved with
the same signs until single entries are left; those are judged one by one by `entries`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from kael.checker.entries import Heads
from kael.checker.kinks import SURE
from kael.checker.model import Array, Floats
from kael.checker.numeric import Ladder, slope
from kael.checker.subject import Subject

DIRECTIONS = 3
MOST_SUSPECTS = 96
MOST_EVALUATIONS = 900

# The least that is called a difference, as a share of the root of the sum of squared terms.
_FLOOR, _FLOOR_FLOAT32 = 1e-7, 3e-5

_FIRST = (8.3e-5, 8.3e-6)
_MORE = (8.3e-7, 8.3e-4, 8.3e-8, 8.3e-3, 8.3e-9)


@dataclass
class Directed:
    """What directions found: suspects to be judged one by one, and how sharp the look was.

    `sharpness` is the smallest error in one entry that would have been seen. `unresolved` says
    that more differs than could be traced to single entries; `between` that there the two sides
    have different slopes which enclose the analytic one; `vague` that a difference came and went
    with the steps.
    """

    suspects: list[int] = field(default_factory=list)
    sharpness: float = 0.0
    directions: int = 0
    unresolved: bool = False
    between: bool = False
    vague: bool = False
    excess: float = 0.0


class Walker:
    """Walks one input along signed directions and compares with what the gradient predicts."""

    def __init__(self, subject: Subject, which: int, analytic: Floats, heads: Heads) -> None:
        self.subject, self.which, self.heads = subject, which, heads
        self.analytic = analytic
        self.flat = subject.flat(which)
        self.x = np.array(self.flat, dtype=np.float64)
        self.scale = np.maximum(1.0, np.abs(self.x))
        self.floor = _FLOOR_FLOAT32 if subject.float32 else _FLOOR

    def relative_steps(self) -> None:
        """Step by a share of each entry, which stays inside of a domain that ends at 0."""
        self.scale = np.abs(self.x)

    def norm(self, entries: Array) -> Floats:
        """The scale of a sum over these entries with random signs, one number a head."""
        terms = self.analytic[entries] * self.scale[entries, None]
        return np.asarray(np.sqrt((terms * terms).sum(axis=0)))

    def excess(self, entries: Array, signs: Floats, step: float) -> tuple[Floats, Floats, Floats]:
        """What f changes by to either side beyond the prediction, and the rounding in it."""
        right, noise = self._one_way(entries, signs, step)
        left, _ = self._one_way(entries, signs, -step)
        return right, -left, noise

    def _one_way(self, entries: Array, signs: Floats, step: float) -> tuple[Floats, Floats]:
        x = self.x[entries]
        moved = x + step * signs * self.scale[entries]
        self.flat[entries] = moved
        try:
            row = self.subject.evaluate()
        finally:
            self.flat[entries] = x
        change, noise = self.heads.changes(row[None, :])
        predicted = (moved - x) @ self.analytic[entries]
        rounding = np.finfo(np.float64).eps * np.abs(predicted)
        return change[0] - predicted, np.hypot(noise[0], rounding)

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
    which: int,
    analytic: Floats,
    heads: Heads,
    rng: np.random.Generator,
    budget: int = MOST_EVALUATIONS,
) -> Directed:
    """Look along random directions for entries whose analytic derivative is not the slope."""
    walker = Walker(subject, which, analytic, heads)
    found = Directed()
    limit = subject.evaluations + budget
    everything = np.flatnonzero(np.isfinite(analytic).all(axis=1))
    found.suspects += np.flatnonzero(~np.isfinite(analytic).all(axis=1))[:MOST_SUSPECTS].tolist()
    for entries in _by_size(walker, everything):
        left = entries
        clean = vanished = 0
        while clean < DIRECTIONS:
            if not len(left):
                break
            signs = rng.choice((-1.0, 1.0), size=len(left))
            if clean == DIRECTIONS - 1:
                # Ties and sums show themselves most when all entries move one way.
                signs = np.abs(signs)
            found.directions += 1
            if _agrees(walker, left, signs, found):
                clean += 1
                continue
            suspects = _halve(walker, left, signs, limit, found)
            found.suspects += suspects
            if found.unresolved:
                break
            if not suspects:
                # Gone under other steps: look again with those, and say so if it comes back.
                vanished += 1
                if vanished > 2:
                    found.vague = True
                    break
            left = np.setdiff1d(left, suspects, assume_unique=True)
            clean = 0
        if found.unresolved:
            break
    return found


def _by_size(walker: Walker, entries: Array) -> Iterator[Array]:
    """Groups of entries of like size, or the large ones would hide the small ones."""
    size = (np.abs(walker.analytic[entries]).max(axis=1)) * walker.scale[entries]
    largest = size.max(initial=0.0)
    bounds = [np.inf, 1e-3 * largest, 1e-7 * largest, 0.0]
    for high, low in pairwise(bounds):
        group = entries[(size < high) & (size >= low) & (size > 0)]
        if len(group):
            yield group
    if len(group := entries[size == 0]):
        yield group


def _agrees(walker: Walker, entries: Array, signs: Floats, found: Directed) -> bool:
    """Whether the gradient is the slope along one direction, but for the numeric side's error."""
    ladders = walker.climb(entries, signs, _FIRST)
    norm = walker.norm(entries)
    wanted = np.maximum(walker.floor * norm, 1e-5 * norm / np.sqrt(len(entries)))
    for more in (None, _MORE):
        if more is not None:
            ladders = walker.climb(entries, signs, more, ladders)
        if not all(ladder.right.keys() & ladder.left.keys() for ladder in ladders):
            continue
        estimates = [slope(ladder.central(), 2, ladder.noise) for ladder in ladders]
        values = np.array([abs(e.value) for e in estimates])
        allowed = np.maximum([SURE * e.error for e in estimates], walker.floor * norm)
        dull = more is None and bool((allowed > SURE * wanted + 1e-300).any())
        exact = bool((values == 0).all()) and not norm.any()
        if exact or (not dull and bool((values <= allowed).all())):
            if not exact:
                found.sharpness = max(found.sharpness, float(allowed.max()))
            return True
        if more is not None and bool((values <= allowed).all()):
            found.sharpness = max(found.sharpness, float(allowed.max()))
            return True
    return False


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
            found.excess = float(np.nanmax(np.abs(total)))
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
