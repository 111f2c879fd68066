"""Each diagnosis has a planted fault that it must name, and an innocent look-alike that passes."""

import io
from pathlib import Path

import planted
import pytest
from ruamel.yaml import YAML

import kael
from kael.checker import check, faults, faults_reference
from kael.specs import coverage
from kael.specs.verdict import Request, gradcheck
from kael.specs.yaml_loader import load_bytes

HERE = Path(__file__).parent
CODES = faults.codes()


def cases(kind):
    for path in sorted(HERE.glob("*.yaml")):
        document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        for name, case in document[kind].items():
            yield pytest.param(path.stem, dict(case), id=f"{path.stem}: {name}")


def run(case):
    """The status of a case and its diagnoses, from a spec or from a function in `planted`."""
    function = case.pop("function", None)
    if function is not None:
        leaves = [
            kael.tensor(v, dtype=kael.float64, requires_grad=True) for v in case["inputs"].values()
        ]
        report = check(getattr(planted, function), leaves, list(case["inputs"]))
        return report.status, report.diagnosis
    request = Request(anomaly=case.pop("anomaly", False))
    required = case.pop("require_branches", False)
    text = io.StringIO()
    YAML(typ="safe").dump({"name": "case", **case}, text)
    loaded = load_bytes(text.getvalue().encode(), "case", "case.yaml")
    assert not loaded.errors, loaded.errors
    instances = loaded.specs[0].instances()
    result = gradcheck(instances[0], request)
    if required:
        told = coverage.unvisited(coverage.branches(instances, 0))
        return "failed" if told else result.status, [*result.diagnosis, *told]
    return result.status, result.diagnosis


@pytest.mark.parametrize(("code", "case"), list(cases("planted")))
def test_planted_fault_is_named(code, case):
    status, diagnosis = run(case)
    assert status in ("failed", "inconclusive", "error")
    assert {entry.code for entry in diagnosis} == {code}


@pytest.mark.parametrize(("code", "case"), list(cases("innocent")))
def test_innocent_look_alike_passes(code, case):
    assert run(case) == ("passed", [])


@pytest.mark.parametrize("code", CODES)
def test_every_diagnosis_has_both(code):
    document = YAML(typ="safe").load((HERE / f"{code}.yaml").read_text(encoding="utf-8"))
    assert document.keys() == {"planted", "innocent"}
    assert document["planted"]
    assert document["innocent"]


def test_every_file_is_of_a_diagnosis():
    assert sorted(path.stem for path in HERE.glob("*.yaml")) == CODES


@pytest.mark.parametrize("code", CODES)
def test_every_page_says_what_was_seen_why_and_what_to_do(code):
    page = faults.page(code)
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings == ["## What was seen", "## Why it happens", "## How to mend it"]
    assert faults.summary(code).endswith(".")
    assert len(faults.summary(code)) <= 100


def test_no_two_rules_have_the_same_rank():
    ranks = [faults.module(code).RANK for code in CODES if hasattr(faults.module(code), "RANK")]
    assert len(ranks) == len(set(ranks)) == len(faults.conditions())


def test_the_committed_pages_are_current():
    assert faults_reference.stale() == [], "run python -m kael.checker.faults_reference"


def test_check_tells_a_stale_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(faults_reference, "FOLDER", tmp_path)
    assert faults_reference.main(["--check"]) == 1
    assert "factor.md is stale" in capsys.readouterr().err
    assert faults_reference.main([]) == 0
    assert faults_reference.main(["--check"]) == 0
    (tmp_path / "gone.md").write_text("of a code that is no more", encoding="utf-8")
    assert faults_reference.main(["--check"]) == 1
    assert faults_reference.main([]) == 0
    assert not (tmp_path / "gone.md").exists()
