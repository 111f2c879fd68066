"""The words of a result that every format shares: what failed, and by which numbers.

The sentence of a failure is its diagnosis's own; here are those of the other verdicts.
"""

from kael.checker.model import Check, Failure, told_apart
from kael.specs.results import STATED, Result

COLUMNS: dict[str, tuple[str, ...]] = {
    "derivative": ("claimed", "found", "error of found"),
    "expect": ("computed", "expected"),
    "numeric": ("analytic", "numeric", "numeric error"),
    "linear": ("gradient", "if linear"),
    "zero": ("gradient where the upstream is 0", "should be"),
}
"""What the two sides of an entry, and the error of the second, are called in each kind of check."""


def holds(result: Result, *, allow_inconclusive: bool = False) -> bool:
    """Whether this result lets the run succeed."""
    if result.status == "inconclusive":
        return allow_inconclusive
    return result.status in ("passed", "xfailed", "skipped")


def faults(result: Result) -> list[tuple[str, str]]:
    """Each fault of a result, as (code, sentence), the one to read first in front."""
    if result.error is not None:
        return [("error", result.error.message)]
    if result.status == "xpassed":
        return [("xpass", f"passes, but is marked xfail{_because(result.reason)}")]
    return [(one.code, one.message) for one in result.diagnosis]


def notes(result: Result) -> list[str]:
    """The notes of a result that its faults and evidence do not tell already."""
    bad = bad_checks(result)
    told = {check.note for check in bad} | {f"{check.input}: {check.note}" for check in bad}
    return [note for note in dict.fromkeys(result.notes) if note not in told]


def bad_checks(result: Result) -> list[Check]:
    """The checks that did not hold, failed ones before inconclusive ones."""
    failed = [check for check in result.checks if check.status == "failed"]
    return failed + [check for check in result.checks if check.status == "inconclusive"]


def tally(check: Check) -> str:
    """One line on a whole check: how many entries were compared and how many are wrong."""
    subject = f"{check.kind} {check.input}" if check.input else check.kind
    if not check.compared:
        return f"{subject}: {check.note or check.status}"
    noun = "entry" if check.compared == 1 else "entries"
    if check.status == "failed":
        text = f"{subject}: {check.wrong} of {check.compared} {noun} wrong"
    elif 0 < check.open < check.compared:
        text = f"{subject}: {check.open} of {check.compared} {noun} {check.status}"
    else:
        text = f"{subject}: {check.compared} {noun} {check.status}"
    if check.max_abs_error and check.status != "inconclusive":
        text += f", largest error {check.max_abs_error:.3g}"
        text += f" (relative {check.max_rel_error:.3g})" if check.max_rel_error else ""
    # the note of a property that does not hold, or of what cannot be told, is the fault's sentence
    told = check.status == "inconclusive" or check.kind not in STATED or not check.note
    text = text if told else f"{text}; {check.note}"
    if check.status == "passed" and check.seen is not None:
        text += f"; an error above {check.seen():.2g} in one entry would have been seen"
    return text


def numbers(failure: Failure) -> tuple[str, str, str]:
    """The two sides with the fewest digits, from six on, that tell them apart, and the error.

    >>> numbers(Failure((0,), 3.14, 3.1400000001, 2e-11))
    ('3.14', '3.1400000001', '2e-11')
    """
    return *told_apart(failure.analytic, failure.numeric), f"{failure.numeric_error:.2g}"


def output(failure: Failure) -> str:
    """The element of the output that was compared, where each was by itself."""
    return "" if failure.output is None else "[" + ", ".join(map(str, failure.output)) + "]"


def index(failure: Failure) -> str:
    """An entry's place in its tensor, as it is written in Python."""
    return "[" + ", ".join(map(str, failure.index)) + "]"


def _because(reason: str | None) -> str:
    return f" ({reason})" if reason else ""
