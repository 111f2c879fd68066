"""Gradients claimed by hand, against the analytic ones and against differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from kael.checker.enclosure import Part
from kael.checker.entries import Compared, blank
from kael.checker.kinks import Tolerance
from kael.checker.model import Floats
from kael.checker.one_by_one import compare_each, enclose
from kael.checker.session import Session
from kael.checker.together import by_directions, compare_together
from kael.errors import KaelValueError

# A claim and the analytic gradient are both exact.
CLAIM_ATOL, CLAIM_RTOL = 1e-8, 1e-6


def examine(session: Session, name: str, claim: Any, given: Any) -> None:
    """Compare the claimed gradient of one input, under a given upstream gradient or ones."""
    ex, subject = session.ex, session.subject
    if name not in subject.names:
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
    heads = session.heads(upstream)
    notes: list[str] = []
    if not (session.options.numeric and ex.deterministic):
        compared = blank(rows[:, 0])
    elif by_directions(session, len(rows)):
        ((compared, notes),) = compare_together(session, [which], [rows], heads)
    else:
        compared = compare_each(session, which, rows, heads, notes)
        if session.options.mode != "complex":
            enclose(session, [Part(which, compared, notes)], heads)
    _hold_against(session, compared, rows[:, 0], analytic)
    session.add("derivative", which, compared, notes)


def _hold_against(session: Session, compared: Compared, claimed: Floats, analytic: Floats) -> None:
    """Fail entries that differ from the analytic gradient, but for the freedom of a kink."""
    exact = Tolerance(
        CLAIM_ATOL if session.options.atol is None else session.options.atol,
        CLAIM_RTOL if session.options.rtol is None else session.options.rtol,
        False,
    )
    if session.subject.float32:
        exact = session.tolerance
    at = {int(entry): i for i, entry in enumerate(compared.entries)}
    near = np.abs(claimed - analytic) <= exact.atol + exact.rtol * np.abs(analytic)
    off = ~((near & np.isfinite(analytic)) | (claimed == analytic))
    for entry in np.flatnonzero(off):
        i = at.get(int(entry))
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
