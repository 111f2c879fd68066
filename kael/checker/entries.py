"""Each entry against its own differences: one cheap pair first, a ladder of steps where needed.

Most entries are settled by one central difference. What that does not settle, for whatever
reason, is looked at again with steps of many sizes, and `kinks.judge` decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kael.checker import numeric
from kael.checker.kinks import SURE, Tolerance, Verdict, judge
from kael.checker.model import Array, Floats
from kael.checker.numeric import EPSILON, Ladder
from kael.checker.subject import Subject

Probe = Callable[[int, Array, Floats], tuple[Floats, Floats]]
"""(input, entries, signed steps) -> (steps really taken, outputs one row an entry)."""

# A second step, relative to max(1, |x|), for entries that the first did not move.
LONG = 1e-3
GOLDEN = (math.sqrt(5) - 1) / 2

MOST_LADDERS = 256
MOST_HIDDEN = 48
CONFIRMED = 12

# Rows of outputs held at once.
_BLOCK = 1 << 20


@dataclass
class Heads:
    """The numbers compared for each entry: weighted sums of the output, or its every element.

    `weights` has one column a head; None means that each element of the output is a head.
    """

    weights: Floats | None
    value: Floats
    measure: Callable[[Floats], float] | None = None
    """Gives the rounding of a weighted sum that its value does not show; asked when it matters."""

    def __post_init__(self) -> None:
        if self.weights is not None:
            terms = self.weights * self.value[:, None]
            # Scaled first: the square of a large value need not exist.
            self._unit = float(np.abs(terms).max(initial=0.0)) or 1.0
            self._parts = (terms / self._unit) ** 2
            self._noise: Floats = self._rounding(self._parts.sum(axis=0))
            self._inside = np.zeros(self.weights.shape[1])

    @property
    def sizes(self) -> Floats:
        """The size of each head's terms at the point."""
        if self.weights is None:
            return np.abs(self.value)
        return np.asarray(self._unit * np.sqrt(self._parts.sum(axis=0)))

    def look_inside(self) -> None:
        """Count the rounding of intermediate values from here on."""
        measure, self.measure = self.measure, None
        if measure is not None and self.weights is not None:
            self._inside = np.array([measure(column) for column in self.weights.T])
            self._noise = np.maximum(self._noise, self._inside)

    @property
    def count(self) -> int:
        """How many numbers are compared for each entry."""
        return self.value.size if self.weights is None else self.weights.shape[1]

    def change(self, row: Floats) -> tuple[Floats, Floats]:
        """The change of one evaluation in which every output may have moved."""
        assert self.weights is not None
        return (row - self.value) @ self.weights, self._noise

    def changes(self, rows: Floats) -> tuple[Floats, Floats]:
        """Changes from the value at the point, a row an entry, and the rounding in them.

        Outputs that did not move at all add no rounding.
        """
        return self.moves(rows), self.noise(rows)

    def moves(self, rows: Floats) -> Floats:
        """Changes from the value at the point, a row an entry."""
        moved = rows - self.value
        return moved if self.weights is None else moved @ self.weights

    def noise(self, rows: Floats) -> Floats:
        """The rounding in each change."""
        return self.noise_of(rows != self.value)

    def noise_of(self, shaken: Array) -> Floats:
        """The rounding in changes that shake some outputs, a row of booleans an entry."""
        # Where nothing moved at all the change may have been lost in any of them.
        shaken = shaken | ~shaken.any(axis=1, keepdims=True)
        if self.weights is None:
            return np.where(shaken, EPSILON * np.abs(self.value), 0.0)
        own = self._rounding(shaken.astype(np.float64) @ self._parts)
        return np.asarray(np.maximum(own, self._inside))

    def _rounding(self, squares: Floats) -> Floats:
        return np.asarray(EPSILON * self._unit * np.sqrt(squares))


@dataclass
class Compared:
    """All entries of one input that were compared, flat, with their verdicts."""

    entries: Array
    heads: Array
    analytic: Floats
    numeric: Floats
    error: Floats
    status: Array
    verdicts: dict[tuple[int, int], Verdict]
    covered: int | None = None
    """How many entries took part, where directions looked at more than are listed here."""
    excess: float = 0.0
    """The largest difference along a direction that agreed."""
    sharpness: float | None = None
    """The smallest error in one entry that directions would have shown."""
    how: str | None = None
    """How the whole was looked at, where not entry by entry."""
    doubt: str | None = None
    """Why the whole cannot be told although each entry listed was judged."""

    @property
    def wrong(self) -> Array:
        """Which were judged wrong."""
        return np.asarray(self.status == "failed")


