"""The verdict on one entry: right, wrong, at a kink, or not to be told and why.

One-sided slopes at shrinking steps decide. They agree and differ from the analytic value: wrong.
They differ and enclose it: a kink, which any value between them answers. They differ and do not
enclose it: wrong. A side without finite values is the edge of a domain, a value that does not
come close as the step shrinks is a jump.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal

from kael.checker.model import Status
from kael.checker.numeric import EPSILON, NONE, Estimate, Ladder, observed_noise, slope, spread

Shape = Literal["smooth", "kink", "edge", "jump", "infinite", "unknown"]

SURE = 10.0
"""How many times its own error a difference must be before it is called real."""

SEEN = 3
"""How many steps, the smallest that can, must show a difference before it is called real."""


@dataclass(frozen=True)
class Tolerance:
    """The rule of comparison: |a - n| <= atol + rtol * |n|, and the stricter one at defaults.

    `rounding` is what the analytic side may be off by, having summed terms of that size.
    """

    atol: float
    rtol: float
    strict: bool
    rounding: float = 0.0

    def allows(self, analytic: float, numeric: float) -> bool:
        """Whether the plain rule passes the pair."""
        return abs(analytic - numeric) <= self.atol + self.rtol * abs(numeric)

    def relative(self, analytic: float, numeric: float) -> float:
        """The difference that counts as relative agreement."""
        return self.rtol * max(abs(analytic), abs(numeric))


@dataclass(frozen=True)
class Verdict:
    """What was decided about one entry, and the numbers behind it."""

    status: Status
    numeric: float
    error: float
    shape: Shape = "smooth"
    reason: str | None = None
    note: str | None = None
    left: float = math.nan
    right: float = math.nan
    unverified: bool = False
    step: float = math.nan


def judge(analytic: float, ladder: Ladder, tolerance: Tolerance) -> Verdict:
    """Decide one entry from the changes of value along it."""
    right_points, left_points = ladder.one_sided(ladder.right), ladder.one_sided(ladder.left)
    if not right_points and not left_points:
        return Verdict(
            "inconclusive",
            math.nan,
            math.inf,
            "unknown",
            "domain",
            "every step meets a value that is not finite",
        )
    jumps = [
        side
        for side, points in (("above", right_points), ("below", left_points))
        if jumped(points, ladder)
    ]
    if jumps:
        return Verdict(
            "inconclusive",
            math.nan,
            math.inf,
            "jump",
            "discontinuous",
            f"the value jumps just {' and '.join(jumps)} this point: it has no derivative here",
        )
    grown = _infinite_slope(analytic, right_points, left_points, ladder)
    if grown is not None:
        return grown
    right, left = slope(right_points, 1, ladder.noise), slope(left_points, 1, ladder.noise)
    if _both_ends_close(ladder):
        if is_kink(right, left) and steady(right.value - left.value, ladder):
            verdict = _at_kink(analytic, right, left, tolerance)
        else:
            central = slope(ladder.central(), 2, ladder.noise)
            if right.error + left.error + abs(right.value - left.value) < central.error:
                # Where the curvature jumps, as that of huber at its seam, each side is smooth.
                apart = abs(right.value - left.value) / 2
                error = max(right.error, left.error) + apart
                central = Estimate((right.value + left.value) / 2, error, right.step)
            verdict = compare(analytic, central, tolerance, left, right)
    else:
        edge = right if right.error <= left.error else left
        verdict = compare(analytic, edge, tolerance, left, right, shape="edge")
    still = verdict.status == "inconclusive" and analytic == 0 == verdict.numeric
    if still and _still_by_far(verdict.error, ladder, tolerance):
        verdict = replace(verdict, status="passed", reason=None, note=None)
    if verdict.status != "failed" or not math.isfinite(analytic):
        return verdict
    step = borne_out(analytic, verdict, ladder)
    return _doubted(analytic, verdict, tolerance) if step is None else replace(verdict, step=step)


def _still_by_far(error: float, ladder: Ladder, tolerance: Tolerance) -> bool:
    """Whether a value that does not move at all close by is so, on the scale of its slopes.

    relu(x / 1e-10 - 1) at 0 has the slope 0, and 1e10 a little further on: what rounding leaves
    open in the 0 is nothing beside that.
    """
    sides = [spread(ladder.one_sided(side)) for side in (ladder.right, ladder.left)]
    if not all(len(side) >= SEEN and not any(c for _, c in side[-SEEN:]) for side in sides):
        return False
    steepest = max(abs(change / step) for side in sides for step, change in side)
    return SURE * error <= tolerance.rtol * steepest


def _doubted(analytic: float, verdict: Verdict, tolerance: Tolerance) -> Verdict:
    """A failure taken back."""
    if tolerance.allows(analytic, verdict.numeric):
        return replace(verdict, status="passed", unverified=True)
    note = "the steps that could be taken do not settle on a derivative"
    return replace(verdict, status="inconclusive", error=math.inf, reason="noise", note=note)


def borne_out(analytic: float, verdict: Verdict, ladder: Ladder) -> float | None:
    """The largest of the smallest steps that can show the difference, if all of them show it.

    A derivative is what small steps see. Steps are small enough where rounding is nearly all they
    see; just above, each rate must be the numeric derivative rather than the analytic one.
    cos(1e8 * x) turns over within larger steps, and abs near its kink has another slope there.
    """
    kink = verdict.shape == "kink"
    gap = abs(verdict.numeric - analytic)
    known = max(ladder.noise + EPSILON * abs(ladder.value) / SURE, _shown_noise(ladder))
    sides = []
    for side, slope_there in ((ladder.right, verdict.right), (ladder.left, verdict.left)):
        points = spread(ladder.one_sided(side))
        if not points:
            continue
        rates = [(step, change / step) for step, change in points if gap * step > SURE * known]
        if len(rates) < min(SEEN, len(points)):
            return None
        sides.append((rates[-SEEN:], slope_there if kink else verdict.numeric))
    if kink:
        shown = all(_alike(rates, near, gap) for rates, near in sides)
    elif len(sides) < 2 or verdict.shape == "edge":
        shown = any(_alike(rates, near, gap) for rates, near in sides)
    else:
        shown = _alike_together(sides[0][0], sides[1][0], verdict.numeric, gap)
    return max(rates[0][0] for rates, _ in sides) if shown else None


def _shown_noise(ladder: Ladder) -> float:
    """The rounding that the smallest steps show, of terms that cancel in the value.

    No more than that of the changes themselves: what turns over within a step is no rounding.
    """
    points = spread(ladder.central())
    rates, steps = [change / step for step, change in points], [step for step, _ in points]
    largest = max((abs(change) for _, change in points), default=0.0)
    return min(observed_noise(rates, steps, 0.0), 4 * EPSILON * largest)


def _alike(rates: list[tuple[float, float]], near: float, gap: float) -> bool:
    return all(abs(rate - near) <= 0.4 * gap for _, rate in rates)


def _alike_together(
    right: list[tuple[float, float]], left: list[tuple[float, float]], near: float, gap: float
) -> bool:
    """Whether both sides have one slope: what keeps them apart must shrink with the step."""
    below = dict(left)
    apart = []
    for step, rate in reversed(right):
        other = min(below, key=lambda own: abs(own - step))
        if abs(other - step) > 0.3 * step:
            continue
        if abs((rate + below[other]) / 2 - near) > 0.4 * gap:
            return False
        apart.append((step, abs(rate - below[other])))
    if len(apart) < 2:
        return False
    (small, first), (large, second) = apart[0], apart[1]
    return first <= 0.5 * gap or first <= 3 * second * small / large


def steady(gap: float, ladder: Ladder) -> bool:
    """Whether the two sides differ by the same at the small steps, as they do at a kink."""
    steps = sorted(ladder.right.keys() & ladder.left.keys())
    gaps = [
        ladder.right[h][1] / ladder.right[h][0] - ladder.left[h][1] / ladder.left[h][0]
        for h in steps
        if 20 * ladder.noise < abs(gap) * h
    ]
    return sum(abs(own - gap) < 0.5 * abs(gap) for own in gaps[:4]) >= min(2, len(gaps))


def is_kink(right: Estimate, left: Estimate) -> bool:
    """Whether the slopes of the two sides differ by more than their own errors."""
    gap = abs(right.value - left.value)
    size = max(abs(right.value), abs(left.value))
    return gap > SURE * (right.error + left.error) and gap > 1e-5 * size


def compare(
    analytic: float,
    estimate: Estimate,
    tolerance: Tolerance,
    left: Estimate = NONE,
    right: Estimate = NONE,
    shape: Shape = "smooth",
) -> Verdict:
    """The rule of comparison for a derivative that exists."""
    numeric, error = estimate.value, estimate.error
    difference = abs(analytic - numeric)
    verdict = partial(Verdict, left=left.value, right=right.value, step=estimate.step)
    if not math.isfinite(numeric) or not math.isfinite(error):
        note = "the steps that could be taken do not settle on a derivative"
        return verdict("inconclusive", numeric, error, shape, "domain", note)
    if not math.isfinite(analytic):
        return verdict("failed", numeric, error, shape, None, None)
    relative = tolerance.relative(analytic, numeric)
    real = difference > SURE * error + tolerance.rounding
    if not tolerance.allows(analytic, numeric):
        if real:
            return verdict("failed", numeric, error, shape, None, None)
        return verdict("inconclusive", numeric, error, shape, "noise", _noisy(error))
    if tolerance.strict and difference > relative:
        if real:
            return verdict("failed", numeric, error, shape, None, None)
        return verdict("passed", numeric, error, shape, unverified=True)
    if error > tolerance.atol + tolerance.rtol * abs(numeric):
        return verdict("inconclusive", numeric, error, shape, "noise", _noisy(error))
    # Two numbers may be near by chance where the error is as large as they are.
    blurred = tolerance.strict and relative > 0 and error > SURE * relative
    return verdict("passed", numeric, error, shape, unverified=blurred)


def _noisy(error: float) -> str:
    return f"the numeric side is uncertain by {error:.2g}, so it cannot tell"


def encloses(analytic: float, low: float, high: float, slack: float, tolerance: Tolerance) -> bool:
    """Whether a value lies between two slopes, but for their errors and the relative tolerance."""
    slack += tolerance.rtol * max(abs(low), abs(high))
    return low - slack <= analytic <= high + slack


def _at_kink(analytic: float, right: Estimate, left: Estimate, tolerance: Tolerance) -> Verdict:
    low, high = sorted((left.value, right.value))
    error = right.error + left.error
    middle = (low + high) / 2
    step = min(right.step, left.step)
    verdict = partial(Verdict, left=left.value, right=right.value, step=step)
    if encloses(analytic, low, high, SURE * error, tolerance):
        return verdict("passed", middle, error, "kink", "kink")
    note = f"at a kink whose one-sided slopes are {left.value:.6g} and {right.value:.6g}"
    nearest = low if analytic < low else high
    if not math.isfinite(analytic):
        nearest = middle
    return verdict("failed", nearest, error, "kink", "kink", note)


def _both_ends_close(ladder: Ladder) -> bool:
    """Whether small steps to both sides are finite, so that two slopes can be told."""
    both = ladder.right.keys() & ladder.left.keys()
    smallest = min([*ladder.right, *ladder.left])
    return len(both) >= 2 and min(both) <= 10.5 * smallest


def jumped(points: list[tuple[float, float]], ladder: Ladder) -> bool:
    """Whether the value stays away from the value at the point however small the step."""
    points = spread(points)
    if len(points) < 4:
        return False
    last = [change for _, change in points[-4:]]
    # Over three decades of the step a root still shrinks 5 times, a jump not at all.
    if points[-4][0] < 100 * points[-1][0]:
        return False
    size = abs(last[-1])
    noise = max(ladder.noise, 1e-13 * abs(ladder.value))
    return size > 1e3 * noise and all(abs(c - last[-1]) < 0.1 * size for c in last)


def _infinite_slope(
    analytic: float,
    right: list[tuple[float, float]],
    left: list[tuple[float, float]],
    ladder: Ladder,
) -> Verdict | None:
    """A slope that grows without bound as the step shrinks, as that of sqrt at 0."""
    signs = [s for s in (_growing(right, ladder), _growing(left, ladder)) if s]
    if not signs:
        return None
    infinity = math.copysign(math.inf, signs[0])
    if math.isinf(analytic) and all(analytic * s > 0 for s in signs):
        note = "the slope is infinite here, as the analytic value says"
        return Verdict("passed", infinity, 0.0, "infinite", None, note)
    if len(signs) == 2 and signs[0] != signs[1] and math.isfinite(analytic):
        # A cusp such as sqrt(abs(x)): every finite value lies between the two slopes.
        return Verdict("passed", 0.0, 0.0, "kink", "kink", left=-infinity, right=infinity)
    note = "the slope grows without bound as the step shrinks: there is no finite derivative here"
    return Verdict("inconclusive", infinity, math.inf, "infinite", "undefined", note)


def _growing(points: list[tuple[float, float]], ladder: Ladder) -> int:
    """The sign of a slope that grows by a steady factor with every smaller step, else 0."""
    if points and math.isinf(points[-1][1] / points[-1][0]):
        # The slope is larger than any float.
        return 1 if points[-1][1] > 0 else -1
    trusted = [(t, c) for t, c in spread(points) if abs(c) > 100 * ladder.noise]
    if len(trusted) < 5 or trusted[-5][0] < 999 * trusted[-1][0]:
        return 0
    rates = [c / t for t, c in trusted[-5:]]
    factors = [
        math.log(abs(b / a)) / math.log(s / t)
        for (a, b), (s, _), (t, _) in zip(
            pairwise(rates), trusted[-5:-1], trusted[-4:], strict=True
        )
        if a and b
    ]
    # A change that is the same at every step, a factor of 1, is a kink passed over, or a jump.
    steady = len(factors) == 4 and 0.05 < min(factors) <= max(factors) < 0.95
    steady = steady and max(factors) - min(factors) < 0.05
    return (1 if rates[-1] > 0 else -1) if steady else 0
