"""All entries of some inputs at once, along directions; what those lead to, one by one."""

from __future__ import annotations

from functools import partial

import numpy as np

from kael.checker import directions
from kael.checker.enclosure import Part
from kael.checker.entries import Compared, Heads, blank
from kael.checker.kinks import Verdict
from kael.checker.model import Array, Floats
from kael.checker.one_by_one import compare_some, enclose, settle
from kael.checker.trial import Trial

# Up to here, all inputs together, every entry has its own differences; above, random directions
# look at all of them at once.
ENTRIES_ONE_BY_ONE = 48

# How many are looked at where many are wrong.
MOST_IF_MANY = 64

UNSEEN = "not verified to the relative tolerance"

# How many entries, where a direction differs, are looked at to tell few wrong ones from many.
SAMPLED = 12


def by_directions(trial: Trial, size: int) -> bool:
    """Whether directions look at this many entries, or each has its own differences."""
    mode = trial.options.mode
    return mode == "fast" or (mode == "projection" and size > ENTRIES_ONE_BY_ONE)


def compare_together(
    trial: Trial, inputs: list[int], analytic: list[Floats], heads: Heads
) -> list[tuple[Compared, list[str]]]:
    """Compare all entries of some inputs; what was compared of each, and the notes on it."""
    subject = trial.subject
    bounds = np.cumsum([0, *(len(rows) for rows in analytic)])
    size = int(bounds[-1])
    line = analytic[0] if len(analytic) == 1 else np.concatenate(analytic)
    left = trial.left()
    widely = False
    extra = np.arange(0)
    search = partial(
        directions.search,
        subject,
        inputs,
        line,
        heads,
        trial.tolerance_of(inputs[0]),
        budget=directions.MOST_EVALUATIONS if left is None else left,
    )
    with subject.recording():
        found = search(trial.random(size), agreed_only=True)
    firsts: list[Compared | None] = [None] * len(inputs)
    if found.differs:
        sample = trial.random(size, 1).choice(size, min(SAMPLED, size), replace=False)
        firsts = _one_by_one(trial, inputs, bounds, np.sort(sample), analytic, heads)
        seen = [one.wrong for one in firsts if one is not None]
        widely = bool(np.concatenate(seen).mean() > 0.3)
        if widely:
            left = trial.left()
            most = min(size, MOST_IF_MANY if left is None else left // 4, MOST_IF_MANY)
            drawn = trial.random(size, 2).choice(size, most, replace=False)
        else:
            left = trial.left()
            budget = directions.MOST_EVALUATIONS if left is None else left
            with subject.recording():
                found = search(trial.random(size), budget=budget)
            drawn = np.array([*found.suspects, *_blunt(trial, found)], dtype=np.int64)
        extra = np.setdiff1d(drawn, sample)
    else:
        extra = np.array(_blunt(trial, found), dtype=np.int64)
    more = _one_by_one(trial, inputs, bounds, extra, analytic, heads)
    several = len(inputs) > 1
    parts = []
    for place, which in enumerate(inputs):
        compared = _joined(firsts[place], more[place])
        settle(trial, which, compared, heads)
        parts.append(Part(which, compared, []))
    enclose(trial, parts, heads)
    for part, rows in zip(parts, analytic, strict=True):
        size = len(rows)
        _sum_up(trial, part.which, part.compared, found, size, widely, several, part.notes)
    return [(part.compared, part.notes) for part in parts]


def _blunt(trial: Trial, found: directions.Directed) -> list[int]:
    """The entries that directions do not show sharply enough, as far as they may be looked at."""
    left = trial.left()
    if trial.options.mode != "fast" and (left is None or 3 * len(found.blunt) < left):
        return found.blunt
    found.unseen += len(found.blunt)
    return []


def _one_by_one(
    trial: Trial,
    inputs: list[int],
    bounds: Array,
    entries: Array,
    analytic: list[Floats],
    heads: Heads,
) -> list[Compared | None]:
    judged: list[Compared | None] = []
    for place, which in enumerate(inputs):
        own = entries[(entries >= bounds[place]) & (entries < bounds[place + 1])]
        own = np.sort(own) - bounds[place]
        rows = analytic[place]
        judged.append(compare_some(trial, which, own, rows, heads) if len(own) else None)
    return judged


def _sum_up(
    trial: Trial,
    which: int,
    compared: Compared,
    found: directions.Directed,
    size: int,
    widely: bool,
    several: bool,
    notes: list[str],
) -> None:
    """What the directions say of the entries that were not looked at one by one."""
    wrong = int(compared.wrong.sum())
    compared.covered = size
    compared.excess = found.excess
    all_inputs = " of all inputs" if several else ""
    if found.directions and not widely:
        compared.how = f"{found.directions} random directions over the entries{all_inputs}"
        compared.sharpness = found.sharpness
    if found.unseen and not widely:
        notes.append(f"{found.unseen} entries{all_inputs} are below what directions show: {UNSEEN}")
    looked = len(compared.entries)
    if widely or (found.unresolved and wrong):
        notes.append(f"{wrong} of the {looked} entries looked at one by one are wrong")
    elif found.unresolved and found.between:
        notes.append("many entries are at kinks; along random directions the slopes enclose")
    elif found.unresolved or found.vague:
        compared.doubt = "more differs along random directions than single entries account for"


def _joined(*parts: Compared | None) -> Compared:
    given = [part for part in parts if part is not None]
    if len(given) == 1:
        return given[0]
    if not given:
        return blank(np.zeros(0))
    verdicts: dict[tuple[int, int], Verdict] = {}
    for part in given:
        verdicts.update(part.verdicts)
    return Compared(
        np.concatenate([part.entries for part in given]),
        np.concatenate([part.heads for part in given]),
        np.concatenate([part.analytic for part in given]),
        np.concatenate([part.numeric for part in given]),
        np.concatenate([part.error for part in given]),
        np.concatenate([part.status for part in given]),
        verdicts,
    )