def blank(claimed: Floats) -> Compared:
    """Nothing compared yet: every entry passed without a numeric derivative."""
    count = len(claimed)
    return Compared(
        np.arange(count),
        np.zeros(count, dtype=np.int64),
        claimed.copy(),
        np.full(count, math.nan),
        np.full(count, math.nan),
        np.full(count, "passed", dtype=object),
        {},
    )


def probe_each(subject: Subject) -> Probe:
    """Move one entry at a time, in place."""

    def probe(which: int, entries: Array, steps: Floats) -> tuple[Floats, Floats]:
        flat = subject.flat(which)
        taken = np.empty(len(entries))
        rows = np.empty((len(entries), math.prod(subject.output_shape)))
        evaluate = subject.evaluate
        numbers = zip(entries.tolist(), steps.tolist(), strict=True)
        for row, (entry, step) in enumerate(numbers):
            x = flat[entry]
            flat[entry] = moved = x + step
            taken[row] = moved - x
            try:
                rows[row] = evaluate()
            finally:
                flat[entry] = x
        return taken, rows

    return probe


def compare_entries(
    subject: Subject,
    probe: Probe,
    which: int,
    entries: Array,
    analytic: Floats,
    heads: Heads,
    tolerance: Tolerance,
    eps: float,
    fine: bool = False,
    most_ladders: int = MOST_LADDERS,
) -> Compared:
    """Compare `analytic` (a row an entry, a column a head) with differences."""
    x = np.abs(np.asarray(subject.arrays[which], dtype=np.float64).reshape(-1)[entries])
    count, columns = len(entries), heads.count
    numbers, errors = np.empty((count, columns)), np.empty((count, columns))
    settled = np.zeros((count, columns), dtype=bool)
    hidden = np.zeros((count, columns), dtype=bool)
    gaps = np.zeros((count, columns))
    verdicts: dict[tuple[int, int], Verdict] = {}
    if fine:
        errors[:] = math.inf
        numbers[:] = math.nan
    else:
        steps = np.maximum(eps * np.maximum(1.0, x), 4 * np.spacing(x))
        for block in _blocks(count, subject):
            up, right, noise = _changes(probe, which, entries[block], steps[block], heads)
            down, left = _moves(probe, which, entries[block], -steps[block], heads)
            width = up + down
            number = (right + left) / width
            numbers[block] = number
            errors[block] = 2 * noise / width
            gaps[block] = np.abs(right / up - left / down)
        settled, hidden = _settle(analytic, numbers, errors, gaps, tolerance)
        still = ((analytic == 0) & (numbers == 0) & (gaps == 0)).all(axis=1)
        if still.any():
            far = LONG * np.maximum(1.0, x)
            drowned = SURE * errors * (steps / far)[:, None]
            if (drowned[still] > tolerance.atol).any():
                far, drowned = 10 * far, drowned / 10
            settled[still] &= ~_moved_further(subject, which, entries[still], far[still], heads)
            # What even such a step would not show of a large value is not verified.
            dull = still[:, None] & settled & (drowned > tolerance.atol)
            for row, column in zip(*np.nonzero(dull), strict=True):
                unseen = float(drowned[row, column])
                verdicts[row, column] = Verdict("passed", 0.0, unseen, unverified=True)
    status = np.full((count, columns), "passed", dtype=object)
    if settled.all() and not fine:
        return _compared(entries, analytic, numbers, errors, status, verdicts)
    status[~settled] = "inconclusive"
    size = np.max(np.abs(analytic), where=np.isfinite(analytic), initial=0.0)
    tolerance = replace(tolerance, rounding=32 * EPSILON * float(size))
    heads.look_inside()
    open_rows = _worth_looking(analytic, numbers, settled, hidden, most_ladders)
    for row, column in zip(*np.nonzero(hidden), strict=True):
        if row not in open_rows:
            status[row, column] = "passed"
            verdicts[row, column] = Verdict(
                "passed", numbers[row, column], errors[row, column], unverified=True
            )
    looked = _look_closer(
        subject, probe, which, entries, open_rows, analytic, heads, tolerance, eps, fine
    )
    for (row, column), verdict in looked.items():
        if settled[row, column] and verdict.status == "inconclusive":
            continue
        status[row, column] = verdict.status
        numbers[row, column] = verdict.numeric
        errors[row, column] = verdict.error
        verdicts[row, column] = verdict
    _judge_rest(status, analytic, numbers, errors, settled, tolerance, verdicts)
    return _compared(entries, analytic, numbers, errors, status, verdicts)


