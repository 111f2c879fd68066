"""GitHub workflow commands: an annotation on the line of each result that does not hold."""

from kael.specs.results import Result, Run
from kael_cli.reporters import sentence
from kael_cli.reporters.text import TextReporter


class GithubReporter:
    """Renders results as `::error file=…,line=…::…` lines, then the summary line."""

    def __init__(self, *, allow_inconclusive: bool = False) -> None:
        self._allow_inconclusive = allow_inconclusive
        self._text = TextReporter(allow_inconclusive=allow_inconclusive)

    def each(self, result: Result) -> str:
        """One annotation, for a result that does not hold or that has a note."""
        if sentence.holds(result, allow_inconclusive=self._allow_inconclusive):
            return "".join(
                _command("notice", result, "note", note) for note in sentence.notes(result)
            )
        code, _ = (sentence.faults(result) or [(result.status, "")])[0]
        level = "warning" if result.status == "inconclusive" else "error"
        return _command(level, result, code, self._text.each(result).rstrip("\n"))

    def close(self, run: Run) -> str:
        """The summary line, which the log shows as it is."""
        return self._text.close(run)


def _command(level: str, result: Result, code: str, message: str) -> str:
    file, line, column = _place(result)
    properties = {"file": file, "line": line, "col": column}
    properties["title"] = f"{result.title} [{code}]"
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{level} {shown}::{_data(message)}\n"


def _place(result: Result) -> tuple[object, object, object]:
    """Return where a finding stands: at the error, at the claim that fails, or at its spec."""
    error = result.error
    if error is not None and error.file:
        return error.file, error.line, error.column
    if result.file and result.at.startswith(f"{result.file}:"):
        line, _, column = result.at.removeprefix(f"{result.file}:").partition(":")
        return result.file, line, column
    return result.file, result.line, result.column


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")
