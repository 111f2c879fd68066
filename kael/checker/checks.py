"""Verify, and where something does not hold say what is wrong: what specs and `gradcheck` call.

A verification knows nothing of diagnoses; a diagnosis may verify single nodes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kael.checker.forecast import Forecast
from kael.checker.kinkfinder import Locate
from kael.checker.model import GradcheckOptions, Report
from kael.checker.numeric import EPSILON
from kael.checker.subject import OutsideSubject, TensorSubject
from kael.checker.verification import chosen_of, subject_of, verify
from kael.tensors import Tensor

if TYPE_CHECKING:
    from kael.checker.problems import ClaimOf, Repair

# What rounding can spoil, and by how much of the terms that a formula in float32 sums.
_ROUNDED = ("numeric", "derivative", "linear")
_LOST_IN_FLOAT32 = 1e-4


def check(
    function: Callable[..., Any],
    inputs: Sequence[Tensor],
    names: Sequence[str] | None = None,
    options: GradcheckOptions | None = None,
    claims: Mapping[str, Any] | None = None,
    upstream: Any = None,
    locate: Locate | None = None,
    claim_of: ClaimOf | None = None,
    repairs_of: Callable[[str], Iterable[Repair]] | None = None,
    diagnosed: bool = True,
    forecast: Forecast | None = None,
) -> Report:
    """Verify the gradient of `function(*inputs)` with respect to the inputs that require one.

    `claims` are hand-derived gradients by input name, of a non-scalar output under `upstream`
    (ones where it is None). `locate` tells which sub-expression is being evaluated, for notes.
    `claim_of` gives the claims at other points, and `repairs_of` what else could have been
    claimed: a diagnosis asks for them, which is made where something does not hold.
    Without `diagnosed` there is a verdict only; `forecast` is told the cost before it is spent.
    A function without a finite value at the given point gives a report of status `error`.
    """
    options = options or GradcheckOptions()
    subject = subject_of(function, inputs, names, options)

    def explain(report: Report) -> None:
        from kael.checker.diagnosis import diagnose

        report.diagnosis = diagnose(report, options, locate, upstream, claim_of, repairs_of)

    report = verify(subject, options, claims, upstream, locate, forecast)
    if report.status == "failed" and subject.float32:
        wide = subject_of(function, [_in_float64(tensor) for tensor in inputs], names, options)
        again = verify(wide, options, claims, upstream, locate)
        if again.status == "passed" and _is_rounding(report, wide):
            _leave_to_rounding(report)
    return _explained(report, explain if diagnosed else None)


def _in_float64(tensor: Tensor) -> Tensor:
    """A leaf with the same values in float64; what is not floating stays what it is."""
    array = tensor._array
    wide = Tensor(array.astype(np.float64) if array.dtype.kind == "f" else array.copy())
    wide.requires_grad_(tensor.requires_grad)
    return wide


def _is_rounding(report: Report, wide: TensorSubject) -> bool:
    """Whether all that failed is small beside the terms that the formula sums."""
    if any(check.status == "failed" and check.kind not in _ROUNDED for check in report.checks):
        return False
    for finding in report.findings:
        if finding.status != "failed" or finding.input is None:
            continue
        x = np.abs(wide.arrays[wide.names.index(finding.input)].reshape(-1)[finding.entries])
        weights = (
            np.ones(math.prod(wide.output_shape)) if finding.upstream is None else finding.upstream
        )
        terms = wide.rounding(weights) / EPSILON
        allowed = _LOST_IN_FLOAT32 * terms / np.where(x > 0, x, 1.0)
        if not (np.abs(finding.analytic - finding.numeric) <= allowed).all():
            return False
    return True


def _leave_to_rounding(report: Report) -> None:
    """Take back the failures of a float32 formula that holds in float64: it lost digits."""
    told = "it holds in float64; in float32 rounding leaves too few digits here"
    for check in report.checks:
        if check.status == "failed":
            check.status, check.open, check.wrong = "inconclusive", check.wrong, 0
            check.failures, check.note = [], told
    for finding in report.findings:
        if finding.status == "failed":
            finding.status, finding.reason = "inconclusive", "noise"
            finding.message = f"the gradient of {finding.input} cannot be verified: {told}"
            finding.wrong = np.zeros_like(finding.wrong)
    report.status = "inconclusive"
    report.notes.append(told)


def check_outside(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    names: Sequence[str] | None = None,
    options: GradcheckOptions | None = None,
    grad: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    requires_grad: Sequence[bool] | None = None,
    diagnosed: bool = True,
    forecast: Forecast | None = None,
) -> Report:
    """Verify a gradient made outside of kael: a function of NumPy arrays, and `grad` or `vjp`."""
    options = options or GradcheckOptions()
    names = list(names or (f"input {i}" for i in range(len(inputs))))
    wanted = requires_grad or [np.asarray(value).dtype.kind == "f" for value in inputs]
    chosen = chosen_of(wanted, names, options)
    subject = OutsideSubject(function, inputs, names, chosen, grad, vjp)

    def explain(report: Report) -> None:
        from kael.checker.diagnosis import diagnose

        report.diagnosis = diagnose(report, options)

    return _explained(verify(subject, options, forecast=forecast), explain if diagnosed else None)


def _explained(report: Report, explain: Callable[[Report], None] | None) -> Report:
    if explain is not None and report.status in ("failed", "inconclusive", "error"):
        start = time.perf_counter()
        with np.errstate(all="ignore"), report.subject.restored():
            explain(report)
        report.seconds += time.perf_counter() - start
    return report
