"""`gradcheck`, the public face of the checker for tensors in a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from kael import dtypes
from kael.checker.checks import check
from kael.checker.model import (
    GradcheckOptions,
    GradcheckResult,
    Report,
    failure_line,
)
from kael.errors import KaelError, KaelTypeError, KaelValueError
from kael.tensors import Tensor, shares_elements


def gradcheck(
    fn: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    options: GradcheckOptions | None = None,
    **fields: Any,
) -> GradcheckResult:
    """Compare the gradient of `fn(*inputs)` with finite differences, and look at its properties.

    Inputs are float64 leaves that require grad (integer and boolean inputs ride along); float32
    ones are taken when `dtype` says so and are then checked against float64 differences. `fields`
    are those of `GradcheckOptions` and override `options`. The inputs' values and gradients are
    left as they were, also when `fn` raises. The result is as true as its verdict.

    Raises KaelError for inputs that cannot be checked and for a value that is not finite.

    >>> import kael
    >>> x = kael.tensor([1.0, 2.0], requires_grad=True)
    >>> bool(gradcheck(lambda x: kael.tanh(x).sum(), [x]))
    True
    """
    given = options or GradcheckOptions()
    if fields:
        given = given.updated(**fields)
    if isinstance(inputs, Tensor):
        inputs = [inputs]
    inputs = list(inputs)
    _require_checkable(inputs, given)
    if given.dtype is not None:
        inputs = [_converted(tensor, dtypes.as_dtype(given.dtype)) for tensor in inputs]
    if given.inputs is not None:
        given = replace(given, inputs=None)
    report = check(fn, inputs, options=given)
    if report.status == "error":
        raise KaelValueError(f"gradcheck: {report.error}")
    return GradcheckResult(
        report.status == "passed",
        report.status,
        "\n".join(report_lines(report)),
        tuple(report.findings),
        (*report.notes, *(f"{told.message} [{told.code}]" for told in report.diagnosis)),
    )


def report_lines(report: Report) -> list[str]:
    """One line a failing entry, then one for each other thing that does not hold."""
    names, positions = report.subject.names, report.subject.positions
    position_of = dict(zip(names, positions, strict=True))
    lines = []
    for entry in report.checks:
        if entry.status in ("passed", "skipped"):
            continue
        if entry.kind in ("numeric", "derivative") and entry.input is not None:
            lines += [failure_line(position_of[entry.input], f) for f in entry.failures]
            unlisted = entry.wrong - len(entry.failures)
            if unlisted > 0:
                lines.append(f"input {position_of[entry.input]}: {unlisted} more wrong entries")
        if entry.kind not in ("numeric", "derivative") or entry.status == "inconclusive":
            where = "" if entry.input is None else f"input {position_of[entry.input]} "
            lines.append(f"{where}{entry.kind} {entry.status}: {entry.note}")
    return lines


def _require_checkable(inputs: Sequence[Any], options: GradcheckOptions) -> None:
    wanted = 0
    for position, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor):
            raise KaelTypeError(
                f"gradcheck input {position} must be a tensor, got {type(tensor).__name__}"
            )
        if tensor.dtype.kind != "f":
            continue
        if tensor.dtype != np.float64 and options.dtype is None:
            raise KaelError(
                f"gradcheck inputs must be F64, got {tensor.dtype} for input {position}\n"
                "differences of float32 values keep no digits; give dtype=kael.float32 to check a "
                "float32 formula against float64 differences"
            )
        if not tensor.is_leaf:
            raise KaelError(f"gradcheck inputs must be leaves, input {position} is not one")
        if not tensor.requires_grad:
            raise KaelError(f"gradcheck inputs must require grad, input {position} does not")
        if shares_elements(tensor._array):
            raise KaelError(
                f"input {position} is an expanded or unfolded view, its elements share memory: "
                "clone() it"
            )
        wanted += 1
    if not wanted:
        raise KaelError("gradcheck inputs must require grad, and there is none that can")
    for (one, x), (other, y) in combinations(enumerate(inputs), 2):
        if x is not y and np.may_share_memory(x._array, y._array):
            raise KaelError(
                f"inputs {one} and {other} share memory, so one moves with the other: clone() one"
            )


def _converted(tensor: Tensor, dtype: Any) -> Tensor:
    if tensor.dtype.kind != "f" or tensor.dtype == dtype:
        return tensor
    return Tensor(tensor._array.astype(dtype)).requires_grad_(tensor.requires_grad)
