"""From a report in which something does not hold to the sentences that say what is wrong.

The wrong node is looked for first; the rules of `faults` then judge the evidence of that node
alone. Where every node is right, they judge the formula as a whole. A derivative claimed by hand
is a problem of its own. Nothing here runs for a report in which all holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kael.checker import nodewise
from kael.checker.evidence import Evidence
from kael.checker.faults import (
    conditions,
    discontinuous,
    inconclusive,
    input_overwritten,
    mismatch,
    mode_dependent,
    not_deterministic,
    step_left_domain,
    undefined,
    zero,
)
from kael.checker.model import Array, Check, Diagnosis, Floats, GradcheckOptions, Report
from kael.checker.problems import (
    ClaimOf,
    ClaimProblem,
    Problem,
    Repair,
    Where,
    WholeProblem,
    problem_of,
)
from kael.checker.subject import TensorSubject
from kael.errors import KaelError

_REASONS = (step_left_domain, discontinuous, undefined)
"""The diagnoses that say why a check is open, and state no fault."""

_OF_THE_FORMULA = ("numeric", "zero", "linear", "shape")


def diagnose(
    report: Report,
    options: GradcheckOptions,
    where: Where | None = None,
    upstream: Any = None,
    claim_of: ClaimOf | None = None,
    repairs_of: Callable[[str], Iterable[Repair]] | None = None,
) -> list[Diagnosis]:
    """What is wrong, one diagnosis a fault, the one to read first in front."""
    told = _Diagnoses(report, options, where)
    try:
        with np.errstate(all="ignore"):
            told.run(upstream, claim_of, repairs_of)
    except Exception:
        # A diagnosis is a help, and a function may raise anything elsewhere; a formula that will
        # not be looked at further still has a verdict.
        pass
    told.fall_back()
    return told.found


class _Diagnoses:
    """The diagnoses of one report while they are made."""

    def __init__(self, report: Report, options: GradcheckOptions, where: Where | None) -> None:
        self.report, self.options, self.where = report, options, where
        self.subject = report.subject
        self.found: list[Diagnosis] = []
        self.explained: set[tuple[str, str | None]] = set()

    def run(
        self,
        upstream: Any,
        claim_of: ClaimOf | None,
        repairs_of: Callable[[str], Iterable[Repair]] | None,
    ) -> None:
        """Look at everything that does not hold."""
        if self.report.status == "error":
            if self.report.error:
                self.found.append(undefined.diagnosis(self.report.error))
            return
        if self._of_the_function():
            return
        bad = [check for check in self.report.checks if check.status != "passed"]
        if any(check.kind in _OF_THE_FORMULA for check in bad):
            self._formula(bad)
        claims = [check for check in bad if check.kind == "derivative"]
        if claims and claim_of is not None and isinstance(self.subject, TensorSubject):
            size = int(np.prod(self.subject.output_shape))
            given = np.ones(size) if upstream is None else np.asarray(upstream, dtype=np.float64)
            whole = WholeProblem(self.subject, self.where)
            verified = {
                check.input
                for check in self.report.checks
                if check.kind == "numeric" and check.status == "passed" and check.input
            }
            problem = ClaimProblem(whole, claim_of, given.reshape(-1), repairs_of, verified)
            for check in claims:
                assert check.input is not None
                self._judge(problem, check.input, [check], repaired=True)

    def fall_back(self) -> None:
        """Give each check that nothing has explained the diagnosis that only states it."""
        for check in self.report.checks:
            if check.status == "failed" and (check.kind, check.input) not in self.explained:
                self.found.append(mismatch.diagnosis(check))
        if any(check.status == "failed" for check in self.report.checks):
            return
        for check in self.report.checks:
            if check.status == "inconclusive" and (check.kind, check.input) not in self.explained:
                told = inconclusive.diagnosis(check)
                if told.message not in {other.message for other in self.found}:
                    self.found.append(told)

    def _of_the_function(self) -> bool:
        """What is wrong with the function itself; True where nothing else can be said then."""
        bad = {c.kind: c for c in reversed(self.report.checks) if c.status != "passed"}
        written = bad.get("unchanged")
        if written is not None:
            told = input_overwritten.diagnosis(written.note or "", written.input)
        elif "repeatable" in bad:
            told = not_deterministic.diagnosis(bad["repeatable"].note or "")
        elif "value" in bad:
            self._add(bad["value"], mode_dependent.diagnosis(bad["value"].note or ""))
            return False
        else:
            return False
        # Whatever else differs may differ for that reason alone.
        self.found.append(told)
        self.explained |= {(other.kind, other.input) for other in self.report.checks}
        return True

    def _add(self, check: Check, diagnosis: Diagnosis) -> None:
        self.found.append(diagnosis)
        self.explained.add((check.kind, check.input))

    # The formula's own gradient.

    def _formula(self, bad: Sequence[Check]) -> None:
        failed = [c for c in bad if c.status == "failed" and c.kind in _OF_THE_FORMULA]
        if failed and isinstance(self.subject, TensorSubject):
            hints = {
                int(np.prod(finding.shape)): np.unique(finding.entries[finding.wrong])
                for finding in self.report.findings
                if finding.kind == "numeric" and len(finding.entries)
            }
            wrong, all_seen = nodewise.wrong_nodes(self.subject, self.options, self.where, hints)
            for one in wrong:
                self._node(one)
            if self.found:
                self.explained |= {(check.kind, check.input) for check in failed}
                return
            if all_seen and self._severed(failed):
                return
        problem = problem_of(self.subject)
        if isinstance(problem, WholeProblem):
            problem.located = self.where
        names = dict.fromkeys(check.input for check in bad if check.kind in _OF_THE_FORMULA)
        for name in names if None not in names else self.subject.names:
            checks = [c for c in bad if c.input in (name, None) and c.kind in _OF_THE_FORMULA]
            self._judge(problem, str(name), checks)

    def _node(self, wrong: nodewise.WrongNode) -> None:
        problem, report = wrong.problem, wrong.report
        for evidence in wrong.evidence.values():
            told = first(evidence)
            self.found.append(told or mismatch.of(evidence))
        bad = [c for c in report.checks if c.status == "failed" and c.kind in _OF_THE_FORMULA]
        names = dict.fromkeys(check.input for check in bad)
        for name in names if None not in names else problem.names:
            evidence = self._evidence(problem, str(name), report)
            told = first(evidence)
            if told is None:
                checks = [check for check in bad if check.input in (name, None)]
                if not checks or (name not in names and not _wrong(evidence)):
                    continue
                told = mismatch.diagnosis(checks[0], evidence.what, problem.where)
            self.found.append(told)

    def _severed(self, failed: Sequence[Check]) -> bool:
        """Every node is right, and yet something is missing: where does a history end?"""
        explained = False
        cuts = {cut.input: cut for cut in nodewise.cuts(self.subject, self.where)}
        for name in dict.fromkeys(check.input for check in failed):
            cut = cuts.get(str(name))
            if cut is None:
                continue
            checks = [check for check in failed if check.input == name]
            evidence = self._evidence(WholeProblem(self.subject, self.where), str(name))
            told = zero.found(evidence)
            if told is not None:
                told = Diagnosis(told.code, f"{told.message}: {cut.sentence}", None, told.input)
            elif not any(view.claimed.any() for view in evidence.views):
                continue
            else:
                message = f"the gradient of {name} lacks a term: {cut.sentence}"
                told = Diagnosis("missing-term", message, None, str(name))
            for check in checks:
                self.explained.add((check.kind, check.input))
            self.found.append(told)
            explained = True
        return explained and all((c.kind, c.input) in self.explained for c in failed)

    # One input of one problem.

    def _judge(
        self, problem: Problem, name: str, checks: Sequence[Check], repaired: bool = False
    ) -> None:
        if all((check.kind, check.input) in self.explained for check in checks):
            return
        evidence = self._evidence(problem, name, kinds=[check.kind for check in checks])
        failed = any(check.status == "failed" for check in checks)
        if not failed:
            # What cannot be told has no fault, only a reason.
            repaired = False
        told = repair(evidence) if repaired else None
        whole = first(evidence) if failed else reason(evidence)
        if whole is not None and told is not None and "the term through" not in whole.message:
            # The rule names the fault as a whole; the repair knows the text that would hold.
            told = Diagnosis(whole.code, whole.message, told.remedy, name)
        told = told or whole
        if told is None:
            return
        self.found.append(told)
        self.explained |= {(check.kind, check.input) for check in checks}

    def _evidence(
        self,
        problem: Problem,
        name: str,
        report: Report | None = None,
        kinds: Sequence[str] = ("numeric",),
    ) -> Evidence:
        report = report or self.report
        index = problem.names.index(name)
        findings = [f for f in report.findings if f.input == name and f.kind in kinds]
        reason, failing = None, None
        for finding in findings:
            reason = reason or finding.reason
            if finding.kind in ("numeric", "derivative") and len(finding.entries):
                failing = np.unique(finding.entries)
        compared = max((c.compared for c in report.checks if c.input == name and c.kind in kinds),
                       default=0)  # fmt: skip
        return Evidence(problem, index, failing, compared, reason)


def first(evidence: Evidence) -> Diagnosis | None:
    """The first diagnosis that the evidence bears out; None where it is too thin for any."""
    for condition in conditions():
        told = condition(evidence)
        if told is not None:
            return told
    return None


def reason(evidence: Evidence) -> Diagnosis | None:
    """Why nothing can be told, where that has a code of its own."""
    for one in _REASONS:
        told: Diagnosis | None = one.found(evidence)
        if told is not None:
            return told
    return None


def repair(evidence: Evidence) -> Diagnosis | None:
    """A small change of the claimed formula that makes it hold at every point looked at."""
    views = [view for view in evidence.views if not view.point.bent.all()]
    if len({view.point.label for view in views}) < 2:
        return None
    if not any(view.wrong.any() for view in views):
        # A fault finer than what is measured here: the formula as it is would seem to hold too.
        return None
    for one in evidence.problem.repairs(evidence.name):
        if all(_holds(one, view, evidence) for view in views):
            message = f"{evidence.what} {one.fault}"
            return Diagnosis(one.code, message, one.remedy, evidence.name)
    return None


def _holds(one: Repair, view: Any, evidence: Evidence) -> bool:
    try:
        value = np.broadcast_to(one.value(view.point.arrays), evidence.shape)
    except (KaelError, ArithmeticError, ValueError):
        return False
    flat = np.asarray(value, dtype=np.float64).reshape(-1)[view.entries]
    off = np.abs(flat - view.right)
    return bool((off <= _slack(flat, view))[~view.point.bent].all())


def _slack(flat: Floats, view: Any) -> Array:
    return np.asarray(view.relative * np.maximum(np.abs(flat), np.abs(view.right)) + view.doubt)


def _wrong(evidence: Evidence) -> bool:
    return any(view.wrong.any() for view in evidence.given)
