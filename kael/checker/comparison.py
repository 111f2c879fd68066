"""Verdicts on entries turned into a check and a finding: counts, worst failures, notes."""

from __future__ import annotations

import math

import numpy as np

from kael.checker.entries import Compared
from kael.checker.kinks import SURE, Tolerance, Verdict
from kael.checker.model import BELOW_ATOL, MOST_FAILURES, Check, Failure, Finding, Kind, Status
from kael.checker.subject import Subject

NOT_FINITE = "the input is not finite there, and no step leads away from it"
"""Why an entry has no numeric derivative at all."""


def smallest_seen(compared: Compared, tolerance: Tolerance) -> float:
    """The smallest error in one entry that the rule would have called wrong, for every entry."""
    size = np.maximum(np.abs(compared.analytic), np.abs(compared.numeric))
    allowed = tolerance.atol + tolerance.rtol * np.abs(compared.numeric)
    if tolerance.strict:
        real = np.maximum(tolerance.rtol * size, SURE * compared.error)
        allowed = np.minimum(allowed, real)
    allowed = allowed[np.isfinite(allowed)]
    return float(allowed.max()) if allowed.size else math.inf


def failures_of(finding: Finding, output_shape: tuple[int, ...] | None = None) -> list[Failure]:
    """The wrong entries of a finding, the worst first and not more than are listed."""
    at = np.flatnonzero(finding.wrong)
    analytic, numeric = finding.analytic[at], finding.numeric[at]
    with np.errstate(all="ignore"):
        off = np.abs(analytic - numeric)
        size = np.maximum(np.abs(analytic), np.abs(numeric))
        badness = off / (1e-9 + size)
    badness[~np.isfinite(badness)] = math.inf
    # Relative size says how wrong, absolute size breaks the ties that a constant factor makes.
    order = np.lexsort((finding.entries[at], -off, -np.round(badness, 6)))[:MOST_FAILURES]
    listed = []
    for i in at[order]:
        output = None
        if finding.outputs is not None and output_shape is not None:
            output = _unravel(int(finding.outputs[i]), output_shape)
        listed.append(
            Failure(
                _unravel(int(finding.entries[i]), finding.shape),
                float(finding.analytic[i]),
                float(finding.numeric[i]),
                float(finding.numeric_error[i]),
                output,
            )
        )
    return listed


