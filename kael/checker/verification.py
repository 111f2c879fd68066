"""A whole check of one formula at one point: the properties, the numbers, the claims.

`check` is what specs and `gradcheck` call. It evaluates, asks for gradients, lets each property
and each input have its say, and adds it all up; nothing stops at the first finding.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kael.checker import batch, complexstep, directions
from kael.checker.comparison import summarize
from kael.checker.entries import (
    MOST_LADDERS,
    Compared,
    Heads,
    Probe,
    compare_entries,
    enclosed_sum,
    probe_each,
)
from kael.checker.kinkfinder import Locate, met_at
from kael.checker.kinks import Tolerance, Verdict
from kael.checker.model import (
    Array,
    Check,
    Finding,
    Floats,
    GradcheckOptions,
    Report,
    worst,
)
from kael.checker.numeric import EPSILON
from kael.checker.properties import (
    NOT_DETERMINISTIC,
    PROPERTIES,
    Examination,
    dense,
    with_zeros,
)
from kael.checker.subject import OutsideSubject, Subject, TensorSubject
from kael.engine.grad_mode import enable_grad, no_grad, observing
from kael.errors import KaelError, KaelValueError
from kael.tensors import Tensor

if TYPE_CHECKING:
    from kael.checker.problems import ClaimOf, Repair

# Up to here, all inputs together, every entry has its own differences; above, random directions
# look at all of them at once.
ENTRIES_ONE_BY_ONE = 48

# Below this many entries, recording the formula and checking a row costs more than it saves.
WORTH_ROWS = 16

SAMPLED = 12

# How many wrong entries are looked at output by output before they are called wrong.
MOST_PER_OUTPUT = 64

# Evaluations for each entry, with some in hand for those that one difference does not settle.
COST = {"projection": 3, "full": 3, "fast": 3, "complex": 3, "adaptive": 20}

# A claim and the analytic gradient are both exact.
CLAIM_ATOL, CLAIM_RTOL = 1e-8, 1e-6

_REDUCTIONS = {"sum", "mean"}


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
) -> Report:
    """Verify the gradient of `function(*inputs)` with respect to the inputs that require one.

    `claims` are hand-derived gradients by input name, of a non-scalar output under `upstream`
    (ones where it is None). `locate` tells which sub-expression is being evaluated, for notes.
    `claim_of` gives the claims at other points, and `repairs_of` what else could have been
    claimed: a diagnosis asks for them, which is made where something does not hold.
    A function without a finite value at the given point gives a report of status `error`.
    """
    options = options or GradcheckOptions()
    names = list(names or (f"input {i}" for i in range(len(inputs))))
    chosen = [
        i
        for i, tensor in enumerate(inputs)
        if tensor.requires_grad and (options.inputs is None or names[i] in options.inputs)
    ]
    subject = TensorSubject(function, inputs, names, chosen)

    def explain(report: Report) -> None:
        from kael.checker.diagnosis import diagnose

        report.diagnosis = diagnose(report, options, locate, upstream, claim_of, repairs_of)

    explained = explain if diagnosed else None
    return _timed(subject, options, dict(claims or {}), upstream, locate, explained)


def check_outside(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    names: Sequence[str] | None = None,
    options: GradcheckOptions | None = None,
    grad: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    requires_grad: Sequence[bool] | None = None,
    diagnosed: bool = True,
) -> Report:
    """Verify a gradient made outside of kael: a function of NumPy arrays, and `grad` or `vjp`."""
    options = options or GradcheckOptions()
    names = list(names or (f"input {i}" for i in range(len(inputs))))
    wanted = requires_grad or [np.asarray(value).dtype.kind == "f" for value in inputs]
    chosen = [
        i
        for i, on in enumerate(wanted)
        if on and (options.inputs is None or names[i] in options.inputs)
    ]
    subject = OutsideSubject(function, inputs, names, chosen, grad, vjp)

    def explain(report: Report) -> None:
        from kael.checker.diagnosis import diagnose

        report.diagnosis = diagnose(report, options)

    return _timed(subject, options, {}, None, None, explain if diagnosed else None)


def _timed(
    subject: Subject,
    options: GradcheckOptions,
    claims: dict[str, Any],
    upstream: Any,
    locate: Locate | None,
    explain: Callable[[Report], None] | None,
) -> Report:
    start = time.perf_counter()
    with np.errstate(all="ignore"), subject.restored():
        report = _Session(subject, options, claims, upstream, locate).run()
        report.evaluations = subject.evaluations
        if explain is not None and report.status in ("failed", "inconclusive", "error"):
            explain(report)
    report.seconds = time.perf_counter() - start
    return report


class _Session:
    """One check while it runs."""

    def __init__(
        self,
        subject: Subject,
        options: GradcheckOptions,
        claims: dict[str, Any],
        upstream: Any,
        locate: Locate | None,
    ) -> None:
        self.subject, self.options = subject, options
        self.claims, self.upstream, self.locate = claims, upstream, locate
        self.report = Report("passed", subject=subject)
        atol, rtol = options.tolerances(subject.float32)
        self.tolerance = Tolerance(atol, rtol, options.default_tolerances)
        self.replay: batch.Replay | None = None
        self.rows: Probe | None = None

    def run(self) -> Report:
        """Look at everything; the report's status is that of its worst check."""
        report, subject = self.report, self.subject
        if not subject.arrays or not any(array.size for array in subject.arrays):
            report.status = "skipped"
            report.notes.append("nothing compared: no input requires a gradient")
            return report
        before = [array.copy() for array in subject.originals]
        recorded = subject.record()
        if not np.isfinite(recorded).all():
            return self._undefined(recorded)
        if not recorded.size:
            report.status = "skipped"
            report.notes.append("nothing compared: the output is empty")
            return report
        with subject.recording():
            value, again = subject.evaluate(), subject.evaluate()
        weights = dense(recorded.size, self.options.seed)
        gradients = self._gradients(weights)
        if gradients is None:
            return self._finished()
        filled, missing = with_zeros(subject, gradients)
        ex = Examination(
            subject, self.options, recorded, value, again, before, weights, filled, missing
        )
        self.ex = ex
        self._properties()
        if self.options.numeric:
            self._numbers()
        for name, claim in self.claims.items():
            self._claim(name, claim)
        report.findings = [*ex.findings, *report.findings]
        return self._finished()

    def _finished(self) -> Report:
        self.report.status = worst([check.status for check in self.report.checks])
        return self.report

    def _undefined(self, recorded: Floats) -> Report:
        kind = "NaN" if np.isnan(recorded).any() else "infinite"
        at = [int(i) for i in np.flatnonzero(~np.isfinite(recorded))[:1]]
        message = f"the output is {kind} at the given point"
        if self.subject.output_shape:
            index = np.unravel_index(at[0], self.subject.output_shape)
            message += f", at element {[int(i) for i in index]}"
        origin = _first_not_finite(self.subject)
        if origin:
            message += f" ({origin})"
        self.report.status, self.report.error = "error", message
        self.report.findings.append(Finding("value", "error", message, reason="undefined"))
        return self.report

    def _gradients(self, weights: Floats) -> list[Array | None] | None:
        try:
            gradients = self.subject.gradients(weights)
        except (KaelError, KaelValueError) as error:
            text = str(error)
            if "returned an in" not in text and "claimed gradient" not in text:
                raise
            self.report.checks.append(Check("shape", None, "failed", 1, 1, note=text))
            self.report.findings.append(Finding("shape", "failed", text))
            return None
        for name, array, part in zip(
            self.subject.names, self.subject.originals, gradients, strict=True
        ):
            self.report.checks.append(Check("shape", name, "passed", compared=1))
            assert part is None or part.shape == array.shape
        return gradients

    def _properties(self) -> None:
        for look in PROPERTIES:
            self.report.checks += look(self.ex)

    # The numbers.

    def _numbers(self) -> None:
        subject, ex = self.subject, self.ex
        if not ex.deterministic:
            for name in subject.names:
                self.report.checks.append(
                    Check("numeric", name, "inconclusive", note=NOT_DETERMINISTIC)
                )
            return
        filled = [which for which, array in enumerate(subject.arrays) if array.size]
        heads = Heads(ex.weights[:, None], ex.value, subject.rounding)
        analytic = [ex.gradients[which].reshape(-1, 1) for which in filled]
        if self._by_directions(sum(len(rows) for rows in analytic)):
            self._directed("numeric", filled, analytic, heads)
        else:
            for which in filled:
                self._input(which, heads)
        self._behind_reduction()

    def _probe(self) -> Probe:
        single = probe_each(self.subject)
        subject = self.subject
        if not self.options.replayable or not isinstance(subject, TensorSubject):
            return single
        if sum(array.size for array in subject.arrays) < WORTH_ROWS:
            return single
        if self.replay is None:
            self.replay, _ = batch.record_calls(subject)
            if self.replay.batchable:
                with subject.recording():
                    self.rows = batch.probe_rows(subject, self.replay, single)
        return self.rows or single

    def _by_directions(self, size: int) -> bool:
        mode = self.options.mode
        return mode == "fast" or (mode == "projection" and size > ENTRIES_ONE_BY_ONE)

    def _input(self, which: int, heads: Heads) -> None:
        notes: list[str] = []
        if self.options.mode == "complex":
            compared = self._complex(which, self.ex.gradients[which], heads)
        elif self.options.mode == "full":
            whole = Heads(None, self.ex.value)
            compared = self._entries(which, self._jacobian(which), whole, notes)
        else:
            compared = self._entries(which, self.ex.gradients[which].reshape(-1, 1), heads, notes)
        self._add("numeric", which, compared, notes, with_outputs=self.options.mode == "full")

    def _entries(self, which: int, analytic: Floats, heads: Heads, notes: list[str]) -> Compared:
        entries, ladders = self._within_budget(which, len(analytic), notes)
        with self.subject.recording():
            compared = compare_entries(
                self.subject,
                self._probe(),
                which,
                entries,
                analytic[entries],
                heads,
                self.tolerance,
                self.options.eps,
                fine=self.options.mode == "adaptive",
                most_ladders=ladders,
            )
            return self._kinks(which, compared, analytic, heads, notes)

    def _within_budget(self, which: int, size: int, notes: list[str]) -> tuple[Array, int]:
        """The entries that may be looked at, and at how many of them closely."""
        budget = self.options.max_evaluations
        if budget is None:
            return np.arange(size), size if self.options.mode == "adaptive" else MOST_LADDERS
        left = max(0, budget - self.subject.evaluations) // (len(self.subject.arrays) - which)
        most = max(1, left // COST[self.options.mode])
        close = max(1, left // 40)
        if size <= most:
            return np.arange(size), size if self.options.mode == "adaptive" else close
        note = f"compared {most} of {size} entries, drawn at random (max-evaluations {budget})"
        notes.append(note)
        name = self.subject.names[which]
        self.report.coverage = f"{name}: {note}"
        drawn = np.sort(self._random(which, size).choice(size, most, replace=False))
        return drawn, most if self.options.mode == "adaptive" else close

    def _directed(
        self,
        kind: Any,
        inputs: list[int],
        analytic: list[Floats],
        heads: Heads,
        claims: dict[int, Floats] | None = None,
    ) -> None:
        """All entries of some inputs at once; those that directions lead to one by one."""
        subject = self.subject
        bounds = np.cumsum([0, *(len(rows) for rows in analytic)])
        size = int(bounds[-1])
        line = analytic[0] if len(analytic) == 1 else np.concatenate(analytic)
        budget = self.options.max_evaluations
        free = budget is None
        budget = directions.MOST_EVALUATIONS if budget is None else budget - subject.evaluations
        widely = False
        extra = np.arange(0)
        with subject.recording():
            search = partial(
                directions.search,
                subject,
                inputs,
                line,
                heads,
                self.tolerance,
                budget=max(24, budget),
            )
            found = search(self._random(size), agreed_only=True)
            firsts: list[Compared | None] = [None] * len(inputs)
            if found.differs:
                sample = self._random(size, 1).choice(size, min(SAMPLED, size), replace=False)
                firsts = self._judged_by_input(inputs, bounds, np.sort(sample), analytic, heads)
                seen = [one.wrong for one in firsts if one is not None]
                widely = bool(np.concatenate(seen).mean() > 0.3)
                if widely:
                    drawn = self._random(size, 2).choice(size, min(64, size), replace=False)
                else:
                    found = search(self._random(size))
                    drawn = np.array(found.suspects, dtype=np.int64)
                extra = np.setdiff1d(drawn, sample)
            elif self.options.mode != "fast" and (free or 3 * len(found.blunt) < budget):
                extra = np.array(found.blunt, dtype=np.int64)
            more = self._judged_by_input(inputs, bounds, extra, analytic, heads)
            several = len(inputs) > 1
            for place, which in enumerate(inputs):
                notes: list[str] = []
                compared = _joined(firsts[place], more[place])
                compared = self._kinks(which, compared, analytic[place], heads, notes)
                self._sum_up(which, compared, found, len(analytic[place]), widely, several, notes)
                if claims is not None:
                    self._apply_claim(compared, analytic[place][:, 0], claims[which])
                self._add(kind, which, compared, notes)

    def _judged_by_input(
        self,
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
            judged.append(self._judged(which, own, rows, heads) if len(own) else None)
        return judged

    def _random(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng([self.options.seed & 0xFFFFFFFF, *numbers])

    def _sum_up(
        self,
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
        name = self.subject.names[which]
        compared.covered = size
        compared.excess = found.excess
        if found.directions and not widely:
            all_inputs = " of all inputs" if several else ""
            compared.how = (
                f"{found.directions} random directions over the entries{all_inputs}; "
                f"an error above {found.sharpness:.2g} in one entry would have been seen"
            )
            self.report.smallest_error_seen[name] = found.sharpness
        looked = len(compared.entries)
        if widely or (found.unresolved and wrong):
            notes.append(f"{wrong} of the {looked} entries looked at one by one are wrong")
        elif found.unresolved and found.between:
            notes.append("many entries are at kinks; along random directions the slopes enclose")
        elif found.unresolved or found.vague:
            compared.doubt = "more differs along random directions than single entries account for"

    def _judged(self, which: int, entries: Array, analytic: Floats, heads: Heads) -> Compared:
        return compare_entries(
            self.subject,
            self._probe(),
            which,
            entries,
            analytic[entries],
            heads,
            self.tolerance,
            self.options.eps,
        )

    def _jacobian(self, which: int) -> Floats:
        """The analytic Jacobian: one backward for each element of the output."""
        size = self.ex.value.size
        columns = np.empty((self.subject.arrays[which].size, size))
        one = np.zeros(size)
        for output in range(size):
            one[output] = 1.0
            columns[:, output] = self.ex.vjp(one)[which].reshape(-1)
            one[output] = 0.0
        return columns

    def _complex(self, which: int, analytic: Floats, heads: Heads) -> Compared:
        probe = probe_each(self.subject)
        return complexstep.compare(
            self.subject, which, analytic.reshape(-1), heads, self.tolerance, probe
        )

    # Kinks.

    def _kinks(
        self,
        which: int,
        compared: Compared,
        analytic: Floats,
        heads: Heads,
        notes: list[str],
    ) -> Compared:
        """Settle what one entry alone cannot: kinks of several outputs, and of several entries."""
        if heads.weights is not None and self.ex.value.size > 1:
            for i in np.flatnonzero(compared.wrong)[:MOST_PER_OUTPUT]:
                self._per_output(which, compared, int(i), heads)
        met = [
            i
            for i, entry in enumerate(compared.entries)
            if (v := compared.verdicts.get((int(entry), int(compared.heads[i]))))
            and v.shape == "kink"
            and v.status == "passed"
        ]
        if heads.weights is not None and len(met) > 1:
            for head in range(heads.count):
                self._along_kinks(
                    which, compared, [i for i in met if compared.heads[i] == head], heads
                )
        met = [i for i in met if compared.status[i] == "passed"]
        if met:
            notes.append(self._kink_note(which, compared, met))
        return compared

    def _one_sided(self, which: int, entries: Array, signs: Floats, step: float) -> tuple[Any, Any]:
        """One-sided slopes of every output along signed entries moved together."""
        flat = self.subject.flat(which)
        x = np.array(flat[entries], dtype=np.float64)
        rows = []
        try:
            for sign in (1.0, -1.0):
                flat[entries] = x + sign * step * signs
                rows.append((self.subject.evaluate() - self.ex.value) * sign / step)
        finally:
            flat[entries] = x
        return rows[0], rows[1]

    def _per_output(self, which: int, compared: Compared, i: int, heads: Heads) -> None:
        """Pass an entry whose gradient is right at the kink of each output it reaches."""
        assert heads.weights is not None
        entry, head = int(compared.entries[i]), int(compared.heads[i])
        x = float(np.asarray(self.subject.arrays[which]).reshape(-1)[entry])
        one, ones = np.array([entry]), np.ones(1)
        bent: Array = np.ones(self.ex.value.size, dtype=bool)
        closer: Array | None = None
        # A kink looks the same at every scale; what only looks like one does not.
        for step in (8.3e-9 * max(1.0, abs(x)), 8.3e-7 * max(1.0, abs(x))):
            right, left = self._one_sided(which, one, ones, step)
            noise = 8 * EPSILON * np.abs(self.ex.value) / step
            gap = np.abs(right - left)
            bent &= gap > 1e-3 * np.maximum(np.abs(right), np.abs(left)) + 10 * noise
            if closer is not None:
                bent &= np.abs(gap - closer) < 0.2 * gap
            closer = gap
        if not bent.any():
            return
        weights = heads.weights[:, head]
        middle = np.where(bent, 0.0, (right + left) / 2)
        right, left = np.where(bent, right, middle), np.where(bent, left, middle)
        slack = float(np.abs(weights) @ (noise + np.where(bent, 0.0, gap / 2)))
        a = float(compared.analytic[i])
        if not enclosed_sum(right, left, weights, a, slack, self.tolerance):
            return
        outputs = np.flatnonzero(bent)
        if len(outputs) <= 16:
            upstream = np.zeros(self.ex.value.size)
            for output in outputs:
                upstream[output] = 1.0
                own = float(self.ex.vjp(upstream)[which].reshape(-1)[entry])
                upstream[output] = 0.0
                low, high = sorted((float(right[output]), float(left[output])))
                if not low - 1e-3 * (high - low) <= own <= high + 1e-3 * (high - low):
                    return
        numeric = float((right + left) @ weights / 2)
        compared.status[i] = "passed"
        compared.verdicts[entry, head] = Verdict("passed", numeric, slack, "kink", "kink")

    def _along_kinks(self, which: int, compared: Compared, met: list[int], heads: Heads) -> None:
        """Enclosure along directions of ±1: each entry may be inside and all together outside.

        The kinks that open upwards and those that open downwards are walked apart: together
        their slopes could cancel where each is right.
        """
        assert heads.weights is not None
        verdicts = [
            compared.verdicts[int(compared.entries[i]), int(compared.heads[i])] for i in met
        ]
        for upward in (True, False):
            group = [i for i, v in zip(met, verdicts, strict=True) if (v.right > v.left) == upward]
            if len(group) < 2:
                continue
            entries = compared.entries[group]
            analytic = compared.analytic[group]
            weights = heads.weights[:, int(compared.heads[group[0]])]
            outside = self._outside(which, entries, analytic, weights)
            if outside is None:
                continue
            note = (
                "each entry lies between its one-sided slopes, but not all together: along "
                f"{outside[0]} the slopes are {outside[1]:.6g} and {outside[2]:.6g}, "
                f"the gradient says {outside[3]:.6g}"
            )
            for i in group:
                key = int(compared.entries[i]), int(compared.heads[i])
                compared.status[i] = "failed"
                compared.verdicts[key] = replace(compared.verdicts[key], status="failed", note=note)

    def _outside(
        self, which: int, entries: Array, analytic: Floats, weights: Floats
    ) -> tuple[str, float, float, float] | None:
        rng = np.random.default_rng([self.options.seed & 0xFFFFFFFF, 31, len(entries)])
        x = np.abs(np.asarray(self.subject.arrays[which]).reshape(-1)[entries])
        scale = max(1.0, float(x.max()))
        for trial in range(6):
            signs = rng.choice((-1.0, 1.0), len(entries)) if trial else np.ones(len(entries))
            claimed = float(signs @ analytic)
            found = None
            # A kink looks the same at every scale; what only looks like one does not.
            for step in (8.3e-7 * scale, 8.3e-9 * scale):
                right, left = self._one_sided(which, entries, signs, step)
                size = float(np.abs(weights * right).sum() + np.abs(weights * left).sum())
                noise = EPSILON * float(np.abs(weights * self.ex.value).sum()) / step
                slack = 1e-4 * (size + float(np.abs(analytic).sum())) + 40 * noise
                if enclosed_sum(right, left, weights, claimed, slack, self.tolerance):
                    found = None
                    break
                low, high = sorted((float(weights @ left), float(weights @ right)))
                found = low, high
            if found is not None:
                shown = [int(s) for s in signs[:8]]
                along = f"{shown}{'' if len(signs) <= 8 else ' and on'}"
                return along, found[0], found[1], claimed
        return None

    def _kink_note(self, which: int, compared: Compared, met: list[int]) -> str:
        entry = int(compared.entries[met[0]])
        verdict = compared.verdicts[entry, int(compared.heads[met[0]])]
        array = self.subject.arrays[which]
        index = [int(i) for i in np.unravel_index(entry, array.shape)]
        x = float(array.reshape(-1)[entry])
        found = None
        if isinstance(self.subject, TensorSubject):
            found = met_at(self.subject, which, entry, 1e-6 * max(1.0, abs(x)), self.locate)
        note = f"at a kink: {self.subject.names[which]} element {index}"
        if found is not None:
            note += f", {found}"
        if math.isfinite(verdict.left) and math.isfinite(verdict.right):
            low, high = sorted((verdict.left, verdict.right))
            note += f", where the slope is anything from {low:.6g} to {high:.6g}"
        if len(met) > 1:
            note += f" (and {len(met) - 1} more)"
        return note

    # What a reduction hides, and claims.

    def _behind_reduction(self) -> None:
        """Check what a final sum hides: all gradients are zero, whatever the formula inside."""
        subject, ex = self.subject, self.ex
        if not isinstance(subject, TensorSubject) or ex.value.size != 1 or subject.float32:
            return
        if not subject.differentiable or any(ex.missing):
            return
        size = float(np.abs(ex.value).max())
        if not all((np.abs(g) <= 1e-12 * max(1.0, size)).all() for g in ex.gradients):
            return
        inner = _before_reduction(subject)
        if inner is None:
            return
        operation, function = inner
        nested = TensorSubject(function, subject.inputs, _all_names(subject), subject.positions)
        session = _Session(nested, self.options, {}, None, self.locate)
        report = session.run()
        subject.evaluations += nested.evaluations
        note = (
            f"the gradient behind the final {operation} is zero: also checked before the "
            f"{operation}, with a dense upstream gradient"
        )
        self.report.notes.append(note)
        kinds = ("numeric", "linear", "zero")
        for check in self.report.checks:
            if check.kind == "numeric":
                check.note = f"{check.note}; {note}" if check.note else note
        for check in report.checks:
            if check.kind in kinds and check.status != "passed":
                check.note = f"{note}; {check.note}" if check.note else note
                self.report.checks.append(check)
        self.report.findings += report.findings

    def _claim(self, name: str, claim: Any) -> None:
        """A hand-derived gradient, against the analytic one and against differences."""
        ex, subject = self.ex, self.subject
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
        if self.upstream is None:
            upstream = np.ones(ex.value.size)
        else:
            upstream = np.asarray(self.upstream, dtype=np.float64).reshape(-1)
        analytic = ex.vjp(upstream)[which].reshape(-1)
        rows = claimed.reshape(-1, 1)
        heads = Heads(upstream[:, None], ex.value, subject.rounding)
        notes: list[str] = []
        if not (self.options.numeric and ex.deterministic):
            compared = _blank(rows[:, 0])
        elif self.options.mode == "complex":
            compared = self._complex(which, rows, heads)
        elif self._by_directions(len(rows)):
            self._directed("derivative", [which], [rows], heads, {which: analytic})
            return
        else:
            compared = self._entries(which, rows, heads, notes)
        self._apply_claim(compared, rows[:, 0], analytic)
        self._add("derivative", which, compared, notes)

    def _apply_claim(self, compared: Compared, claimed: Floats, analytic: Floats) -> None:
        """Fail entries that differ from the analytic gradient, but for the freedom of a kink."""
        exact = Tolerance(
            CLAIM_ATOL if self.options.atol is None else self.options.atol,
            CLAIM_RTOL if self.options.rtol is None else self.options.rtol,
            False,
        )
        if self.subject.float32:
            exact = self.tolerance
        at = {int(entry): i for i, entry in enumerate(compared.entries)}
        off = ~(np.abs(claimed - analytic) <= exact.atol + exact.rtol * np.abs(analytic))
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
            if compared.status[i] == "passed" or not np.isfinite(compared.numeric[i]):
                compared.status[i] = "failed"
                compared.numeric[i] = analytic[entry]
                compared.error[i] = 0.0

    def _add(
        self,
        kind: Any,
        which: int,
        compared: Compared,
        notes: list[str],
        with_outputs: bool = False,
    ) -> None:
        if self.subject.float32:
            notes.insert(0, "float32, checked against float64 differences of the same formula")
        check, findings = summarize(self.subject, which, kind, compared, notes, with_outputs)
        ex = self.ex
        if kind == "numeric" and check.status == "passed" and ex.missing[which]:
            unused = f"the output does not depend on {self.subject.names[which]}"
            check.note = f"{unused}; {check.note}" if check.note else unused
        self.report.checks.append(check)
        self.report.findings += findings
        for finding in findings:
            finding.upstream = ex.weights
        if check.note:
            self.report.notes.append(f"{check.input}: {check.note}")
        if compared.how:
            check.note = f"{check.note}; {compared.how}" if check.note else compared.how


def _joined(*parts: Compared | None) -> Compared:
    given = [part for part in parts if part is not None]
    if len(given) == 1:
        return given[0]
    if not given:
        return _blank(np.zeros(0))
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


def _blank(claimed: Floats) -> Compared:
    count = len(claimed)
    return Compared(
        np.arange(count),
        np.zeros(count, dtype=np.int64),
        claimed.copy(),
        np.full(count, math.nan),
        np.full(count, math.nan),
        np.full(count, "passed", dtype=object),
        {},
    )


def _all_names(subject: TensorSubject) -> list[str]:
    names = [f"input {i}" for i in range(len(subject.inputs))]
    for position, name in zip(subject.positions, subject.names, strict=True):
        names[position] = name
    return names


def _before_reduction(subject: TensorSubject) -> tuple[str, Callable[..., Any]] | None:
    """The name of the reduction that makes the output, and the function without it."""

    def last_operand(*inputs: Tensor) -> tuple[str, Tensor] | None:
        recording = batch.Recording(())
        with observing(recording):
            output: Any = subject.function(*inputs)
        name = None
        for op, operands, _, made in reversed(recording.observed):
            if made is output and getattr(op, "name", None) in _REDUCTIONS:
                name, output = op.name, operands[0]
        return None if name is None else (name, output)

    with enable_grad():
        found = last_operand(*subject.inputs)
    if found is None or found[1]._array.size < 2:
        return None

    def function(*inputs: Tensor) -> Any:
        operand = last_operand(*inputs)
        assert operand is not None
        return operand[1]

    return found[0], function


def _first_not_finite(subject: Subject) -> str | None:
    """The operation that first made a value that is not finite out of finite ones."""
    if not isinstance(subject, TensorSubject):
        return None
    for name, array in zip(subject.names, subject.originals, strict=True):
        if not np.isfinite(array).all():
            return f"input {name} is not finite"
    recording = batch.Recording(())
    with no_grad(), observing(recording):
        subject.function(*subject.inputs)
    for op, operands, _, output in recording.observed:
        finite = all(np.isfinite(x._array).all() for x in operands if x._array.dtype.kind == "f")
        if finite and output._array.dtype.kind == "f" and not np.isfinite(output._array).all():
            at = int(np.flatnonzero(~np.isfinite(output._array))[0])
            given = [f"{x._array.reshape(-1)[at]:.6g}" for x in operands if x.shape == output.shape]
            name = getattr(op, "name", getattr(op, "__name__", "?"))
            return f"{name}({', '.join(given)})" if given else str(name)
    return None
