"""What is measured of a problem before anybody says what is wrong with it.

At the given point and at some others (beside it, mirrored, shuffled, larger, smaller) the whole
numeric Jacobian is taken, so that the right gradient is known for every upstream gradient, and
the claimed gradient is asked for under several. A fault is a rule that predicts the claimed
numbers from the right ones; it is found when it predicts all of them, at every point. What the
rules are is in `faults`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kael.checker.model import Array, Diagnosis, Floats
from kael.checker.problems import Problem, Use
from kael.checker.properties import dense

MOST_ENTRIES = 512
"""Entries of one input whose slopes are taken at the given point."""

MOST_ELSEWHERE = 24

FEWEST = 8

MOST_NUMBERS = 1 << 23
"""Numbers that are computed at one point, inputs and outputs over all evaluations."""

WIDE = 4096
"""Outputs beyond which only those that move are kept."""

LENGTH = 3e-4
"""The step of a slope, as a share of an input of ordinary size."""

SHARP = 1e-8
"""The relative error of a slope that needs no other step."""

ENOUGH = 3
"""Numbers that a rule must predict before it is believed."""

# Two exact numbers may differ by rounding; what differences are off by is known by themselves.
_RELATIVE, _RELATIVE_FLOAT32 = 2e-8, 3e-4


@dataclass
class Point:
    """The values of all inputs somewhere, and the slopes of every output along some entries."""

    label: str
    arrays: list[Array]
    entries: Array
    slopes: Floats
    errors: Floats
    bent: Array
    """Entries at which the slopes of the two sides differ: at a kink."""
    outputs: Array | None = None
    """The outputs that the columns are of; None: all. Those that do not move are left out."""

    def under(self, upstream: Floats) -> Floats:
        """The right gradient of the entries under an upstream gradient."""
        kept = upstream if self.outputs is None else upstream[self.outputs]
        return np.asarray(self.slopes @ kept)

    def doubt(self, upstream: Floats) -> Floats:
        """How far that may be off."""
        kept = upstream if self.outputs is None else upstream[self.outputs]
        rounding = 1e-13 * float(np.abs(self.slopes).max(initial=0))
        return np.asarray(30 * self.errors @ np.abs(kept) + rounding)


@dataclass
class View:
    """One input at one point under one upstream gradient: what is claimed and what is right.

    `claimed`, `right` and `doubt` (how far `right` may be off) are flat over `entries`.
    """

    point: Point
    upstream: Floats
    whole: Array
    """The claimed gradient as it came."""
    claimed: Floats
    right: Floats
    doubt: Floats
    x: Floats
    relative: float = _RELATIVE

    @property
    def entries(self) -> Array:
        """The flat entries that were measured."""
        return self.point.entries

    def slack(self, predicted: Floats) -> Floats:
        """How far two equal numbers may be apart."""
        size = np.fmax(np.abs(self.claimed), np.abs(predicted))
        return np.asarray(self.relative * size + self.doubt)

    def under(self, upstream: Floats) -> Floats:
        """The right gradient under another upstream gradient."""
        return self.point.under(upstream)

    @cached_property
    def wrong(self) -> Array:
        """Which entries are claimed wrongly; at a kink nothing is said."""
        with np.errstate(invalid="ignore"):
            close = np.abs(self.claimed - self.right) <= self.slack(self.right)
        return ~close & ~self.point.bent


@dataclass(frozen=True)
class Probe:
    """The claimed gradient of one input under upstream gradients that belong together."""

    one: Array
    other: Array
    both: Array
    double: Array
    negative: Array
    zero: Array


@dataclass
class Evidence:
    """All that is known of one input of a problem whose gradient does not hold."""

    problem: Problem
    index: int
    failing: Array | None = None
    """The entries that the check found wrong; None: whatever is measured."""
    compared: int = 0
    reason: str | None = None
    _views: dict[str, list[View]] = field(default_factory=dict)
    _others: dict[tuple[str, int], Point | None] = field(default_factory=dict)
    _probe: Probe | None = None

    @property
    def name(self) -> str:
        """The input's name."""
        return self.problem.names[self.index]

    @property
    def what(self) -> str:
        """How a sentence calls the gradient it is about."""
        return self.problem.what.format(name=self.name)

    @property
    def array(self) -> Array:
        """The input's values at the given point."""
        return self.problem.arrays[self.index]

    @property
    def shape(self) -> tuple[int, ...]:
        """The input's shape."""
        return self.array.shape

    @property
    def size(self) -> int:
        """How many entries the input has."""
        return int(self.array.size)

    @property
    def complete(self) -> bool:
        """Whether every entry was measured at the given point."""
        return len(self.given[0].entries) == self.size if self.given else False

    @property
    def among(self) -> str:
        """`in 3 of 6 entries`, the end of a sentence about this input."""
        wrong = int(self.wrong_at_given.sum())
        # Where each output was compared by itself, an entry counts once all the same.
        total = min(self.compared or self.size, self.size)
        if self.failing is not None and len(self.failing) < total > 64 and self._wrong_throughout:
            return f" in all of the {len(self.failing)} entries looked at one by one"
        if self.failing is None and 0 < len(self.wrong_at_given) < self.size:
            looked = len(self.wrong_at_given)
            some = "all" if wrong == looked else f"{wrong}"
            return f" in {some} of the {looked} entries looked at one by one"
        if self.failing is not None:
            wrong = max(wrong, len(self.failing))
        if wrong >= total:
            return "" if total == 1 else f" in all {total} entries"
        return f" in {wrong} of {total} entries"

    @property
    def _wrong_throughout(self) -> bool:
        return bool(self.given) and bool(self.given[0].wrong.all())

    @cached_property
    def upstreams(self) -> list[Floats]:
        """The upstream gradients that are looked at."""
        if self.problem.upstream is not None:
            return [self.problem.upstream]
        size = max(1, int(np.prod(self.problem.output_shape)))
        first, second = dense(size, 0), dense(size, 1)
        return [first, -1.37 * first if size == 1 else -np.copysign(second, first)]

    @cached_property
    def given(self) -> list[View]:
        """The given point, one view an upstream gradient."""
        return self._at("given", self.problem.arrays)

    @cached_property
    def elsewhere(self) -> list[View]:
        """Other points: beside the given one, mirrored, shuffled, smaller and larger."""
        return [view for label, arrays in self._points() for view in self._at(label, arrays)]

    @property
    def near(self) -> list[View]:
        """The point beside the given one, at which no two values are equal or zero."""
        return [view for view in self.elsewhere if view.point.label == "near"]

    @property
    def views(self) -> list[View]:
        """All of them."""
        return [*self.given, *self.elsewhere]

    @cached_property
    def wrong_at_given(self) -> Array:
        """The entries that are wrong at the given point, under any upstream gradient."""
        if not self.given:
            return np.zeros(0, dtype=bool)
        found = np.logical_or.reduce([view.wrong for view in self.given])
        if self.failing is not None:
            # What the check itself found, kinks among it.
            found = found | np.isin(self.given[0].entries, self.failing)
        return np.asarray(found)

    @property
    def wrong_nearby(self) -> bool:
        """Whether the gradient is wrong beside the given point too."""
        return any(view.wrong.any() for view in self.near)

    def fits(
        self,
        predict: Callable[[View], Floats | None],
        views: Sequence[View] | None = None,
        enough: int = ENOUGH,
    ) -> bool:
        """Whether a rule predicts the claimed gradient in every view it can speak of.

        It must have said something: predicted numbers that are not those that are right.
        """
        said, spoken = 0, set()
        for view in self.views if views is None else views:
            predicted = predict(view)
            if predicted is None:
                continue
            use = ~view.point.bent
            slack = view.slack(predicted)
            with np.errstate(invalid="ignore"):
                if not (np.abs(view.claimed - predicted) <= slack)[use].all():
                    return False
                said += int((np.abs(predicted - view.right) > 10 * slack)[use].sum())
            spoken.add(view.point.label)
        return said >= enough and (views is not None or len(spoken) > 1)

    def tell(self, code: str, predicate: str, remedy: str | None = None) -> Diagnosis:
        """A diagnosis: what it is about, what is wrong with it, and where."""
        message = f"{self.what} {predicate}{self.problem.where}"
        return Diagnosis(code, message, remedy, self.name)

    # Where it is wrong.

    def special(self) -> bool:
        """Whether it is wrong at the given point only, and right beside it."""
        if not self.given or not self.near or not self.wrong_at_given.any():
            return False
        return not self.wrong_nearby and self._seen_nearby

    @property
    def _seen_nearby(self) -> bool:
        """Whether what is wrong at the given point would have been seen beside it."""
        at = self.wrong_at_given
        off, size = [
            np.max([np.abs(part)[at] for part in parts], axis=0)
            for parts in (
                [view.claimed - view.right for view in self.given],
                [np.fmax(np.abs(view.claimed), np.abs(view.right)) for view in self.given],
            )
        ]
        entries = self.given[0].entries[at]
        for view in self.near:
            place = np.flatnonzero(np.isin(view.entries, entries))
            kept = np.isin(entries, view.entries)
            there = np.fmax(np.abs(view.claimed), np.abs(view.right))[place]
            hidden = view.slack(view.right)[place] * size[kept] > 0.5 * off[kept] * there
            if (hidden & (there > 0) & (off[kept] > 0)).any():
                return False
        return True

    def tied(self) -> Array:
        """Which entries at the given point have a value that occurs again."""
        entries = self.given[0].entries
        own = self.array.reshape(-1)
        values, inverse, counts = np.unique(own, return_inverse=True, return_counts=True)
        del values
        tied = counts[inverse.reshape(-1)] > 1
        for other, array in enumerate(self.problem.arrays):
            if other != self.index and array.shape == self.shape:
                tied = tied | (array.reshape(-1) == own)
        return np.asarray(tied[entries])

    @cached_property
    def _bar(self) -> float:
        """How many times its doubt a right number must be to show what is wrong with others."""
        least = 1.0
        for view in self.views:
            size = np.fmax(np.abs(view.claimed), np.abs(view.right))
            off = (np.abs(view.claimed - view.right) / size)[view.wrong]
            least = min(least, float(np.nanmin(off, initial=1.0)))
        return max(10.0, 2.0 / least) if least > 0 else math.inf

    def shown_right(self) -> int:
        """How many entries are right at the given point that would show it if they were wrong."""
        right = ~self.wrong_at_given
        for view in self.given:
            nothing = (view.right == 0) & (view.claimed == 0)
            right &= nothing | (np.abs(view.right) > self._bar * view.slack(view.right))
        return int(right.sum())

    def _seen(self) -> tuple[Floats, Array]:
        """Values and whether they are wrong, of all entries that say something.

        An entry says that it is right only if it would show what is wrong with the others.
        """
        values, wrong = [], []
        bar = self._bar
        for view in self.views:
            use = (np.abs(view.right) > bar * view.slack(view.right)) | view.wrong
            use &= ~view.point.bent
            values.append(view.x[use])
            wrong.append(view.wrong[use])
        if not values:
            return np.zeros(0), np.zeros(0, dtype=bool)
        return np.concatenate(values), np.concatenate(wrong)

    def wrong_where(self, inside: Callable[[Floats], Array]) -> bool:
        """Whether all entries inside are wrong and all outside right, and there are both."""
        x, wrong = self._seen()
        x, wrong = x[x != 0], wrong[x != 0]
        held = np.asarray(inside(x), dtype=bool)
        return bool(np.array_equal(wrong, held)) and wrong.sum() > 1 and (~wrong).sum() > 1

    def wrong_beyond(self) -> tuple[float, float] | None:
        """The largest size that is right and the smallest that is wrong, where they part."""
        x, wrong = self._seen()
        if wrong.sum() < 2 or (~wrong).sum() < 2:
            return None
        right, first = float(np.abs(x[~wrong]).max()), float(np.abs(x[wrong]).min())
        return (right, first) if right < first else None

    # What else could be claimed.

    def probe(self) -> Probe | None:
        """The claimed gradient under related upstream gradients, for its linearity."""
        if self._probe is None:
            one, other = self.upstreams
            asked = (one, other, one + other, 2 * one, -one, 0 * one)
            found = [self.claimed(self.problem.arrays, upstream) for upstream in asked]
            if any(part is None or not np.isfinite(part).all() for part in found[:5]):
                return None
            if found[5] is None:
                return None
            self._probe = Probe(*found)  # type: ignore[arg-type]
        return self._probe

    def right_of(self, other: int, view: View) -> Floats | None:
        """What is right for another input of the same shape, in the place of a view."""
        key = (view.point.label, other)
        if key not in self._others:
            with np.errstate(all="ignore"):
                self._others[key] = measured(
                    self.problem, view.point.label, view.point.arrays, other, view.entries
                )
        point = self._others[key]
        return None if point is None else point.under(view.upstream)

    def terms(self) -> Iterator[tuple[str, Callable[[View], Floats]]]:
        """The terms of the right gradient, each with the use it comes from, where known."""
        if len(self.uses) < 2:
            return
        for number, term in enumerate(self.uses):
            by_view = {id(view): use.gradient.reshape(-1) for view, use in term}
            text = term[0][1].text
            same = [t[0][1].text for t in self.uses[:number]].count(text)
            yield (
                text + (f" (use {same + 1})" if same else ""),
                lambda view, by_view=by_view: by_view[id(view)][view.entries],  # type: ignore[misc]
            )

    def claimed(self, arrays: Sequence[Array], upstream: Floats) -> Array | None:
        """The claimed gradient of this input somewhere; None where there is none."""
        try:
            with np.errstate(all="ignore"):
                return self.problem.gradients(arrays, upstream)[self.index]
        except Exception:
            # A function may raise anything elsewhere than where it was checked.
            return None

    @cached_property
    def uses(self) -> list[list[tuple[View, Use]]]:
        """For each use of the input in the formula, its term of the gradient in every view."""
        terms: list[list[tuple[View, Use]]] = []
        for view in self.views:
            with np.errstate(all="ignore"):
                found = self.problem.uses(view.point.arrays, view.upstream)
            if found is None or (terms and len(terms) != len(found[self.index])):
                return []
            if not terms:
                terms = [[] for _ in found[self.index]]
            total = np.zeros(self.size)
            for term, use in zip(terms, found[self.index], strict=True):
                term.append((view, use))
                total = total + use.gradient.reshape(-1)
            off = np.abs(total[view.entries] - view.right) > 10 * view.slack(view.right)
            if (off & ~view.point.bent).any():
                return []
        return terms

    def _points(self) -> Iterator[tuple[str, list[Array]]]:
        rng = np.random.default_rng([17, self.size, self.index])
        near = []
        for array in self.problem.arrays:
            stretch = 1 + 0.08 * rng.uniform(-1, 1, array.shape)
            moved = array * stretch
            off_zero = 0.05 + 0.1 * rng.random(array.shape)
            near.append(np.asarray(np.where(array == 0, off_zero, moved)))
        yield "near", near
        if self._affordable < 4 * FEWEST:
            return
        own = near[self.index]
        for label, other in (
            ("mirrored", -own),
            ("shuffled", np.roll(own.reshape(-1), 1).reshape(own.shape)),
            ("smaller", 0.1 * own),
            ("larger", 6.0 * own),
        ):
            if label == "shuffled" and self.size < 2:
                continue
            yield label, [*near[: self.index], np.asarray(other), *near[self.index + 1 :]]

    def _at(self, label: str, arrays: list[Array]) -> list[View]:
        if label not in self._views:
            self._views[label] = self._measured(label, arrays)
        return self._views[label]

    def _measured(self, label: str, arrays: list[Array]) -> list[View]:
        entries = self._entries(label)
        try:
            with np.errstate(all="ignore"):
                point = measured(self.problem, label, arrays, self.index, entries)
        except Exception:
            # A function may raise anything elsewhere than where it was checked.
            return []
        if point is None:
            return []
        views = []
        for upstream in self.upstreams:
            whole = self.claimed(arrays, upstream)
            if whole is None:
                return []
            flat = whole.reshape(-1)
            fits = whole.shape == self.shape
            claimed = flat[entries] if fits else np.full(len(entries), np.nan)
            x = arrays[self.index].reshape(-1)[entries]
            right, doubt = self._right(point, upstream, arrays)
            relative = _RELATIVE_FLOAT32 if self.problem.float32 else _RELATIVE
            views.append(View(point, upstream, whole, claimed, right, doubt, x, relative))
        return views

    def _right(self, point: Point, upstream: Floats, arrays: list[Array]) -> tuple[Floats, Floats]:
        """What is right, and how far it may be off: known, or else what the slopes say."""
        right, doubt = point.under(upstream), point.doubt(upstream)
        try:
            exact = self.problem.exact(arrays, self.index)
        except Exception:
            return right, doubt
        if exact is None:
            return right, doubt
        known = np.asarray(exact, dtype=np.float64).reshape(-1)[point.entries]
        close = np.abs(known - right) <= doubt + 1e-6 * np.abs(right)
        if not (close | point.bent).all():
            return right, doubt
        return known, np.full(len(known), 1e-13 * float(np.abs(known).max(initial=0.0)))

    def _entries(self, label: str) -> Array:
        most = MOST_ENTRIES if label == "given" else MOST_ELSEWHERE
        most = max(FEWEST, min(most, self._affordable // 4))
        if self.size <= most:
            return np.arange(self.size)
        most = min(most, MOST_ELSEWHERE)
        spread = np.linspace(0, self.size - 1, max(1, most // 2)).astype(np.int64)
        chosen = spread
        if self.failing is not None:
            chosen = np.concatenate([spread, self.failing[: most - len(spread)]])
        return np.unique(chosen)

    @property
    def _affordable(self) -> int:
        """Evaluations at one point, of which large ones get few."""
        outputs = int(np.prod(self.problem.output_shape))
        return MOST_NUMBERS // max(1, outputs + self.size)


def measured(
    problem: Problem, label: str, arrays: list[Array], index: int, entries: Array
) -> Point | None:
    """The slopes of every output along some entries; None where a value is not finite."""
    value = problem.output(arrays)
    if not np.isfinite(value).all():
        return None
    kept = _reached(problem, arrays, index, entries, value) if value.size > WIDE else None
    count = (len(entries), value.size if kept is None else len(kept))
    slopes, errors, bent = np.empty(count), np.empty(count), np.zeros(len(entries), dtype=bool)
    if kept is not None:
        value = value[kept]
    moved = list(arrays)
    moved[index] = work = arrays[index].copy()
    flat = work.reshape(-1)

    def output() -> Floats:
        outputs = problem.output(moved)
        return outputs if kept is None else outputs[kept]

    for row, entry in enumerate(entries.tolist()):
        best = math.inf
        for h in _lengths(float(flat[entry])):
            slope, error, is_bent = _slope(output, flat, entry, h, value)
            worst = float(error.max(initial=0.0))
            if worst < best or math.isinf(best):
                best, slopes[row], errors[row], bent[row] = worst, slope, error, is_bent
            if worst <= SHARP * float(np.abs(slope).max(initial=0.0)):
                break
    if not np.isfinite(slopes).all():
        return None
    return Point(label, arrays, entries, slopes, errors, bent, kept)


def _lengths(x: float) -> Iterator[float]:
    """Steps to try: a share of the input, and longer ones for where rounding drowns those."""
    length = LENGTH * (abs(x) if 0 < abs(x) < 1 else max(1.0, abs(x)))
    yield length
    while length < 1e-3 * LENGTH:
        length *= 1e3
        yield length


def _slope(
    output: Callable[[], Floats], flat: Array, entry: int, h: float, value: Floats
) -> tuple[Floats, Floats, bool]:
    """The slopes of all outputs along one entry, their errors, and whether there is a kink."""
    x = float(flat[entry])
    rounding = 2.3e-16 * np.abs(value)
    rates = []
    sides = []
    for step in (h, h / 4):
        flat[entry] = up = x + step
        above = output()
        flat[entry] = down = x - step
        below = output()
        rates.append((above - below) / (up - down))
        sides.append(((above - value) / (up - x), (value - below) / (x - down)))
    flat[entry] = x
    slope = rates[1] + (rates[1] - rates[0]) / 15
    error = np.abs(rates[1] - rates[0]) / 15 + 8 * rounding / h
    gaps = [np.abs(right - left) for right, left in sides]
    size = np.abs(slope) + np.abs(sides[1][0]) + 1e-300
    # A gap that does not shrink with the step is a kink, one that does is curvature.
    least = 1e-3 * size + 160 * rounding / h
    return slope, error, bool(((gaps[1] > 0.5 * gaps[0]) & (gaps[1] > least)).any())


def _reached(
    problem: Problem, arrays: list[Array], index: int, entries: Array, value: Floats
) -> Array | None:
    """The outputs that move with some entries, where those are few; None: all are kept."""
    moved = list(arrays)
    moved[index] = work = arrays[index].copy()
    flat = work.reshape(-1)
    x = flat[entries].copy()
    flat[entries] = x + 1e-3 * np.maximum(1.0, np.abs(x))
    changed = np.flatnonzero(problem.output(moved) != value)
    return np.asarray(changed) if len(changed) <= WIDE else None
