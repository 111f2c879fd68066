"""The complex step: a derivative without a difference, for formulas that extend to complex numbers.

f'(x) = Im f(x + ih)/h for a tiny h, to the last digits, since nothing is subtracted (Lyness and
Moler 1967). It holds for analytic operations only: abs or max have no such extension, and are
refused by name. What an operation does not say of itself (a hand-written `Function`) is compared
with ordinary differences, which such an operation could not pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kael.checker.entries import Compared, Heads, Probe
from kael.checker.kinks import Tolerance, Verdict
from kael.checker.model import Array, Floats
from kael.checker.subject import Subject, TensorSubject
from kael.engine.grad_mode import no_grad, observing
from kael.errors import KaelValueError
from kael.tensors import Tensor

STEP = 1e-30

KINK = "at a kink the complex step takes one side only, so it cannot tell: use mode adaptive"

EDGE = "at the edge of the domain the complex step shows no infinite slope: use mode adaptive"

# Differences are good to this share; an operation that is not analytic is off by all of it.
_ALIKE = 1e-2


def require_analytic(subject: Subject) -> TensorSubject:
    """Refuse a formula with an operation that does not extend to complex numbers, naming it."""
    if not isinstance(subject, TensorSubject):
        raise KaelValueError(
            "mode complex needs operations of kael; a function outside of it has none: "
            "use mode adaptive"
        )
    moved = {id(subject.moved[position]) for position in subject.positions}
    kept: list[Any] = []

    def observe(
        op: Any,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        output: Tensor,
        node: Any,
    ) -> None:
        kept.append((inputs, output, arguments, node))
        if not any(id(x) in moved for x in inputs):
            return
        moved.add(id(output))
        declared = hasattr(op, "vjps")
        if declared and not op.analytic and output._array.dtype.kind == "f":
            raise KaelValueError(
                f"mode complex needs operations that extend to complex numbers, and {op.name} "
                "does not: use mode adaptive"
            )

    with no_grad(), observing(observe):
        subject.evaluate()
    return subject


def slopes(subject: TensorSubject, which: int, entries: Array, heads: Heads) -> Floats:
    """The derivative of each head with respect to each entry, a row an entry."""
    found = np.empty((len(entries), heads.count))
    leaves: list[Array] = [array.astype(np.complex128) for array in subject.arrays]
    flat = leaves[which].reshape(-1)
    for row, entry in enumerate(entries.tolist()):
        kept = flat[entry]
        flat[entry] = kept + 1j * STEP
        try:
            values = subject.evaluate_complex(leaves)
        except Exception as error:
            raise KaelValueError(
                f"mode complex: the formula does not take complex numbers ({error}): "
                "use mode adaptive"
            ) from error
        flat[entry] = kept
        imaginary = np.imag(values) / STEP
        found[row] = imaginary if heads.weights is None else imaginary @ heads.weights
    return found


def compare(
    subject: Subject,
    which: int,
    entries: Array,
    analytic: Floats,
    heads: Heads,
    tolerance: Tolerance,
    probe: Probe,
) -> Compared:
    """Compare a gradient with complex steps, after those have been held against differences."""
    formula = require_analytic(subject)
    with no_grad():
        numeric = slopes(formula, which, entries, heads)[:, 0]
        bent, edge = _hold_against_differences(formula, which, entries, numeric, heads, probe)
    scale = float(np.abs(numeric).max(initial=0.0))
    error = 4e-16 * np.abs(numeric) + 1e-17 * scale
    status = np.empty(numeric.size, dtype=object)
    verdicts = {}
    for i, (a, n, e) in enumerate(zip(analytic.tolist(), numeric.tolist(), error, strict=True)):
        real = tolerance.strict and abs(a - n) > max(tolerance.relative(a, n), 1e3 * e)
        right = tolerance.allows(a, n) and not real
        verdict = Verdict("passed" if right else "failed", n, float(e))
        endless = np.isinf(a) and edge[i]
        if not right and (bent[i] or endless or not np.isfinite(n)):
            note = KINK if bent[i] else EDGE if endless else "the complex step has no finite value"
            verdict = Verdict("inconclusive", n, float(e), reason="noise", note=note)
        status[i], verdicts[int(entries[i]), 0] = verdict.status, verdict
    return Compared(entries, np.zeros_like(entries), analytic, numeric, error, status, verdicts)


def _hold_against_differences(
    subject: TensorSubject, which: int, entries: Array, numeric: Floats, heads: Heads, probe: Probe
) -> tuple[Array, Array]:
    """A conjugate, a modulus or a value read out of the graph leaves no imaginary part.

    Gives back at which entries the slopes of the two sides differ, and at which one is missing.
    """
    if not numeric.size:
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    width, right, left, noise = _differences(subject, which, entries, heads, probe, 1e-6)
    difference = (right + left) / 2
    size = np.maximum(np.abs(difference), np.abs(numeric))
    bent = np.abs(right - left)
    allowed = _ALIKE * size + 40 * noise / width + bent + 1e-5
    if (np.abs(difference - numeric) > allowed).any():
        raise KaelValueError(
            "mode complex: the complex step and real differences disagree, so part of the "
            "formula does not extend to complex numbers or leaves the graph: use mode adaptive"
        )
    sharp = bent > _ALIKE * size + 40 * noise / width
    if sharp.any():
        # A kink looks the same closer by, curvature does not.
        _, right, left, _ = _differences(subject, which, entries, heads, probe, 1e-7)
        sharp &= np.abs(right - left) > 0.5 * bent
    return np.asarray(sharp), np.asarray(~np.isfinite(bent))


def _differences(
    subject: TensorSubject, which: int, entries: Array, heads: Heads, probe: Probe, step: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """The width from one end to the other, the slopes to both sides, and the rounding."""
    steps = step * np.maximum(1.0, np.abs(subject.arrays[which].reshape(-1)[entries]))
    up, above = probe(which, entries, steps)
    down, below = probe(which, entries, -steps)
    right, noise = heads.changes(above)
    left, _ = heads.changes(below)
    return up - down, right[:, 0] / up, left[:, 0] / down, noise[:, 0]
