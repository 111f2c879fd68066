"""Whether a difference is certain: does the gradient itself keep still where the steps went?

Between two points a right gradient takes the mean slope on (mean value theorem). One that hardly
changes over the step, and yet is not the slope, is wrong beyond doubt. One that changes over the
step by as much as it is off may only turn over faster than any step can follow, as that of
sin(1e17 * x) does, or be cancellation of which nothing but rounding is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from kael.checker.entries import Compared, Heads
from kael.checker.kinks import SURE, Verdict
from kael.checker.model import Array, Floats
from kael.checker.numeric import EPSILON
from kael.checker.subject import TensorSubject, norm_of
from kael.checker.trial import Trial

# How many wrong entries are looked at; where one of them is doubtful, so are all that are not.
MOST = 12

# Evaluations for each of them.
_COST = 15

# Shares of the step at which the gradient is asked for, to both sides: all over the step, and so
# close to the point that what happens there alone is told from what happens in between.
_AT = (0.91, 0.57, 0.23, 1.7e-2, 1.3e-4, 1.1e-7)

# The gradient may change over the step by this share of the difference.
_STILL = 0.3

MOVES = "the gradient changes within the smallest step that shows the difference"
CANCELS = "the analytic gradient is what rounding leaves of larger terms"


def doubt_failures(trial: Trial, which: int, compared: Compared, heads: Heads) -> None:
    """Take back the failures that are not certain."""
    if trial.subject.float32:
        # Steps that float32 inputs do not resolve say nothing of their gradient.
        return
    wrong = np.flatnonzero(compared.wrong & np.isfinite(compared.analytic))
    if not len(wrong):
        return
    left = trial.left()
    most = MOST if left is None else min(MOST, max(1, left // _COST))
    looked = set(wrong[np.unique(np.linspace(0, len(wrong) - 1, most).astype(int))].tolist())
    notes = {i: _doubt(trial, which, compared, i, heads) for i in sorted(looked)}
    known = [note for note in notes.values() if note]
    if not known:
        return
    for i in wrong.tolist():
        note = notes.get(i, known[0])
        if note:
            _take_back(trial, which, compared, i, note)


def _take_back(trial: Trial, which: int, compared: Compared, i: int, note: str) -> None:
    key = int(compared.entries[i]), int(compared.heads[i])
    verdict = replace(compared.verdicts[key], status="inconclusive", reason="noise", note=note)
    if trial.tolerance_of(which).allows(float(compared.analytic[i]), float(compared.numeric[i])):
        verdict = replace(verdict, status="passed", reason=None, note=None, unverified=True)
    compared.status[i], compared.verdicts[key] = verdict.status, verdict


def _doubt(trial: Trial, which: int, compared: Compared, i: int, heads: Heads) -> str | None:
    """Why the difference of one entry is not certain; None where it is."""
    entry, head = int(compared.entries[i]), int(compared.heads[i])
    verdict = compared.verdicts[entry, head]
    gap = abs(float(compared.analytic[i]) - float(compared.numeric[i]))
    if not math.isfinite(gap):
        return None
    if heads.weights is None:
        upstream = np.zeros(trial.ex.value.size)
        upstream[head] = 1.0
    else:
        upstream = heads.weights[:, head]
    line = _Line(trial, which, entry, upstream)
    if gap < SURE * line.rounding(verdict.step):
        return CANCELS
    return None if _still(*line.gradients(verdict.step), gap, verdict) else MOVES


def _still(above: Sequence[float], below: Sequence[float], gap: float, verdict: Verdict) -> bool:
    """Whether the gradients nearby are one number, but for a straight drift through the point."""
    together = [(one + other) / 2 for one, other in zip(above, below, strict=True)]
    if verdict.shape == "smooth" and _within(together, gap):
        return True
    sides = [side for side in (above, below) if np.isfinite(side).any()]
    return bool(sides) and all(_within(side, gap) for side in sides)


def _within(numbers: Sequence[float], gap: float) -> bool:
    return bool(np.isfinite(numbers).all()) and max(numbers) - min(numbers) <= _STILL * gap


class _Line:
    """The analytic side along one entry."""

    def __init__(self, trial: Trial, which: int, entry: int, upstream: Floats) -> None:
        self.trial, self.which, self.entry, self.upstream = trial, which, entry, upstream
        self.flat = trial.subject.flat(which)
        self.x = float(self.flat[entry])

    def gradients(self, step: float) -> tuple[list[float], list[float]]:
        """The derivative at points above and below, as far as a step and as near as can be."""
        if not math.isfinite(step):
            step = 64 * float(np.spacing(abs(self.x)))
        closest = 4 * float(np.spacing(abs(self.x)))
        steps = [step * share for share in _AT if step * share > closest] or [closest]
        with self.trial.subject.elsewhere():
            return [self._gradient(one) for one in steps], [self._gradient(-one) for one in steps]

    def _gradient(self, step: float) -> float:
        ex = self.trial.ex
        with self._moved(step):
            try:
                size = self.trial.subject.record().size
            except Exception as error:
                self.trial.subject.beside(error)
                return math.nan
            if size != ex.value.size:
                return math.nan
            return float(ex.vjp(self.upstream)[self.which].reshape(-1)[self.entry])

    def rounding(self, step: float) -> float:
        """The rounding of the analytic derivative: the last bit of each product that enters it.

        A product is what reaches a recorded result times the slope of that result, here from
        differences, whose size alone matters. A slope that is the small rest of a formula such as
        1 - tanh(x)**2 is lost where the value does not move by its last bit.
        """
        subject = self.trial.subject
        if not isinstance(subject, TensorSubject):
            return 0.0
        if not math.isfinite(step):
            step = 1e-6 * max(1.0, abs(self.x))
        here = subject.inside(self.upstream)
        above, below = self._inside(subject, step), self._inside(subject, -step)
        if not len(above) == len(here) == len(below):
            return 0.0
        value = norm_of(arrived * value for value, arrived in here) / max(1.0, abs(self.x))
        products = norm_of(
            arrived * (up - down) / (2 * step)
            for (_, arrived), (up, _), (down, _) in zip(here, above, below, strict=True)
            if up.shape == down.shape == arrived.shape
        )
        return EPSILON * max(value, products)

    def _inside(self, subject: TensorSubject, step: float) -> list[tuple[Array, Array]]:
        with self._moved(step):
            try:
                return subject.inside(self.upstream)
            except Exception as error:
                subject.beside(error)
                return []

    @contextmanager
    def _moved(self, step: float) -> Iterator[None]:
        self.flat[self.entry] = self.x + step
        try:
            yield
        finally:
            self.flat[self.entry] = self.x
