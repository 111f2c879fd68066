"""The report for people: one line a result, what does not hold in full, and a summary line."""

from collections.abc import Callable

from kael.checker.model import Check
from kael.specs.results import STATED, Result, Run
from kael_cli.reporters import sentence

COLORS = {"passed": "green", "xfailed": "yellow", "skipped": "yellow", "inconclusive": "yellow"}

SHOWN = 10
"""How many wrong entries a failure lists unless more is asked for; the worst come first."""


class TextReporter:
    """Renders results for a terminal; `paint(colour, text)` colours where colours are shown."""

    def __init__(
        self,
        *,
        paint: Callable[[str, str], str] = lambda _color, text: text,
        lines: bool = True,
        verbose: bool = False,
        allow_inconclusive: bool = False,
    ) -> None:
        self._paint = paint
        self._lines = lines
        self._verbose = verbose
        self._allow_inconclusive = allow_inconclusive

    def each(self, result: Result) -> str:
        """What to print as soon as a result is known."""
        if not sentence.holds(result, allow_inconclusive=self._allow_inconclusive):
            return self._in_full(result)
        shown = self._lines or self._verbose or result.branches or result.slips
        return self._line(result) if shown else ""

    def close(self, run: Run) -> str:
        """The summary line."""
        counts = [
            (run.count("passed"), "passed", "green"),
            (run.count("failed"), "failed", "red"),
            (run.count("error"), "error" if run.count("error") == 1 else "errors", "red"),
            (run.count("inconclusive"), "inconclusive", "yellow"),
            (run.count("xpassed"), "xpassed", "red"),
            (run.count("xfailed"), "xfailed", "yellow"),
            (run.count("skipped"), "skipped", "yellow"),
        ]
        shown = [self._paint(color, f"{count} {name}") for count, name, color in counts if count]
        return f"{', '.join(shown) or 'nothing checked'} in {run.seconds:.2f}s\n"

    def _line(self, result: Result) -> str:
        verdict = self._paint(COLORS.get(result.status, "red"), result.status)
        text = f"{result.place}: {result.title}: {verdict}"
        if result.reason:
            text += f": {result.reason}"
        elif result.checks:
            text += f" ({_compared(result.checks)})"
        text += "\n"
        for note in sentence.notes(result):
            text += f"  note: {note}\n"
        if self._verbose:
            for check in result.checks:
                text += f"    {sentence.tally(check)}\n"
        return text + _covered(result)

    def _in_full(self, result: Result) -> str:
        if result.error is not None:
            return self._error(result)
        (code, first), *more = sentence.faults(result) or [(result.status, "does not hold")]
        fault = self._paint("bold", f"{result.at or result.place}: {result.title}: {first}")
        text = f"{fault} [{self._paint(COLORS.get(result.status, 'red'), code)}]\n"
        for other_code, other in more:
            text += f"  and {other} [{other_code}]\n"
        for check in sentence.bad_checks(result):
            text += f"    {sentence.tally(check)}\n" + self._table(check)
        for note in sentence.notes(result):
            text += f"  note: {note}\n"
        for remedy in dict.fromkeys(entry.remedy for entry in result.diagnosis if entry.remedy):
            text += f"  help: {remedy}\n"
        text += _covered(result)
        if result.reproduce:
            text += f"  reproduce: {result.reproduce}\n"
        return text

    def _error(self, result: Result) -> str:
        assert result.error is not None
        shown = result.error.text or f"{result.place}: {result.error.message}"
        first, _, rest = shown.rstrip("\n").partition("\n")
        text = self._paint("bold", first) + "\n" + (f"{rest}\n" if rest else "")
        if result.reproduce:
            text += f"  spec: {result.title}\n  reproduce: {result.reproduce}\n"
        return text

    def _table(self, check: Check) -> str:
        """The wrong entries, worst first, in aligned columns."""
        failures = check.failures if self._verbose else check.failures[:SHOWN]
        if not failures:
            return ""
        head = ("index", *sentence.COLUMNS.get(check.kind, sentence.COLUMNS["numeric"]))
        rows = [(sentence.index(one), *sentence.numbers(one))[: len(head)] for one in failures]
        if any(one.output for one in failures):
            head = (head[0], "output", *head[1:])
            rows = [
                (row[0], sentence.output(one), *row[1:])
                for row, one in zip(rows, failures, strict=True)
            ]
        rows.insert(0, head)
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        text = ""
        for row in rows:
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            text += "      " + "  ".join(cells).rstrip() + "\n"
        rest = check.wrong - len(failures)
        return text + (f"      and {rest} more, each less wrong\n" if rest > 0 else "")


def _compared(checks: list[Check]) -> str:
    """What was looked at: `numeric x, w; expect`."""
    inputs: dict[str, list[str]] = {}
    for check in checks:
        if check.compared and check.kind in STATED:
            inputs.setdefault(check.kind, []).append(check.input or "value")
    return "; ".join(f"{kind} {', '.join(dict.fromkeys(names))}" for kind, names in inputs.items())


def _covered(result: Result) -> str:
    """What the cases of a spec visit and would notice, where that was asked for."""
    text = "".join(f"  branch: {branch.sentence}\n" for branch in result.branches or ())
    if result.branches == []:
        text += "  branch: the formula has none\n"
    if result.slips is None:
        return text
    for slip in result.slips.unnoticed:
        text += f"  mutant: {slip.sentence}\n"
    noticed = result.slips.tried - len(result.slips.unnoticed)
    if not result.slips.held:
        return text + "  mutants: none tried, the spec does not hold as it is\n"
    if not result.slips.tried:
        return text + "  mutants: none, no expression is there to change\n"
    return text + f"  mutants: {noticed} of {result.slips.tried} noticed\n"