def _compared(
    entries: Array,
    analytic: Floats,
    numbers: Floats,
    errors: Floats,
    status: Array,
    verdicts: dict[tuple[int, int], Verdict],
) -> Compared:
    count, columns = status.shape
    several = columns > 1
    return Compared(
        np.repeat(entries, columns) if several else entries,
        np.tile(np.arange(columns), count) if several else np.zeros(count, dtype=np.int64),
        analytic.reshape(-1),
        numbers.reshape(-1),
        errors.reshape(-1),
        status.reshape(-1),
        {(int(entries[row]), int(column)): verdict for (row, column), verdict in verdicts.items()},
    )


def _settle(
    analytic: Floats, numbers: Floats, errors: Floats, gaps: Floats, tolerance: Tolerance
) -> tuple[Array, Array]:
    """Which pairs one difference settles as equal, and which its rounding alone hides."""
    # An infinity is near to no number, and an overflow is no slope: a ladder looks at those.
    finite = np.isfinite(analytic) & np.isfinite(numbers)
    difference = np.where(finite, np.abs(analytic - numbers), np.nan)
    size = np.maximum(np.abs(analytic), np.abs(numbers))
    share = tolerance.rtol * size
    # What nearly always holds needs no more than this.
    plain = (difference <= share) & (SURE * errors <= share) & (gaps <= 1e-2 * size)
    if tolerance.rtol <= 1e-3 and plain.all():
        return plain, np.zeros_like(plain)
    allowed = difference <= tolerance.atol + tolerance.rtol * np.abs(numbers)
    alike = difference <= share if tolerance.strict else allowed
    exact = (analytic == 0) & (numbers == 0) & (gaps == 0)
    sharp = SURE * errors <= (share if tolerance.strict else tolerance.atol + share)
    # A kink whose two slopes happen to average to the analytic value must not go unseen, nor a
    # step so long that the function has come and gone within it.
    bent = gaps > 1e-2 * size + 40 * errors
    settled = exact | (allowed & alike & sharp & ~bent)
    hidden = allowed & (difference <= SURE * errors) & ~bent & ~settled
    return settled, hidden


