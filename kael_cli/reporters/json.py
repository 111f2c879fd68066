"""The JSON document of `gradcheck` and `check`, and the plain values every JSON document uses."""

import json
import math
from typing import Any

import numpy as np

from kael.checker.model import Check
from kael.specs.results import Result, Run
from kael.version import __version__


class JsonReporter:
    """Renders results as one JSON document."""

    def each(self, result: Result) -> str:
        """Nothing: a document is written when it is whole."""
        del result
        return ""

    def close(self, run: Run) -> str:
        """The document."""
        counts = {
            "passed": run.count("passed"),
            "failed": run.count("failed"),
            "inconclusive": run.count("inconclusive"),
            "errors": run.count("error"),
            "xfailed": run.count("xfailed"),
            "xpassed": run.count("xpassed"),
            "skipped": run.count("skipped"),
            "seconds": round(run.seconds, 6),
        }
        return document([_result(result) for result in run.results], summary=counts)


def document(results: list[dict[str, Any]], **head: Any) -> str:
    """A document with one result a line, readable by any JSON parser."""
    rows = ",\n".join(json.dumps(plain(result), allow_nan=False) for result in results)
    fields = {"kael": __version__, **head}
    opening = json.dumps(fields, allow_nan=False)[:-1]
    return f'{opening}, "results": [{rows and chr(10)}{rows}{rows and chr(10)}]}}\n'


def plain(value: Any) -> Any:
    """The value in JSON's types, NaN and infinities as strings.

    >>> plain({"a": np.array([1.0, np.inf]), "b": (float("nan"), True)})
    {'a': [1.0, 'Infinity'], 'b': ['NaN', True]}
    """
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        finite = value.dtype.kind in "biu" or bool(np.isfinite(value).all())
        return value.tolist() if finite else plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, complex):
        return {"real": plain(value.real), "imag": plain(value.imag)}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def error(result: Any) -> dict[str, Any] | None:
    """The `error` of a result's row."""
    fault = result.error
    if fault is None:
        return None
    place = {"file": fault.file, "line": fault.line, "column": fault.column}
    return {"message": fault.message, **place}


def _result(result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {
        "spec": result.spec,
        "case": result.case,
        "file": result.file,
        "line": result.line,
        "status": result.status,
        "seconds": round(result.seconds, 6),
        "checks": [_check(check) for check in result.checks],
        "diagnosis": [{"code": one.code, "message": one.message} for one in result.diagnosis],
        "notes": result.notes,
        "reason": result.reason,
        "reproduce": result.reproduce,
        "error": error(result),
    }
    if result.branches is not None:
        row["branches"] = [
            {"operation": one.operation, "expr": one.text, "place": one.place, "sides": one.sides}
            for one in result.branches
        ]
    if result.slips is not None:
        unnoticed = [
            {"place": one.place, "change": one.change, "text": one.text}
            for one in result.slips.unnoticed
        ]
        row["mutants"] = {"tried": result.slips.tried, "unnoticed": unnoticed}
    return row


def _check(check: Check) -> dict[str, Any]:
    failures = [
        {
            "index": list(one.index),
            "analytic": one.analytic,
            "numeric": one.numeric,
            "numeric_error": one.numeric_error,
            **({} if one.output is None else {"output": list(one.output)}),
        }
        for one in check.failures
    ]
    return {
        "kind": check.kind,
        "input": check.input,
        "status": check.status,
        "compared": check.compared,
        "wrong": check.wrong,
        "max_abs_error": check.max_abs_error,
        "max_rel_error": check.max_rel_error,
        "failures": failures,
        "note": check.note,
        **({} if check.seen is None else {"smallest_error_seen": check.seen()}),
    }
