"""A whole verification of one formula at one point: the properties, the numbers, the claims.

It evaluates, asks for gradients, lets each property and each input have its say, and adds it all
up; nothing stops at the first finding. What a failure means is told by `diagnosis`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from kael.checker import claims as claimed
from kael.checker import one_by_one, undefined
from kael.checker.forecast import Forecast, expected
from kael.checker.kinkfinder import Locate
from kael.checker.model import Array, Check, Finding, Floats, GradcheckOptions, Report, worst
from kael.checker.properties import (
    NOT_COMPARED,
    PROPERTIES,
    Examination,
    dense,
    repeatable,
    with_zeros,
)
from kael.checker.reduction import look_behind
from kael.checker.subject import Subject, TensorSubject
from kael.checker.together import by_directions, compare_together
from kael.checker.trial import Trial
from kael.errors import KaelError, KaelValueError
from kael.tensors import Tensor

# How often a function whose check does not hold is evaluated again at its point.
MORE_EVALUATIONS = 16


def subject_of(
    function: Callable[..., Any],
    inputs: Sequence[Tensor],
    names: Sequence[str] | None,
    options: GradcheckOptions,
) -> TensorSubject:
    """A function of tensors, differentiated by the inputs that require a gradient."""
    names = list(names or (f"input {i}" for i in range(len(inputs))))
    chosen = chosen_of([tensor.requires_grad for tensor in inputs], names, options)
    return TensorSubject(function, inputs, names, chosen)


def chosen_of(wanted: Sequence[bool], names: Sequence[str], options: GradcheckOptions) -> list[int]:
    """The positions of the inputs that are verified."""
    only = options.inputs
    return [i for i, on in enumerate(wanted) if on and (only is None or names[i] in only)]


def verify(
    subject: Subject,
    options: GradcheckOptions,
    claims: Mapping[str, Any] | None = None,
    upstream: Any = None,
    locate: Locate | None = None,
    forecast: Forecast | None = None,
) -> Report:
    """Look at everything; the report's status is that of its worst check.

    The inputs are put back on the way out, also when the formula raises. `forecast` is told what
    the comparison of all entries will cost, before it begins.
    """
    start = time.perf_counter()
    trial = Trial(subject, options, locate)
    with np.errstate(all="ignore"), subject.restored():
        _look(trial, claims or {}, upstream, forecast)
    report = trial.report
    report.evaluations = subject.evaluations
    report.seconds = time.perf_counter() - start
    return report


def _look(
    trial: Trial, claims: Mapping[str, Any], upstream: Any, forecast: Forecast | None
) -> None:
    report, options = trial.report, trial.options
    if _opened(trial):
        for look in PROPERTIES:
            report.checks += look(trial.ex)
        if forecast is not None and options.numeric:
            forecast(*expected(trial))
        if options.numeric:
            _numbers(trial)
            look_behind(trial, partial(verify, options=options, locate=trial.locate))
        for name, claim in claims.items():
            claimed.examine(trial, name, claim, upstream)
        report.findings = [*trial.ex.findings, *report.findings]
        if any(check.status not in ("passed", "skipped") for check in report.checks):
            _look_for_state(trial)
    if report.checks:
        report.status = worst([check.status for check in report.checks])


def _look_for_state(trial: Trial) -> None:
    """Evaluate some more before anything is called wrong: a mask may be drawn twice alike.

    A function whose value changes has no gradient to compare, and all that was found goes.
    """
    report, ex = trial.report, trial.ex
    if not ex.deterministic or not _value_changes(trial):
        return
    ex.findings.clear()
    kept = [check for check in report.checks if check.kind in ("shape", "unchanged")]
    report.checks = [*kept, *repeatable(ex)]
    _numbers(trial)
    report.findings = list(ex.findings)
    report.notes.clear()


def _value_changes(trial: Trial) -> bool:
    """Whether one of some more evaluations differs from the first; it is kept as the second."""
    left = trial.left()
    with trial.subject.recording():
        for _ in range(MORE_EVALUATIONS if left is None else min(MORE_EVALUATIONS, left)):
            trial.ex.again = trial.subject.evaluate()
            if not trial.ex.deterministic:
                return True
    return False


def _opened(trial: Trial) -> bool:
    """Evaluate and differentiate at the given point; False where that leaves nothing to verify."""
    report, subject = trial.report, trial.subject
    if not any(array.size for array in subject.arrays):
        report.status = "skipped"
        why = "every input is empty" if subject.arrays else "no input requires a gradient"
        report.notes.append(f"nothing compared: {why}")
        return False
    before = [array.copy() for array in subject.originals]
    recorded = subject.record()
    if not np.isfinite(recorded).all():
        report.status, report.error = "error", undefined.sentence(subject, recorded)
        report.findings.append(Finding("value", "error", report.error, reason="undefined"))
        return False
    if not recorded.size:
        report.status = "skipped"
        report.notes.append("nothing compared: the output is empty")
        return False
    with subject.recording():
        start = time.perf_counter()
        value, again = subject.evaluate(), subject.evaluate()
        trial.seconds = (time.perf_counter() - start) / 2
    weights = dense(recorded.size, trial.options.seed)
    gradients = _gradients(trial, weights)
    if gradients is None:
        return False
    filled, missing = with_zeros(subject, gradients)
    trial.ex = Examination(
        subject, trial.options, recorded, value, again, before, weights, filled, missing
    )
    return True


def _gradients(trial: Trial, weights: Floats) -> list[Array | None] | None:
    """The gradients under the weights, whose shapes are a property; None where they are refused."""
    subject, report = trial.subject, trial.report
    try:
        gradients = subject.gradients(weights)
    except (KaelError, KaelValueError) as error:
        text = str(error)
        if "returned an in" not in text and "claimed gradient" not in text:
            raise
        report.checks.append(Check("shape", None, "failed", 1, 1, note=text))
        report.findings.append(Finding("shape", "failed", text))
        return None
    report.checks += [Check("shape", name, "passed", compared=1) for name in subject.names]
    return gradients


def _numbers(trial: Trial) -> None:
    """Compare the gradient of each input with what the formula's values say."""
    subject, ex = trial.subject, trial.ex
    if not ex.deterministic:
        trial.report.checks += [
            Check("numeric", name, "inconclusive", note=NOT_COMPARED) for name in subject.names
        ]
        return
    filled = [which for which, array in enumerate(subject.arrays) if array.size]
    heads = trial.heads(ex.weights)
    if not by_directions(trial, sum(array.size for array in subject.arrays)):
        one_by_one.examine(trial, filled, heads)
        return
    # What float32 hides in its own inputs must not hide in those beside them.
    rough = [which for which in filled if trial.is_float32(which)]
    for group in (rough, [which for which in filled if which not in rough]):
        if group:
            analytic = [ex.gradients[which].reshape(-1, 1) for which in group]
            answers = compare_together(trial, group, analytic, heads)
            for which, (compared, notes) in zip(group, answers, strict=True):
                trial.add("numeric", which, compared, notes)
