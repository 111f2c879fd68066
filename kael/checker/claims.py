"""Gradients claimed by hand, against the analytic ones and against differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from kael.checker.enclosure import Part
from kael.checker.entries import Compared, blank
from kael.checker.kinks import SURE, Verdict
from kael.checker.model import Array, Floats
from kael.checker.numeric import EPSILON
from kael.checker.one_by_one import compare_each, enclose
from kael.checker.together import by_directions, compare_together
from kael.checker.trial import Trial
from kael.errors import KaelValueError

# A claim and the analytic gradient are both exact: at the defaults they may differ by the relative
# tolerance, and by what cancellation may have left of either.
CLAIM_ATOL, CLAIM_RTOL = 1e-8, 1e-6
_LOST = 1e-9

# What two roundings of a number that is exact may be apart by, a thousand times.
_SPACING = 1e3 * 4 * EPSILON


def examine(trial: Trial, name: str, claim: Any, given: Any) -> None:
    """Compare the claimed gradient of one input, under a given upstream gradient or ones."""
    ex, subject = trial.ex, trial.subject
    if name not in subject.names:
        trial.report.notes.append(
            f"the derivative claimed for {name} is not compared: no gradient of {name} is asked for"
        )
        return
    which = subject.names.index(name)
    shape = subject.arrays[which].shape
    try:
        claimed = np.array(np.broadcast_to(np.asarray(claim, dtype=np.float64), shape))
    except ValueError:
        raise KaelValueError(
            f"the claimed derivative of {name} has shape {list(np.shape(claim))}, which does "
            f"not broadcast to {list(shape)}"
        ) from None
    upstream = np.ones(ex.value.size)
    if given is not None:
        upstream = np.asarray(given, dtype=np.float64).reshape(-1)
    analytic = ex.vjp(upstream)[which].reshape(-1)
    rows = claimed.reshape(-1, 1)
    heads = trial.heads(upstream)
    notes: list[str] = []
    if not (trial.options.numeric and ex.deterministic):
        compared = blank(rows[:, 0])
    elif by_directions(trial, len(rows)):
        ((compared, notes),) = compare_together(trial, [which], [rows], heads)
    else:
        compared = compare_each(trial, which, rows, heads, notes)
        if trial.options.mode != "complex":
            enclose(trial, [Part(which, compared, notes)], heads)
    _hold_against(trial, which, compared, rows[:, 0], analytic, upstream)
    trial.add("derivative", which, compared, notes)


def _hold_against(
    trial: Trial,
    which: int,
    compared: Compared,
    claimed: Floats,
    analytic: Floats,
    upstream: Floats,
) -> None:
    """Fail entries that differ from the analytic gradient, but for the freedom of a kink.

    Where the differences bear the claim out and not the analytic gradient, the claim is right.
    """
    at = {int(entry): i for i, entry in enumerate(compared.entries)}
    name = trial.subject.names[which]
    own_fails = any(
        check.kind == "numeric" and check.input == name and check.status == "failed"
        for check in trial.report.checks
    )
    for entry in np.flatnonzero(_apart(trial, which, claimed, analytic, upstream)):
        i = at.get(int(entry))
        if own_fails and _borne_out(trial, which, compared, i, claimed[entry], analytic[entry]):
            continue
        if i is None:
            for field, number in (
                ("entries", entry),
                ("heads", 0),
                ("analytic", claimed[entry]),
                ("numeric", analytic[entry]),
                ("error", 0.0),
                ("status", "failed"),
            ):
                setattr(compared, field, np.append(getattr(compared, field), number))
            continue
        verdict = compared.verdicts.get((int(entry), 0))
        if verdict is not None and verdict.shape in ("kink", "infinite"):
            continue
        noisy = verdict is not None and verdict.reason == "noise"
        passed = compared.status[i] == "passed"
        if passed or noisy or not np.isfinite(compared.numeric[i]):
            compared.status[i] = "failed"
            compared.numeric[i] = analytic[entry]
            compared.error[i] = 0.0
            compared.verdicts[int(entry), 0] = Verdict("failed", float(analytic[entry]), 0.0)


def _apart(trial: Trial, which: int, claimed: Floats, analytic: Floats, upstream: Floats) -> Array:
    """Where two gradients that are both exact are not the same."""
    options = trial.options
    off = np.abs(claimed - analytic)
    if options.default_tolerances:
        size = np.maximum(np.abs(claimed), np.abs(analytic))
        rtol, lost = (1e-5, 1e-6) if trial.subject.float32 else (CLAIM_RTOL, _LOST)
        if trial.is_float32(which):
            # Both were computed in float32, by two formulas that round each in its own way.
            rtol, lost = 1e-4, 1e-5
        near = off <= rtol * size
        if not near.all():
            near |= off <= lost * np.minimum(1.0, _steepness(trial, which, upstream))
            # Rounding shows itself where the same is rounded otherwise.
            again = trial.ex.vjp(1.1 * upstream)[which].reshape(-1) / 1.1
            near |= off <= 1e3 * np.abs(again - analytic) - _SPACING * np.abs(analytic)
    elif trial.is_float32(which):
        rule = trial.tolerance_of(which)
        near = off <= rule.atol + rule.rtol * np.abs(analytic)
    else:
        atol = CLAIM_ATOL if options.atol is None else options.atol
        rtol = CLAIM_RTOL if options.rtol is None else options.rtol
        near = off <= atol + rtol * np.abs(analytic)
    return np.asarray(~((near & np.isfinite(analytic)) | (claimed == analytic)))


def _steepness(trial: Trial, which: int, upstream: Floats) -> Floats:
    """The slope of each entry, were the terms of the formula as large as it is long.

    What saturates or cancels is small beside it, what is small by its units is not.
    """
    x = np.abs(trial.subject.arrays[which].reshape(-1))
    terms = trial.subject.rounding(upstream) / EPSILON
    return np.asarray(terms / np.where(x > 0, x, 1.0))


def _borne_out(
    trial: Trial, which: int, compared: Compared, i: int | None, claimed: float, analytic: float
) -> bool:
    """Whether the differences agree with the claim of an entry and not with the analytic value."""
    rule = trial.tolerance_of(which)
    if i is None:
        # Seen along directions, which would have shown as much as the two are apart.
        number, error = claimed, 0.0
    else:
        verdict = compared.verdicts.get((int(compared.entries[i]), 0))
        if compared.status[i] != "passed" or (verdict is not None and verdict.unverified):
            return False
        number, error = float(compared.numeric[i]), float(compared.error[i])
    if not np.isfinite(analytic):
        return True
    return abs(analytic - number) > SURE * error + rule.relative(analytic, number)
