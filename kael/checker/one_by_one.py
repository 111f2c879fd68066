"""Every entry of an input by its own differences or complex steps, as far as the budget goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kael.checker import complexstep
from kael.checker.certainty import doubt_failures
from kael.checker.enclosure import Part, answer_by_output, enclose_together
from kael.checker.entries import MOST_LADDERS, Compared, Heads, compare_entries, probe_each
from kael.checker.model import Array, Floats
from kael.checker.session import Session

# Evaluations for each entry, with some in hand for those that one difference does not settle.
COST = {"projection": 3, "full": 3, "fast": 3, "complex": 3, "adaptive": 20}


def examine(session: Session, inputs: list[int], heads: Heads) -> None:
    """Compare the analytic gradients of some inputs."""
    full = session.options.mode == "full"
    if full:
        heads = Heads(None, session.ex.value)
    parts = []
    for which in inputs:
        rows = session.ex.gradients[which].reshape(-1, 1)
        analytic = _jacobian(session, which) if full else rows
        notes: list[str] = []
        compared = compare_each(session, which, analytic, heads, notes)
        parts.append(Part(which, compared, notes))
    if session.options.mode != "complex":
        enclose(session, parts, heads)
    for part in parts:
        session.add("numeric", part.which, part.compared, part.notes, with_outputs=full)


def compare_each(
    session: Session, which: int, analytic: Floats, heads: Heads, notes: list[str]
) -> Compared:
    """Compare a row an entry, and a column a head, with what the mode takes for the truth."""
    entries, ladders = _within_budget(session, which, len(analytic), notes)
    if session.options.mode == "complex":
        compared = complexstep.compare(
            session.subject,
            which,
            entries,
            analytic[entries, 0],
            heads,
            session.tolerance_of(which),
            probe_each(session.subject),
        )
        doubt_failures(session, which, compared, heads)
        return compared
    compared = compare_some(session, which, entries, analytic, heads, ladders)
    settle(session, which, compared, heads)
    return compared


def compare_some(
    session: Session,
    which: int,
    entries: Array,
    analytic: Floats,
    heads: Heads,
    ladders: int | None = None,
) -> Compared:
    """Compare some entries of an input with differences, at most so many of them closely."""
    with session.subject.recording():
        return compare_entries(
            session.subject,
            session.probe(len(entries)),
            which,
            entries,
            analytic[entries],
            heads,
            session.tolerance_of(which),
            session.options.eps,
            fine=session.options.mode == "adaptive",
            most_ladders=session.close_looks() if ladders is None else ladders,
        )


def settle(session: Session, which: int, compared: Compared, heads: Heads) -> None:
    """Look at the kinks of single outputs, and take back the failures that are not certain."""
    if not compared.verdicts:
        return
    with session.subject.recording():
        answer_by_output(session, which, compared, heads)
        doubt_failures(session, which, compared, heads)


def enclose(session: Session, parts: Sequence[Part], heads: Heads) -> None:
    """Look at all kinks that were met together."""
    if any(part.compared.verdicts for part in parts):
        with session.subject.recording():
            enclose_together(session, parts, heads)


def _within_budget(session: Session, which: int, size: int, notes: list[str]) -> tuple[Array, int]:
    """The entries that may be looked at, and at how many of them closely."""
    left = session.left()
    if left is None:
        return np.arange(size), size if session.options.mode == "adaptive" else MOST_LADDERS
    left //= len(session.subject.arrays) - which
    most = max(1, left // COST[session.options.mode])
    close = session.close_looks()
    if size <= most:
        return np.arange(size), size if session.options.mode == "adaptive" else close
    bound = session.options.max_evaluations
    note = f"compared {most} of {size} entries, drawn at random (max-evaluations {bound})"
    notes.append(note)
    name = session.subject.names[which]
    session.report.coverage = f"{name}: {note}"
    drawn = np.sort(session.random(which, size).choice(size, most, replace=False))
    return drawn, most if session.options.mode == "adaptive" else close


def _jacobian(session: Session, which: int) -> Floats:
    """The analytic Jacobian: one backward for each element of the output."""
    size = session.ex.value.size
    columns = np.empty((session.subject.arrays[which].size, size))
    one = np.zeros(size)
    for output in range(size):
        one[output] = 1.0
        columns[:, output] = session.ex.vjp(one)[which].reshape(-1)
        one[output] = 0.0
    return columns
