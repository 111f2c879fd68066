"""The properties of a right gradient, one small function each; together they are a check.

Each takes the examination (the subject with what was evaluated at the given point) and gives
back the checks it made. Nothing stops at the first finding: every property is looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kael.checker.comparison import failures_of
from kael.checker.model import Array, Check, Finding, Floats, GradcheckOptions
from kael.checker.subject import Subject

NOT_DETERMINISTIC = (
    "the function is not deterministic (or keeps state): fix the seed or freeze the state"
)

NOT_COMPARED = "not compared: two evaluations at this point differ"

# Two roundings of one value may differ by this; what a float32 formula loses is far more.
_SAME, _SAME_FLOAT32 = 1e-12, 1e-3
_LINEAR, _LINEAR_FLOAT32 = 1e-8, 1e-3

# The shares in which two upstream gradients are mixed.
# The second upstream gradient is far larger than the first, and their sum all but cancels for one
# element: what is clipped, or dropped where small, does not add up.
_FAR = 1370.0
_FIRST, _SECOND = 0.61, 0.61 / _FAR * (1 - 3e-3)


@dataclass
class Examination:
    """One subject at its given point: values, weights and gradients, and what was found so far."""

    subject: Subject
    options: GradcheckOptions
    recorded: Floats
    value: Floats
    again: Floats
    before: list[Array]
    weights: Floats
    gradients: list[Array]
    missing: list[bool]
    findings: list[Finding] = field(default_factory=list)

    @property
    def deterministic(self) -> bool:
        """Whether two evaluations at one point gave one value."""
        return bool(np.array_equal(self.value, self.again, equal_nan=True))

    @functools.cached_property
    def mixed(self) -> tuple[list[Array], list[Array], list[Array]]:
        """The gradients for a sum of two upstream gradients, that sum of theirs, and its scale.

        The second is dense and against the weights in each element: what does not turn over with
        the sign shows itself.
        """
        size = self.value.size
        other = -_FAR * self.weights
        if size > 1:
            other = -_FAR * np.copysign(dense(size, self.options.seed + 1), self.weights)
        parts = zip(self.gradients, self.vjp(other), strict=True)
        terms = [(_FIRST * p, _SECOND * q) for p, q in parts]
        together = self.vjp(_FIRST * self.weights + _SECOND * other)
        scale = [
            np.abs(p) + np.abs(q) + np.abs(pq) for (p, q), pq in zip(terms, together, strict=True)
        ]
        return together, [p + q for p, q in terms], scale

    @functools.cached_property
    def adds_up(self) -> list[bool]:
        """Of which inputs the gradients of two upstream gradients add up in every entry."""
        share = _LINEAR_FLOAT32 if self.subject.float32 else _LINEAR
        return [
            bool((np.abs(pq - expected) <= share * scale).all())
            for pq, expected, scale in zip(*self.mixed, strict=True)
        ]

    def vjp(self, upstream: Floats) -> list[Array]:
        """The analytic gradients for an upstream gradient, zeros where none arrived."""
        return with_zeros(self.subject, self.subject.gradients(upstream))[0]


def with_zeros(subject: Subject, gradients: list[Array | None]) -> tuple[list[Array], list[bool]]:
    """Gradients as float64 arrays, with zeros where none arrived, and where that was."""
    filled = [
        np.zeros(array.shape) if part is None else np.asarray(part, dtype=np.float64)
        for part, array in zip(gradients, subject.arrays, strict=True)
    ]
    return filled, [part is None for part in gradients]


def value(ex: Examination) -> list[Check]:
    """Recording must not change the value."""
    float32 = ex.subject.float32
    size = float(np.abs(ex.value).max(initial=0.0))
    allowed = (_SAME_FLOAT32 if float32 else _SAME) * size
    if ex.recorded.tobytes() == ex.value.tobytes():
        return [Check("value", None, "passed", compared=ex.value.size)]
    off = np.abs(ex.recorded - ex.value)
    wrong = ~(off <= allowed) & ~(np.isnan(ex.recorded) & np.isnan(ex.value))
    check = Check("value", None, "passed", compared=ex.value.size, wrong=int(wrong.sum()))
    if wrong.any():
        check.max_abs_error = float(np.nanmax(off))
        if not ex.deterministic:
            check.status, check.note = "inconclusive", NOT_DETERMINISTIC
        elif float32:
            check.status = "passed"
            check.note = "in float32 the value is far from that in float64: it cancels"
            check.wrong = 0
        else:
            check.status = "failed"
            check.note = "the value with recording on is not the value with recording off"
            at = np.flatnonzero(wrong)
            ex.findings.append(
                Finding(
                    "value",
                    "failed",
                    check.note,
                    shape=ex.subject.output_shape,
                    entries=at,
                    analytic=ex.recorded[at],
                    numeric=ex.value[at],
                    wrong=np.ones(len(at), dtype=bool),
                )
            )
    return [check]


def repeatable(ex: Examination) -> list[Check]:
    """Two evaluations at one point must agree, and so must two backward passes."""
    if not ex.deterministic:
        ex.findings.append(
            Finding("repeatable", "inconclusive", NOT_DETERMINISTIC, reason="nondeterministic")
        )
        wrong = int((ex.value != ex.again).sum())
        note = NOT_DETERMINISTIC
        return [Check("repeatable", None, "inconclusive", ex.value.size, wrong, note=note)]
    # Backward passes that differ of themselves do not add up either.
    second = ex.gradients if all(ex.adds_up) else ex.vjp(ex.weights)
    if all(a.tobytes() == b.tobytes() for a, b in zip(ex.gradients, second, strict=True)):
        return [Check("repeatable", None, "passed", ex.value.size)]
    wrong = sum(
        int((~((np.abs(a - b) <= 1e-10 * np.abs(a)) | (np.isnan(a) & np.isnan(b)))).sum())
        for a, b in zip(ex.gradients, second, strict=True)
    )
    check = Check("repeatable", None, "passed", ex.value.size, wrong)
    if wrong:
        check.status = "failed"
        check.note = "a second backward pass at the same point gives another gradient"
        ex.findings.append(Finding("repeatable", "failed", check.note, reason="nondeterministic"))
    return [check]


def zero(ex: Examination) -> list[Check]:
    """A zero upstream gradient must give a zero gradient."""
    checks = []
    for which, found in enumerate(ex.vjp(np.zeros(ex.value.size))):
        # Where the slope itself is infinite, 0 * inf is no news.
        if not found.any():
            checks.append(Check("zero", ex.subject.names[which], "passed", found.size))
            continue
        wrong = found != 0
        wrong &= np.isfinite(ex.gradients[which])
        note = "the gradient is not zero for an upstream gradient of zero"
        checks.append(_per_input(ex, "zero", which, found, 0 * found, wrong, note))
    return checks


def linear(ex: Examination) -> list[Check]:
    """The gradient must be linear in the upstream gradient, for both signs of it.

    Dense upstream gradients of both signs, the second against the first in each element, so that
    g*g, abs(g) and clamp(g, min=0) show themselves even for one element.
    """
    share = _LINEAR_FLOAT32 if ex.subject.float32 else _LINEAR
    biggest = (_FIRST + _SECOND * _FAR) * float(np.abs(ex.weights).max())
    value_size = max(1.0, float(np.abs(ex.value).max()))
    checks = []
    for which, (pq, expected, scale) in enumerate(zip(*ex.mixed, strict=True)):
        if ex.adds_up[which]:
            checks.append(Check("linear", ex.subject.names[which], "passed", pq.size))
            continue
        off = np.abs(pq - expected)
        finite = np.isfinite(scale)
        largest = float(np.max(scale, where=finite, initial=0.0))
        # Where a sum cancels, what is left is rounding of the size of the value.
        rounding = 1e-5 * share * value_size * biggest
        allowed = share * scale + 1e-5 * share * largest + rounding
        wrong = (off > allowed) & finite
        if wrong.any() and _scales_exactly(ex, which):
            # Linear in each rounding; only where terms cancel do two sums differ.
            wrong &= off > 1e3 * _rounding(ex, which)
        note = "the gradient is not linear in the upstream gradient"
        checks.append(_per_input(ex, "linear", which, pq, expected, wrong, note))
    return checks


def _scales_exactly(ex: Examination, which: int) -> bool:
    """Whether -2 times the upstream gradient gives -2 times the gradient, to the last bit.

    Rounding to nearest keeps signs and powers of two, so what is linear passes however much
    cancels; g*g, abs(g) and clamp(g, min=0) do not.
    """
    turned = ex.vjp(-2.0 * ex.weights)[which]
    return bool((turned == -2.0 * ex.gradients[which]).all())


def _rounding(ex: Examination, which: int) -> float:
    """How far rounding alone takes the gradient, seen where the same is rounded otherwise."""
    off = np.abs(ex.vjp(1.1 * ex.weights)[which] / 1.1 - ex.gradients[which])
    return float(np.max(off, where=np.isfinite(off), initial=0.0))


def unchanged(ex: Examination) -> list[Check]:
    """Neither the function nor its backward may write into the inputs."""
    checks = []
    for name, position, array, before in zip(
        ex.subject.names, ex.subject.positions, ex.subject.originals, ex.before, strict=True
    ):
        check = Check("unchanged", name, "passed", array.size)
        if array.tobytes() != before.tobytes():
            check.wrong = int((~((array == before) | (np.isnan(array) & np.isnan(before)))).sum())
        if check.wrong:
            check.status, check.note = "failed", f"the function writes into its input {name}"
            ex.findings.append(
                Finding("unchanged", "failed", check.note, name, position, array.shape)
            )
        checks.append(check)
    return checks


PROPERTIES: tuple[Callable[[Examination], list[Check]], ...] = (
    value,
    repeatable,
    zero,
    linear,
    unchanged,
)
"""What is looked at beside the numbers themselves, in this order."""


def dense(size: int, seed: int) -> Floats:
    """Standard-normal weights, none close to zero and of both signs; 1 for one element."""
    if size == 1:
        return np.ones(1)
    return (_drawn if size > 4096 else _remembered)(size, seed).copy()


def _drawn(size: int, seed: int) -> Floats:
    drawn = np.random.default_rng([seed & 0xFFFFFFFF, size]).standard_normal(size)
    weights = np.where(np.abs(drawn) < 0.1, np.copysign(0.1, drawn) + drawn, drawn)
    if (weights > 0).all() or (weights < 0).all():
        weights[::2] *= -1
    return weights


_remembered = functools.lru_cache(maxsize=64)(_drawn)


def _per_input(
    ex: Examination,
    kind: str,
    which: int,
    found: Array,
    due: Array,
    wrong: Array,
    note: str,
) -> Check:
    subject = ex.subject
    count = int(np.count_nonzero(wrong))
    check = Check(kind, subject.names[which], "passed", found.size, count)  # type: ignore[arg-type]
    if not count:
        return check
    at = np.flatnonzero(wrong.reshape(-1))
    finding = Finding(
        check.kind,
        "failed",
        note,
        subject.names[which],
        subject.positions[which],
        found.shape,
        at,
        found.reshape(-1)[at],
        due.reshape(-1)[at],
        np.zeros(len(at)),
        np.ones(len(at), dtype=bool),
    )
    ex.findings.append(finding)
    check.status, check.note = "failed", note
    off = np.abs(finding.analytic - finding.numeric)
    check.max_abs_error = float(np.max(off, initial=0.0))
    check.failures = failures_of(finding)
    return check
