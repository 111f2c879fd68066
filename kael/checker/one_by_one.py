"""Every entry of an input by its own differences or complex steps, as far as the budget goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kael.checker import complexstep
from kael.checker.certainty import doubt_failures
from kael.checker.enclosure import Part, answer_by_output, enclose_together
from kael.checker.entries import MOST_LADDERS, Compared, Heads, compare_entries, probe_each
from kael.checker.model import Array, Floats
from kael.checker.trial import Trial

# Evaluations for each entry, with some in hand for those that one difference does not settle.
COST = {"projection": 3, "full": 3, "fast": 3, "complex": 3, "adaptive": 20}


def examine(trial: Trial, inputs: list[int], heads: Heads) -> None:
    """Compare the analytic gradients of some inputs."""
    full = trial.options.mode == "full"
    if full:
        heads = Heads(None, trial.ex.value)
    parts = []
    for which in inputs:
        rows = trial.ex.gradients[which].reshape(-1, 1)
        analytic = _jacobian(trial, which) if full else rows
        notes: list[str] = []
        compared = compare_each(trial, which, analytic, heads, notes)
        parts.append(Part(which, compared, notes))
    if trial.options.mode != "complex":
        enclose(trial, parts, heads)
    for part in parts:
        trial.add("numeric", part.which, part.compared, part.notes, with_outputs=full)


def compare_each(
    trial: Trial, which: int, analytic: Floats, heads: Heads, notes: list[str]
) -> Compared:
    """Compare a row an entry, and a column a head, with what the mode takes for the truth."""
    entries, ladders = _within_budget(trial, which, len(analytic), notes)
    if trial.options.mode == "complex":
        compared = complexstep.compare(
            trial.subject,
            which,
            entries,
            analytic[entries, 0],
            heads,
            trial.tolerance_of(which),
            probe_each(trial.subject),
        )
        doubt_failures(trial, which, compared, heads)
        return compared
    compared = compare_some(trial, which, entries, analytic, heads, ladders)
    settle(trial, which, compared, heads)
    return compared


def compare_some(
    trial: Trial,
    which: int,
    entries: Array,
    analytic: Floats,
    heads: Heads,
    ladders: int | None = None,
) -> Compared:
    """Compare some entries of an input with differences, at most so many of them closely."""
    with trial.subject.recording():
        return compare_entries(
            trial.subject,
            trial.probe(len(entries)),
            which,
            entries,
            analytic[entries],
            heads,
            trial.tolerance_of(which),
            trial.options.eps,
            fine=trial.options.mode == "adaptive",
            most_ladders=trial.close_looks() if ladders is None else ladders,
        )


def settle(trial: Trial, which: int, compared: Compared, heads: Heads) -> None:
    """Look at the kinks of single outputs, and take back the failures that are not certain."""
    if not compared.verdicts:
        return
    with trial.subject.recording():
        answer_by_output(trial, which, compared, heads)
        doubt_failures(trial, which, compared, heads)


def enclose(trial: Trial, parts: Sequence[Part], heads: Heads) -> None:
    """Look at all kinks that were met together."""
    if any(part.compared.verdicts for part in parts):
        with trial.subject.recording():
            enclose_together(trial, parts, heads)


def _within_budget(trial: Trial, which: int, size: int, notes: list[str]) -> tuple[Array, int]:
    """The entries that may be looked at, and at how many of them closely."""
    left = trial.left()
    if left is None:
        return np.arange(size), size if trial.options.mode == "adaptive" else MOST_LADDERS
    left //= len(trial.subject.arrays) - which
    most = max(1, left // COST[trial.options.mode])
    close = trial.close_looks()
    if size <= most:
        return np.arange(size), size if trial.options.mode == "adaptive" else close
    bound = trial.options.max_evaluations
    note = f"compared {most} of {size} entries, drawn at random (max-evaluations {bound})"
    notes.append(note)
    name = trial.subject.names[which]
    trial.report.coverage = f"{name}: {note}"
    drawn = np.sort(trial.random(which, size).choice(size, most, replace=False))
    return drawn, most if trial.options.mode == "adaptive" else close


def _jacobian(trial: Trial, which: int) -> Floats:
    """The analytic Jacobian: one backward for each element of the output."""
    size = trial.ex.value.size
    columns = np.empty((trial.subject.arrays[which].size, size))
    one = np.zeros(size)
    for output in range(size):
        one[output] = 1.0
        columns[:, output] = trial.ex.vjp(one)[which].reshape(-1)
        one[output] = 0.0
    return columns