def summarize(
    subject: Subject,
    which: int,
    kind: Kind,
    compared: Compared,
    notes: list[str],
    with_outputs: bool = False,
) -> tuple[Check, list[Finding]]:
    """The check of one input, and a finding for what is wrong and for what cannot be told."""
    name, shape = subject.names[which], subject.arrays[which].shape
    total = len(compared.entries) if compared.covered is None else compared.covered
    check = Check(kind, name, "passed", total, int(compared.wrong.sum()))
    check.open = int((compared.status == "inconclusive").sum())
    plain = compared.doubt is None and not compared.verdicts
    if plain and (compared.status == "passed").all():
        return _settled(check, compared, notes), []
    finite = np.isfinite(compared.numeric) & np.isfinite(compared.analytic)
    off = np.abs(compared.analytic - compared.numeric)[finite]
    size = np.maximum(np.abs(compared.analytic), np.abs(compared.numeric))[finite]
    # A difference between the slopes of a kink is no error.
    counted = finite[finite]
    if compared.verdicts:
        passed = compared.status == "passed"
        kinks = [passed[i] and _at_kink(compared, i) for i in np.flatnonzero(finite).tolist()]
        counted = ~np.asarray(kinks, dtype=np.bool_)
    endless = [
        i
        for i in np.flatnonzero((compared.status == "passed") & ~finite).tolist()
        if (v := _verdict(compared, i)) is not None and v.shape == "infinite" and v.note
    ]
    if endless:
        verdict = _verdict(compared, endless[0])
        assert verdict is not None
        more = f" (and {len(endless) - 1} more)" if len(endless) > 1 else ""
        index = list(_unravel(int(compared.entries[endless[0]]), shape))
        notes.append(f"element {index}: {verdict.note}{more}")
    check.max_abs_error = compared.excess
    if counted.any():
        check.max_abs_error = max(compared.excess, float(off[counted].max()))
        ratio = np.divide(off, size, out=np.zeros_like(off), where=size > 0)
        check.max_rel_error = float(ratio[counted].max())
    if (compared.wrong & ~np.isfinite(compared.analytic)).any():
        check.max_abs_error = check.max_rel_error = math.inf
    findings = []
    statuses: tuple[Status, ...] = ("failed", "inconclusive")
    for status in statuses:
        at = np.flatnonzero(compared.status == status)
        if not len(at):
            continue
        verdict = _verdict(compared, int(at[0]))
        finding = Finding(
            kind,
            status,
            _sentence(status, len(at), total, name, verdict),
            name,
            subject.positions[which],
            shape,
            compared.entries[at],
            compared.analytic[at],
            compared.numeric[at],
            compared.error[at],
            np.full(len(at), status == "failed"),
            compared.heads[at] if with_outputs else None,
            reason=None if verdict is None else verdict.reason,
        )
        finding.details["all"] = compared
        findings.append(finding)
        if check.status == "passed":
            check.status = finding.status
        if status == "failed":
            check.failures = failures_of(finding, subject.output_shape)
        else:
            entry = int(compared.entries[at[0]])
            note = None if verdict is None else verdict.note
            if not np.isfinite(subject.arrays[which].reshape(-1)[entry]):
                note = NOT_FINITE
            if note:
                notes.append(f"element {list(_unravel(entry, shape))}: {note}")
    if compared.doubt is not None:
        notes.append(compared.doubt)
        if check.status == "passed":
            check.status = "inconclusive"
            sentence = f"the gradient of {name} cannot be verified: {compared.doubt}"
            findings.append(
                Finding(
                    kind,
                    "inconclusive",
                    sentence,
                    name,
                    subject.positions[which],
                    shape,
                    reason="noise",
                )
            )
    hidden = sum(v.unverified and v.status == "passed" for v in compared.verdicts.values())
    if hidden:
        some = "" if hidden == len(compared.entries) else f" ({hidden} of {len(compared.entries)})"
        notes.insert(0, BELOW_ATOL + some)
    check.note = "; ".join(notes) or None
    return check, findings


def _settled(check: Check, compared: Compared, notes: list[str]) -> Check:
    """The check of an input each of whose entries one difference settled."""
    off = np.abs(compared.analytic - compared.numeric)
    size = np.maximum(np.abs(compared.analytic), np.abs(compared.numeric))
    if off.size and not np.isnan(off).any():
        check.max_abs_error = max(compared.excess, float(off.max()))
        if check.max_abs_error:
            check.max_rel_error = float(np.divide(off, size, out=off, where=size > 0).max())
    else:
        check.max_abs_error = compared.excess
    check.note = "; ".join(notes) or None
    return check


def _verdict(compared: Compared, i: int) -> Verdict | None:
    return compared.verdicts.get((int(compared.entries[i]), int(compared.heads[i])))


def _at_kink(compared: Compared, i: int) -> bool:
    verdict = _verdict(compared, i)
    return verdict is not None and verdict.shape in ("kink", "infinite")


def _sentence(status: str, count: int, total: int, name: str, verdict: Verdict | None) -> str:
    entries = "entry" if total == 1 else "entries"
    if status == "failed":
        sentence = f"the gradient of {name} is wrong in {count} of {total} {entries}"
    else:
        sentence = f"the gradient of {name} cannot be verified in {count} of {total} {entries}"
    return sentence + (f": {verdict.note}" if verdict is not None and verdict.note else "")


def _unravel(entry: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of a flat entry; the one entry of a 0-d input has the empty index."""
    return tuple(int(i) for i in np.unravel_index(entry, shape))
