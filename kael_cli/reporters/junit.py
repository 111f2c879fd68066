"""JUnit XML, as CI servers read it: one testcase a spec and case."""

import re

from kael.specs.results import Result, Run
from kael_cli.reporters import sentence
from kael_cli.reporters.text import TextReporter

NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JunitReporter:
    """Renders results as JUnit XML."""

    def __init__(self, *, allow_inconclusive: bool = False) -> None:
        self._allow_inconclusive = allow_inconclusive
        self._text = TextReporter(allow_inconclusive=allow_inconclusive)

    def each(self, result: Result) -> str:
        """Nothing: a document is written when it is whole."""
        del result
        return ""

    def close(self, run: Run) -> str:
        """The document."""
        kinds = [self._kind(result) for result in run.results]
        counts = (
            f'tests="{len(run.results)}" failures="{kinds.count("failure")}" '
            f'errors="{kinds.count("error")}" skipped="{kinds.count("skipped")}" '
            f'time="{run.seconds:.3f}"'
        )
        cases = "".join(map(self._case, run.results, kinds))
        return (
            '<?xml version="1.0" encoding="utf-8"?>\n'
            f'<testsuites name="kael" {counts}>\n<testsuite name="kael" {counts}>\n'
            f"{cases}</testsuite>\n</testsuites>\n"
        )

    def _kind(self, result: Result) -> str:
        if result.status == "error":
            return "error"
        if not sentence.holds(result, allow_inconclusive=self._allow_inconclusive):
            return "failure"
        return "skipped" if result.status in ("skipped", "xfailed") else ""

    def _case(self, result: Result, kind: str) -> str:
        where = result.file or result.label
        attributes = (
            f"classname={_quoted(where)} name={_quoted(result.title)} "
            + (f"file={_quoted(result.file)} " if result.file else "")
            + (f'line="{result.line}" ' if result.line else "")
            + f'time="{result.seconds:.3f}"'
        )
        if not kind:
            return f"<testcase {attributes}/>\n"
        if kind == "skipped":
            message = result.reason or result.status
            return f"<testcase {attributes}><skipped message={_quoted(message)}/></testcase>\n"
        code, message = (sentence.faults(result) or [(result.status, result.status)])[0]
        return (
            f"<testcase {attributes}>\n<{kind} type={_quoted(code)} message={_quoted(message)}>"
            f"{_escaped(self._text.each(result))}</{kind}>\n</testcase>\n"
        )


def _escaped(text: str) -> str:
    text = NOT_XML.sub("\ufffd", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(text: str) -> str:
    escaped = _escaped(text).replace('"', "&quot;")
    return '"' + escaped.replace("\n", "&#10;").replace("\t", "&#9;") + '"'
