"""What the parts of one verification share: the subject, how it is asked, what was found so far.

Nothing is decided here; `verification` says in which order the parts look.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kael.checker import batch
from kael.checker.comparison import smallest_seen, summarize
from kael.checker.entries import MOST_LADDERS, Compared, Heads, Probe, probe_each
from kael.checker.kinkfinder import Locate
from kael.checker.kinks import Tolerance
from kael.checker.model import Floats, GradcheckOptions, Kind, Report
from kael.checker.properties import Examination
from kael.checker.subject import Subject, TensorSubject

# Below this many entries, recording the formula and checking a row costs more than it saves.
WORTH_ROWS = 16

# Evaluations that a close look at one entry takes, where it turns out to be wrong.
CLOSE_LOOK = 60


class Trial:
    """One verification while it runs."""

    ex: Examination
    seconds: float = 0.0
    """What one evaluation took."""

    def __init__(
        self, subject: Subject, options: GradcheckOptions, locate: Locate | None = None
    ) -> None:
        self.subject, self.options, self.locate = subject, options, locate
        self.report = Report("passed", subject=subject)
        self.tolerance = self._tolerance(subject.float32)
        self.replay: batch.Replay | None = None
        self.rows: Probe | None = None

    def _tolerance(self, float32: bool) -> Tolerance:
        atol, rtol = self.options.tolerances(float32)
        return Tolerance(atol, rtol, self.options.default_tolerances)

    def is_float32(self, which: int) -> bool:
        """Whether an input itself is float32; others beside it may be float64."""
        return self.subject.originals[which].dtype == np.float32

    def tolerance_of(self, which: int) -> Tolerance:
        """The rule of comparison for one input."""
        if not self.subject.float32 or self.is_float32(which):
            return self.tolerance
        rule = self._tolerance(float32=False)
        # A factor that was computed in float32 is in the gradient of a float64 input too.
        atol = rule.atol if self.options.atol is not None else max(rule.atol, 1e-6)
        rtol = rule.rtol if self.options.rtol is not None else max(rule.rtol, 1e-5)
        return Tolerance(atol, rtol, rule.strict)

    def heads(self, upstream: Floats) -> Heads:
        """One head: the output under an upstream gradient."""
        return Heads(upstream[:, None], self.ex.value, self.subject.rounding)

    def left(self) -> int | None:
        """How many evaluations may still be made; None where nothing bounds them."""
        most = self.options.max_evaluations
        return None if most is None else max(0, most - self.subject.evaluations)

    def close_looks(self) -> int:
        """At how many entries ladders of steps may be taken; one at least, to say anything."""
        left = self.left()
        return MOST_LADDERS if left is None else min(MOST_LADDERS, max(1, left // CLOSE_LOOK))

    def random(self, *numbers: int) -> np.random.Generator:
        """A stream of its own for each use, from the check's seed."""
        return np.random.default_rng([self.options.seed & 0xFFFFFFFF, *numbers])

    def probe(self, count: int) -> Probe:
        """What moves entries: many at once where the formula can be run again, else singly."""
        single = probe_each(self.subject)
        subject = self.subject
        if not self.options.replayable or not isinstance(subject, TensorSubject):
            return single
        if self.replay is None and count < WORTH_ROWS:
            return single
        if self.replay is None:
            self.replay, _ = batch.record_calls(subject)
            if self.replay.batchable:
                with subject.recording():
                    self.rows = batch.probe_rows(subject, self.replay, single)
        return self.rows or single

    def add(
        self,
        kind: Kind,
        which: int,
        compared: Compared,
        notes: list[str],
        with_outputs: bool = False,
    ) -> None:
        """Put what was compared of one input into the report."""
        if self.is_float32(which):
            notes.insert(0, "float32, checked against float64 differences of the same formula")
        open_still = compared.doubt is not None or (compared.status == "inconclusive").any()
        if self.subject.raised and open_still:
            notes.append(f"beside this point the function raises: {self.subject.raised}")
        check, findings = summarize(self.subject, which, kind, compared, notes, with_outputs)
        ex = self.ex
        if kind == "numeric" and check.status == "passed" and ex.missing[which]:
            unused = f"the output does not depend on {self.subject.names[which]}"
            check.note = f"{unused}; {check.note}" if check.note else unused
        # A claim is held to kael's own gradient as well, far more closely than this.
        if kind == "numeric" and compared.sharpness is not None:
            check.seen = partial(float, compared.sharpness)
        elif kind == "numeric" and len(compared.entries):
            check.seen = partial(smallest_seen, compared, self.tolerance_of(which))
        self.report.checks.append(check)
        self.report.findings += findings
        for finding in findings:
            finding.upstream = ex.weights
        if check.note:
            self.report.notes.append(f"{check.input}: {check.note}")
        if compared.how:
            check.note = f"{check.note}; {compared.how}" if check.note else compared.how


def element(trial: Trial, which: int, entry: int) -> tuple[list[int], float]:
    """The index and the value of one entry of an input."""
    array = trial.subject.arrays[which]
    index: Any = np.unravel_index(entry, array.shape)
    return [int(i) for i in index], float(array.reshape(-1)[entry])
