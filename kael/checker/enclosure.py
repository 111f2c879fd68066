"""What one entry alone cannot settle at kinks: several outputs, and several entries together.

Each output may answer its own kink in its own way, so a right gradient may lie outside of the
slopes of their weighted sum; and entries that are each between their slopes may be wrong together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kael.checker.entries import Compared, Heads
from kael.checker.kinkfinder import met_at
from kael.checker.kinks import Tolerance, Verdict, encloses
from kael.checker.model import Array, Floats
from kael.checker.numeric import EPSILON
from kael.checker.subject import TensorSubject
from kael.checker.trial import Trial, element

# How many wrong entries are looked at output by output before they are called wrong.
MOST_PER_OUTPUT = 64

# How many outputs are looked at for entries that are wrong together, where each is compared.
MOST_HEADS = 128

# A kink looks the same at every scale; what only looks like one does not.
_SCALES = (8.3e-9, 8.3e-7)


def answer_by_output(trial: Trial, which: int, compared: Compared, heads: Heads) -> None:
    """Pass entries whose gradient is right at the kink of each output they reach."""
    if heads.weights is not None and trial.ex.value.size > 1:
        for i in np.flatnonzero(compared.wrong)[:MOST_PER_OUTPUT]:
            _per_output(trial, which, compared, int(i), heads)


@dataclass
class Part:
    """One input with what was compared of it and the notes on it."""

    which: int
    compared: Compared
    notes: list[str]

    def verdict(self, i: int) -> Verdict | None:
        """The verdict on what was compared in one place, where there is one."""
        return self.compared.verdicts.get(self.key(i))

    def key(self, i: int) -> tuple[int, int]:
        """The entry and the head that were compared in one place."""
        return int(self.compared.entries[i]), int(self.compared.heads[i])


Spot = tuple[Part, int]
"""One entry of one input that is at a kink, as a place in what was compared."""


def enclose_together(trial: Trial, parts: Sequence[Part], heads: Heads) -> None:
    """Fail entries that are right each at its kink, but not together; note the others.

    The entries of all inputs are looked at together: a tie may be between two of them.
    """
    by_head: dict[int, list[Spot]] = {}
    for part in parts:
        for i in _met(part):
            by_head.setdefault(int(part.compared.heads[i]), []).append((part, i))
    for head, spots in list(by_head.items())[:MOST_HEADS]:
        weights = np.zeros(trial.ex.value.size)
        if heads.weights is None:
            weights[head] = 1.0
        else:
            weights = heads.weights[:, head]
        _along_kinks(trial, spots, weights)
    for part in parts:
        met = _met(part)
        if met:
            part.notes.append(_kink_note(trial, part.which, part.compared, met))


def _met(part: Part) -> list[int]:
    return [
        i
        for i in range(len(part.compared.entries))
        if (v := part.verdict(i)) and v.shape == "kink" and v.status == "passed"
    ]


def _steps(x: float, verdict: Verdict) -> list[float]:
    """The two steps at which a kink must look the same, no longer than that of the verdict.

    Longer ones may step over the kink and back: that of relu(x / 1e-10 - 1) is 1e-10 wide.
    """
    scale = _scale(x)
    if 0 < verdict.step < _SCALES[1] * scale:
        scale = max(verdict.step / _SCALES[1], 64 * float(np.spacing(abs(x))) / _SCALES[0])
    return [share * scale for share in _SCALES]


def _scale(x: float) -> float:
    return max(1.0, abs(x)) if x == 0 or abs(x) > 1e-5 else 1e3 * abs(x)


def _one_sided(
    trial: Trial, which: int, entries: Array, signs: Floats, step: float
) -> tuple[Any, Any]:
    """One-sided slopes of every output along signed entries moved together."""
    flat = trial.subject.flat(which)
    x = np.array(flat[entries], dtype=np.float64)
    rows = []
    try:
        for sign in (1.0, -1.0):
            flat[entries] = x + sign * step * signs
            rows.append((trial.subject.evaluate() - trial.ex.value) * sign / step)
    finally:
        flat[entries] = x
    return rows[0], rows[1]


def _per_output(trial: Trial, which: int, compared: Compared, i: int, heads: Heads) -> None:
    """Pass an entry whose gradient is right at the kink of each output it reaches."""
    assert heads.weights is not None
    entry, head = int(compared.entries[i]), int(compared.heads[i])
    x = float(np.asarray(trial.subject.arrays[which]).reshape(-1)[entry])
    one, ones = np.array([entry]), np.ones(1)
    bent: Array = np.ones(trial.ex.value.size, dtype=bool)
    closer: Array | None = None
    for step in _steps(x, compared.verdicts[entry, head]):
        right, left = _one_sided(trial, which, one, ones, step)
        noise = 8 * EPSILON * np.abs(trial.ex.value) / step
        gap = np.abs(right - left)
        bent &= gap > 1e-3 * np.maximum(np.abs(right), np.abs(left)) + 10 * noise
        if closer is not None:
            bent &= np.abs(gap - closer) < 0.2 * gap
        closer = gap
    if not bent.any():
        return
    weights = heads.weights[:, head]
    middle = np.where(bent, 0.0, (right + left) / 2)
    right, left = np.where(bent, right, middle), np.where(bent, left, middle)
    slack = float(np.abs(weights) @ (noise + np.where(bent, 0.0, gap / 2)))
    a = float(compared.analytic[i])
    if not enclosed_sum(right, left, weights, a, slack, trial.tolerance):
        return
    outputs = np.flatnonzero(bent)
    if len(outputs) <= 16:
        upstream = np.zeros(trial.ex.value.size)
        for output in outputs:
            upstream[output] = 1.0
            own = float(trial.ex.vjp(upstream)[which].reshape(-1)[entry])
            upstream[output] = 0.0
            low, high = sorted((float(right[output]), float(left[output])))
            if not low - 1e-3 * (high - low) <= own <= high + 1e-3 * (high - low):
                return
    numeric = float((right + left) @ weights / 2)
    compared.status[i] = "passed"
    compared.verdicts[entry, head] = Verdict("passed", numeric, slack, "kink", "kink")


def _along_kinks(trial: Trial, spots: Sequence[Spot], weights: Floats) -> None:
    """Enclosure along directions of ±1: each entry may be inside and all together outside.

    The kinks that open upwards and those that open downwards are walked apart: together
    their slopes could cancel where each is right.
    """
    for upward in (True, False):
        group = [
            (part, i)
            for part, i in spots
            if (v := part.verdict(i)) is not None and (v.right > v.left) == upward
        ]
        if len(group) < 2:
            continue
        outside = _outside(trial, group, weights)
        if outside is None:
            continue
        note = (
            "each entry lies between its one-sided slopes, but not all together: along "
            f"{outside[0]} the slopes are {outside[1]:.6g} and {outside[2]:.6g}, "
            f"the gradient says {outside[3]:.6g}"
        )
        for part, i in group:
            part.compared.status[i] = "failed"
            verdict = part.compared.verdicts[part.key(i)]
            part.compared.verdicts[part.key(i)] = replace(verdict, status="failed", note=note)


def _outside(
    trial: Trial, group: Sequence[Spot], weights: Floats
) -> tuple[str, float, float, float] | None:
    rng = np.random.default_rng([trial.options.seed & 0xFFFFFFFF, 31, len(group)])
    analytic = np.array([part.compared.analytic[i] for part, i in group])
    own = np.array([part.compared.verdicts[part.key(i)].error for part, i in group])
    errors = np.where(np.isfinite(own), own, 0.0)
    walk = _Walk(trial, group)
    value = trial.ex.value
    for attempt in range(6):
        signs = rng.choice((-1.0, 1.0), len(group)) if attempt else np.ones(len(group))
        found = None
        for share in reversed(_SCALES):
            (right, up), (left, down) = walk.slopes(signs, share)
            if not (np.isfinite(right).all() and np.isfinite(left).all()):
                found = None
                break
            claimed = float((up + down) @ analytic / 2)
            size = float(np.abs(weights * right).sum() + np.abs(weights * left).sum())
            noise = EPSILON * float(np.abs(weights * value).sum()) / share
            slack = 1e-4 * (size + float(np.abs(up * analytic).sum())) + 40 * noise
            # What the slopes of single entries may be off by, their sum may.
            slack += float(np.abs(up) @ errors)
            if enclosed_sum(right, left, weights, claimed, slack, trial.tolerance):
                found = None
                break
            low, high = sorted((float(weights @ left), float(weights @ right)))
            told = low / walk.unit, high / walk.unit, claimed / walk.unit
            apart = max(told[0] - told[2], told[2] - told[1])
            if found is not None and np.abs(np.subtract(told, found)).max() > 0.5 * apart:
                # Slopes that are not the same at both steps are what rounding makes of the value.
                found = None
                break
            found = told
        if found is not None:
            shown = [int(s) for s in signs[:8]]
            along = f"{shown}{'' if len(signs) <= 8 else ' and on'}"
            names = list(dict.fromkeys(trial.subject.names[part.which] for part, _ in group))
            if len(names) > 1:
                along += f" of {' and '.join(names)}"
            return along, *found
    return None


class _Walk:
    """Moves entries of several inputs together, each by a share of its own scale."""

    def __init__(self, trial: Trial, group: Sequence[Spot]) -> None:
        self.trial = trial
        flats = {part.which: trial.subject.flat(part.which) for part, _ in group}
        self.places = [(flats[part.which], int(part.compared.entries[i])) for part, i in group]
        self.x = [float(flat[entry]) for flat, entry in self.places]
        self.scales = np.empty(len(group))
        longest = 1.0
        for at, (part, i) in enumerate(group):
            x = self.x[at]
            self.scales[at] = _scale(x)
            step = _steps(x, part.compared.verdicts[part.key(i)])[1]
            longest = min(longest, step / (_SCALES[1] * self.scales[at]))
        self.scales *= longest
        # Numbers are told for steps of one length, where all have it.
        self.unit = float(self.scales[0])

    def slopes(self, signs: Floats, share: float) -> list[tuple[Floats, Floats]]:
        """For both ways, what every output changes by and what each entry moves by, a share."""
        answers = []
        for way in (1.0, -1.0):
            try:
                moved = []
                for (flat, entry), x, step in zip(
                    self.places, self.x, way * share * signs * self.scales, strict=True
                ):
                    flat[entry] = x + step
                    moved.append(float(flat[entry]) - x)
                change = self.trial.subject.evaluate() - self.trial.ex.value
            finally:
                for (flat, entry), x in zip(self.places, self.x, strict=True):
                    flat[entry] = x
            answers.append((way * change / share, way * np.array(moved) / share))
        return answers


def _kink_note(trial: Trial, which: int, compared: Compared, met: list[int]) -> str:
    entry = int(compared.entries[met[0]])
    verdict = compared.verdicts[entry, int(compared.heads[met[0]])]
    index, x = element(trial, which, entry)
    found = None
    if isinstance(trial.subject, TensorSubject):
        found = met_at(trial.subject, which, entry, 1e-6 * max(1.0, abs(x)), trial.locate)
    note = f"at a kink: {trial.subject.names[which]} element {index}"
    if found is not None:
        note += f", {found}"
    if math.isfinite(verdict.left) and math.isfinite(verdict.right):
        low, high = sorted((verdict.left, verdict.right))
        note += f", where the slope is anything from {low:.6g} to {high:.6g}"
    if len(met) > 1:
        note += f" (and {len(met) - 1} more)"
    return note


def enclosed_sum(
    right: Floats, left: Floats, weights: Floats, analytic: float, slack: float, rule: Tolerance
) -> bool:
    """Whether a value lies in the weighted sum of the intervals between one-sided slopes.

    Each element of the output may answer its own kink in its own way, so the projection of a
    right gradient lies in the sum of the intervals, not between the slopes of the projection.
    """
    a, b = right * weights, left * weights
    low, high = float(np.minimum(a, b).sum()), float(np.maximum(a, b).sum())
    return encloses(analytic, low, high, slack, rule)
