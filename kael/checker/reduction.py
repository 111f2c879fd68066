"""What a final sum or mean hides: where its gradient is zero, the formula before it is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kael.checker import batch
from kael.checker.model import Report
from kael.checker.subject import Subject, TensorSubject
from kael.checker.trial import Trial
from kael.engine.grad_mode import enable_grad, observing, state
from kael.tensors import Tensor

_REDUCTIONS = {"sum", "mean"}


def look_behind(trial: Trial, verify: Callable[[Subject], Report]) -> None:
    """Verify what a final sum hides: all gradients are zero, whatever the formula inside."""
    subject, ex = trial.subject, trial.ex
    if not isinstance(subject, TensorSubject) or ex.value.size != 1 or subject.float32:
        return
    if not subject.differentiable or any(ex.missing):
        return
    size = float(np.abs(ex.value).max())
    if not all((np.abs(g) <= 1e-12 * max(1.0, size)).all() for g in ex.gradients):
        return
    inner = _before_reduction(subject)
    if inner is None:
        return
    operation, function = inner
    nested = TensorSubject(function, subject.inputs, _all_names(subject), subject.positions)
    report = verify(nested)
    subject.evaluations += nested.evaluations
    note = (
        f"the gradient behind the final {operation} is zero: also checked before the "
        f"{operation}, with a dense upstream gradient"
    )
    trial.report.notes.append(note)
    kinds = ("numeric", "linear", "zero")
    for check in trial.report.checks:
        if check.kind == "numeric":
            check.note = f"{check.note}; {note}" if check.note else note
    for check in report.checks:
        if check.kind in kinds and check.status != "passed":
            check.note = f"{note}; {check.note}" if check.note else note
            trial.report.checks.append(check)
    trial.report.findings += report.findings


def _all_names(subject: TensorSubject) -> list[str]:
    names = [f"input {i}" for i in range(len(subject.inputs))]
    for position, name in zip(subject.positions, subject.names, strict=True):
        names[position] = name
    return names


def _before_reduction(subject: TensorSubject) -> tuple[str, Callable[..., Any]] | None:
    """The name of the reduction that makes the output, and the function without it."""

    def last_operand(*inputs: Tensor) -> tuple[str, Tensor] | None:
        # Only one may observe at a time, and whoever does so outside must not be left blind.
        watching = state.here.observer
        recording = batch.Recording(())

        def observe(
            op: Any,
            inputs: tuple[Tensor, ...],
            arguments: tuple[Any, ...],
            output: Tensor,
            node: Any,
        ) -> None:
            recording(op, inputs, arguments, output, node)
            if watching is not None:
                watching(op, inputs, arguments, output, node)

        with observing(observe):
            output: Any = subject.function(*inputs)
        name = None
        for op, operands, _, made in reversed(recording.observed):
            if made is output and getattr(op, "name", None) in _REDUCTIONS:
                name, output = op.name, operands[0]
        return None if name is None else (name, output)

    with enable_grad():
        found = last_operand(*subject.inputs)
    if found is None or found[1]._array.size < 2:
        return None

    def function(*inputs: Tensor) -> Any:
        operand = last_operand(*inputs)
        assert operand is not None
        return operand[1]

    return found[0], function
