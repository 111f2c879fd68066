"""The same formulas in float32: right ones are never called wrong, wrong ones still are."""

import json
from pathlib import Path

import pytest

from kael_cli.main import main

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def statuses(capsys, *arguments):
    capsys.readouterr()
    main(["check", *map(str, arguments), "--dtype", "float32", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    return {(row["spec"], row["case"]): row["status"] for row in document["results"]}


def test_shipped_specs_are_not_called_wrong(capsys):
    found = statuses(capsys, ROOT / "specs")
    assert set(found.values()) <= {"passed", "inconclusive"}
    assert sum(status == "passed" for status in found.values()) >= 0.9 * len(found)


def test_right_formulas_pass_and_wrong_ones_fail(capsys):
    wrong = {path.stem for path in (HERE / "wrong").glob("*.yaml")}
    found = statuses(capsys, HERE)
    assert wrong
    for (spec, _), status in found.items():
        assert status == ("failed" if spec in wrong else "passed"), spec


@pytest.mark.parametrize(("claim", "status"), [("pi", "passed"), ("3.14", "failed")])
def test_a_claim_is_held_to_more_than_differences_show(capsys, tmp_path, claim, status):
    path = tmp_path / "wave.yaml"
    path.write_text(
        "inputs: {x: [0.3, 0.7]}\n"
        "output: sin(pi*x).sum()\n"
        f"derivatives: {{x: {claim}*cos(pi*x)}}\n"
    )
    assert statuses(capsys, path) == {("wave", None): status}