def _worth_looking(
    analytic: Floats, numbers: Floats, settled: Array, hidden: Array, most: int
) -> set[int]:
    """The rows that get a ladder: all that are open, up to a limit, the worst and some others."""
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(analytic), np.abs(numbers))
        worse = np.where(settled, -1.0, np.abs(analytic - numbers) / np.where(size > 0, size, 1.0))
    worse[np.isnan(worse) & ~settled] = math.inf
    score = worse.max(axis=1)
    open_rows = np.flatnonzero((~settled & ~hidden).any(axis=1))
    only_hidden = np.setdiff1d(np.flatnonzero((~settled & hidden).any(axis=1)), open_rows)
    if len(only_hidden) > min(most, MOST_HIDDEN):
        kept = np.argsort(-score[only_hidden])[: min(most, MOST_HIDDEN)]
        only_hidden = only_hidden[kept]
    if len(open_rows) > most:
        order = open_rows[np.argsort(-score[open_rows], kind="stable")]
        half = max(1, most // 2)
        spread = order[half:][:: max(1, (len(order) - half) // half)][:half]
        open_rows = np.concatenate([order[:half], spread])[:most]
    return set(open_rows.tolist()) | set(only_hidden.tolist())


def _judge_rest(
    status: Array,
    analytic: Floats,
    numbers: Floats,
    errors: Floats,
    settled: Array,
    tolerance: Tolerance,
    verdicts: dict[tuple[int, int], Verdict],
) -> None:
    """What no ladder looked at, when very many entries differ: one difference has to do.

    It does not where of all that were looked at closely none failed.
    """
    believed = any(verdict.status == "failed" for verdict in verdicts.values())
    for row, column in zip(*np.nonzero(~settled), strict=True):
        if (row, column) in verdicts:
            continue
        a, n, e = analytic[row, column], numbers[row, column], errors[row, column]
        wrong = abs(a - n) > SURE * e and abs(a - n) > 0.05 * max(abs(a), abs(n))
        if not np.isfinite(n):
            continue
        if wrong and believed:
            status[row, column] = "failed"
            verdicts[row, column] = Verdict("failed", n, e)
        elif tolerance.allows(a, n):
            status[row, column] = "passed"
            verdicts[row, column] = Verdict("passed", n, e, unverified=True)


def _blocks(count: int, subject: Subject) -> list[slice]:
    size = max(1, math.prod(subject.output_shape))
    rows = max(1, _BLOCK // size)
    return [slice(start, start + rows) for start in range(0, count, rows)]


def _changes(
    probe: Probe, which: int, entries: Array, steps: Floats, heads: Heads
) -> tuple[Floats, Floats, Floats]:
    """Distance walked, f(x+h) - f(x), and the rounding in it, for steps that are positive."""
    taken, rows = probe(which, entries, steps)
    return taken[:, None], heads.moves(rows), heads.noise(rows)


def _moves(
    probe: Probe, which: int, entries: Array, steps: Floats, heads: Heads
) -> tuple[Floats, Floats]:
    """Distance walked and f(x) - f(x-h), for steps that are negative."""
    taken, rows = probe(which, entries, steps)
    return -taken[:, None], -heads.moves(rows)


def _moved_further(
    subject: Subject, which: int, entries: Array, lengths: Floats, heads: Heads
) -> Array:
    """Which heads move under a long step of an entry, after a short one did not move them.

    A change below the rounding of a large value looks like none: 1e10 + x / 2 does not move by a
    step of 1e-6. All entries move at once, by lengths that cannot cancel, and what moves is halved.
    """
    flat = subject.flat(which)
    steps = lengths * (0.5 + 0.5 * (np.arange(len(lengths)) * GOLDEN % 1))
    moved = np.zeros((len(entries), heads.count), dtype=bool)
    pending = [np.arange(len(entries))]
    while pending:
        rows = pending.pop()
        before = flat[entries[rows]].copy()
        found, lost = np.zeros(heads.count, dtype=bool), False
        for side in (steps[rows], -steps[rows]):
            flat[entries[rows]] = before + side
            try:
                change = heads.moves(subject.evaluate()[None])[0]
            finally:
                flat[entries[rows]] = before
            lost |= not np.isfinite(change).all()
            found |= (change != 0) & np.isfinite(change)
        if (found.any() or lost) and len(rows) > 1:
            pending += [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
        else:
            moved[rows] = found
    return moved


def _look_closer(
    subject: Subject,
    probe: Probe,
    which: int,
    entries: Array,
    open_rows: set[int],
    analytic: Floats,
    heads: Heads,
    tolerance: Tolerance,
    eps: float,
    fine: bool,
) -> dict[tuple[int, int], Verdict]:
    """Ladders for the open rows, the near steps first and the far ones where they matter."""
    rows = sorted(open_rows)
    if not rows:
        return {}
    x = np.asarray(subject.arrays[which], dtype=np.float64).reshape(-1)
    climb = _Climb(probe, which, entries, x, heads)
    climb.largest = max(
        (float(np.abs(array).max(initial=0.0)) for array in subject.arrays), default=0.0
    )
    if fine:
        climb.walk(rows, lambda value: numeric.fine_steps(value))
        verdicts = climb.judged(rows, analytic, tolerance)
        rows = sorted({row for (row, _), v in verdicts.items() if _unsure(v)})
    else:
        verdicts = {}
    climb.walk(rows, lambda value: numeric.near_steps(value, eps))
    verdicts.update(climb.judged(rows, analytic, tolerance))
    unsure = sorted({row for (row, _), v in verdicts.items() if _unsure(v)})
    failed = [row for row in unsure if any(_failed(verdicts, row, heads.count))]
    others = [row for row in unsure if row not in set(failed)]
    first, rest = failed[:CONFIRMED], failed[CONFIRMED:]
    for group in (others + first, rest):
        before = {row: list(_failed(verdicts, row, heads.count)) for row in group}
        climb.walk(group, lambda value: numeric.far_steps(value, eps))
        verdicts.update(climb.judged(group, analytic, tolerance))
        if climb.deepen(group, verdicts, analytic, tolerance.rtol or 1e-3):
            verdicts.update(climb.judged(group, analytic, tolerance))
        climb.recheck_stairs(group, verdicts, analytic, tolerance)
        upheld = all(
            list(_failed(verdicts, row, heads.count)) == before[row]
            for row in group
            if row in set(first)
        )
        if upheld and len(first) == CONFIRMED:
            # A dozen verdicts stood up to every step: the others of their kind are believed.
            break
    return verdicts


def _unsure(verdict: Verdict) -> bool:
    return verdict.status != "passed" or verdict.unverified or verdict.shape != "smooth"


def _failed(verdicts: dict[tuple[int, int], Verdict], row: int, columns: int) -> list[bool]:
    return [
        (verdict := verdicts.get((row, column))) is not None and verdict.status == "failed"
        for column in range(columns)
    ]


class _Climb:
    """The ladders of some rows of one input, one a head, filled step by step."""

    def __init__(self, probe: Probe, which: int, entries: Array, x: Floats, heads: Heads) -> None:
        self.probe, self.which, self.entries, self.x, self.heads = probe, which, entries, x, heads
        self.ladders: dict[tuple[int, int], Ladder] = {}
        self.shaken: dict[int, Array] = {}
        self.largest = 0.0
        """The largest value of all inputs."""

    def walk(self, rows: list[int], steps_of: Callable[[float], list[float]]) -> None:
        """Add the steps that `steps_of` gives for the value of each row's entry."""
        wanted = [
            (row, step) for row in rows for step in steps_of(float(self.x[self.entries[row]]))
        ]
        if not wanted:
            return
        size = max(1, self.heads.value.size)
        for start in range(0, len(wanted), max(1, _BLOCK // size)):
            self._take(wanted[start : start + max(1, _BLOCK // size)])

    def deepen(
        self,
        rows: list[int],
        verdicts: dict[tuple[int, int], Verdict],
        analytic: Floats,
        rtol: float,
    ) -> bool:
        """Go down, where a row fails or grows, to the smallest steps that can show it."""
        wanted = []
        for row in rows:
            needed = [
                SURE * self.ladders[row, column].noise / gap
                for column in range(self.heads.count)
                if (verdict := verdicts.get((row, column))) is not None
                and verdict.status == "failed"
                and 0 < (gap := abs(verdict.numeric - analytic[row, column])) < math.inf
            ]
            # Beside the edge of a domain, a slope that grows may only not have settled yet.
            needed += [
                0.0
                for column in range(self.heads.count)
                if (verdict := verdicts.get((row, column))) is not None
                and verdict.shape == "infinite"
                and verdict.status == "inconclusive"
                and math.isfinite(analytic[row, column])
            ]
            # Nor may one whose error is not the rounding of its values.
            needed += [
                SURE * ladder.noise / (rtol * abs(verdict.numeric))
                for column in range(self.heads.count)
                if (verdict := verdicts.get((row, column))) is not None
                and verdict.status == "inconclusive"
                and verdict.reason == "noise"
                and verdict.shape in ("smooth", "edge")
                and math.isfinite(verdict.error)
                and verdict.numeric != 0
                and SURE * (ladder := self.ladders[row, column]).noise
                < verdict.error * min([*ladder.right, *ladder.left])
            ]
            taken = [
                step
                for column in range(self.heads.count)
                for side in (self.ladders[row, column].right, self.ladders[row, column].left)
                for step in side
            ]
            if needed and taken:
                x = abs(float(self.x[self.entries[row]]))
                floor = max(min(needed), 4 * float(np.spacing(x)), 1e-16 * max(1.0, x))
                wanted += [(row, step) for step in numeric.deep_steps(min(taken), floor)]
        if wanted:
            self._take(wanted)
        return bool(wanted)

    def _take(self, wanted: list[tuple[int, float]]) -> None:
        index = np.array([row for row, _ in wanted])
        steps = np.array([step for _, step in wanted])
        up, above = self.probe(self.which, self.entries[index], steps)
        down, below = self.probe(self.which, self.entries[index], -steps)
        right, left = self.heads.moves(above), -self.heads.moves(below)
        for i, row in enumerate(index.tolist()):
            # An output that a large step moves was rounded at the small ones too.
            shaken = self.shaken.get(row)
            moved = above[i] != self.heads.value
            self.shaken[row] = moved if shaken is None else moved | shaken
        for row in set(index.tolist()):
            noise = self.heads.noise_of(self.shaken[row][None])[0].tolist()
            for column, own in enumerate(noise):
                size = float(self.heads.sizes[column])
                ladder = self.ladders.setdefault((row, column), Ladder(0.0, size))
                ladder.noise = max(ladder.noise, own)
        for i, (row, step) in enumerate(wanted):
            for column in range(self.heads.count):
                self.ladders[row, column].add(
                    step,
                    (float(up[i]), float(-down[i])),
                    (float(right[i, column]), float(left[i, column])),
                )

    def judged(
        self, rows: list[int], analytic: Floats, tolerance: Tolerance
    ) -> dict[tuple[int, int], Verdict]:
        """The verdicts on some rows, from what their ladders hold by now."""
        return {
            (row, column): judge(float(analytic[row, column]), self.ladders[row, column], tolerance)
            for row in rows
            for column in range(self.heads.count)
            if (row, column) in self.ladders
        }

    def recheck_stairs(
        self,
        rows: list[int],
        verdicts: dict[tuple[int, int], Verdict],
        analytic: Floats,
        tolerance: Tolerance,
    ) -> None:
        """Take a failure back where rounding turned the function into a stair.

        (x + 1e12) - 1e12 does not move at all for small steps. A stair shows itself in values
        that repeat exactly; its tread is the rounding of every change.
        """
        for row in rows:
            for column in range(self.heads.count):
                verdict = verdicts.get((row, column))
                if verdict is None or verdict.status == "passed":
                    continue
                ladder = self.ladders[row, column]
                tread = self._tread(row, column, ladder)
                if tread == 0:
                    if self._too_small_to_move(verdict, float(analytic[row, column]), tolerance):
                        verdicts[row, column] = replace(verdict, status="passed", unverified=True)
                    continue
                ladder.noise = max(ladder.noise, tread)
                sides = (ladder.right, ladder.left)
                lost = {s for side in sides for s, (_, c) in side.items() if abs(c) < tread / 2}
                for side in sides:
                    for step in lost & side.keys():
                        del side[step]
                again = judge(float(analytic[row, column]), ladder, tolerance)
                if again.status == "failed":
                    verdicts[row, column] = again
                    continue
                if max(abs(again.numeric), abs(analytic[row, column])) < tolerance.atol:
                    verdicts[row, column] = replace(again, status="passed", unverified=True)
                    continue
                note = f"rounding hides the slope: values repeat exactly over steps of {tread:.2g}"
                verdicts[row, column] = Verdict(
                    "inconclusive", again.numeric, again.error, "unknown", "noise", note
                )

    def _tread(self, row: int, column: int, ladder: Ladder) -> float:
        """The height of the steps of a stair made by rounding; 0 where there is none."""
        still = [
            s
            for s in ladder.right.keys() & ladder.left.keys()
            if ladder.right[s][1] == 0 == ladder.left[s][1]
        ]
        moving = [s for s, (_, c) in ladder.right.items() if c != 0]
        scale = max(1.0, abs(float(self.x[self.entries[row]])))
        # A stair as wide as the input is large is what the function is, not what rounding did.
        if not still or not moving or min(moving) > 1e-2 * scale:
            return 0.0
        entry = np.repeat(self.entries[row : row + 1], 60)
        steps = min(moving) * np.linspace(0.025, 1.5, 60)
        _, changes, _ = _changes(self.probe, self.which, entry, steps, self.heads)
        values = changes[:, column]
        moved = np.abs(values[values != 0])
        if len(moved) > 0 and len(np.unique(values)) <= len(moved) // 2:
            return float(np.min(moved))
        below = [step for step in still if step < min(moving)]
        if not below:
            return 0.0
        # The first treads lie between the last step that shows nothing and the first that does.
        steps = np.geomspace(max(below), min(moving), 60)
        _, changes, _ = _changes(self.probe, self.which, entry, steps, self.heads)
        values = changes[:, column]
        levels = np.unique(values)
        height = float(np.diff(levels).min()) if len(levels) > 3 else 0.0
        if height == 0 or not np.isfinite(values).all():
            return 0.0
        counts = values / height
        return height if bool((np.abs(counts - np.round(counts)) < 1e-6).all()) else 0.0

    def _too_small_to_move(self, verdict: Verdict, analytic: float, tolerance: Tolerance) -> bool:
        """Whether a value that does not move at all need not, so small is the slope claimed.

        What a hand-written forward rounds on its way, as x + tanh(-19)*x does, no value shows.
        """
        least = 64 * EPSILON * max(1.0, self.largest)
        still = verdict.status == "failed" and verdict.numeric == 0
        return still and abs(analytic) <= least and tolerance.allows(analytic, 0.0)
