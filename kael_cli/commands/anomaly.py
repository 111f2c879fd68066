"""`kael anomaly`: where a NaN or an infinity is born."""

import os
from typing import Any

from kael.inspect.anomaly import Finding, block, find
from kael.specs.model import Instance
from kael.specs.place import Place, SpecError
from kael.specs.runner import recorded
from kael_cli.exits import Exit
from kael_cli.options import AnomalyOptions
from kael_cli.output import Output
from kael_cli.showing import show

OPTIONS = AnomalyOptions

DETECTION = "KAEL_DETECT_ANOMALY"

NONE = "no anomaly: every value and gradient is finite\n"


class Given:
    """Where an input is given, as an inspector wants to know it: text, span and place."""

    def __init__(self, name: str, place: Place) -> None:
        line = place.source_line() or ""
        self.text = name
        self.place = place
        self.source = _Line(line)
        self.start = min((place.column or 1) - 1, len(line))
        self.end = len(line)


class _Line:
    def __init__(self, text: str) -> None:
        self.text = text


def run(options: AnomalyOptions) -> int:
    """Print the anomalies of each target, those that did harm first."""
    # What the variable asks for is done here anyway, and would stop at the first NaN.
    asked = os.environ.pop(DETECTION, None)
    try:
        return _run(options)
    finally:
        if asked is not None:
            os.environ[DETECTION] = asked


def _run(options: AnomalyOptions) -> int:

    def look(instance: Instance) -> list[Finding]:
        evaluated = recorded(instance, options.seed or 0)
        assert evaluated.recorder is not None
        places = {name: Given(name, given.place) for name, given in instance.inputs.items()}
        upstream = evaluated.upstream(ones=True)
        try:
            return find(
                evaluated.recorder,
                evaluated.output,
                evaluated.names,
                upstream=upstream,
                places=places,
            )
        except (SpecError, KeyboardInterrupt):
            raise
        except BaseException as error:  # of a backward in Python
            raise evaluated.failure(error) from error

    def text(instance: Instance, output: Output) -> Exit | None:
        findings = look(instance)
        output.write("\n".join(map(block, findings)) or NONE)
        return Exit.FAILED if _harmful(findings) else None

    def row(instance: Instance) -> dict[str, Any]:
        findings = look(instance)
        status = "failed" if _harmful(findings) else "passed"
        return {"status": status, "findings": [finding.as_json() for finding in findings]}

    return show(options, text, row, {"findings": []})


def _harmful(findings: list[Finding]) -> bool:
    return any(finding.grade == "error" for finding in findings)
