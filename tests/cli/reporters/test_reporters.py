"""Every format renders the same constructed findings; the whole output is kept in a snapshot."""

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from kael.checker.faults import inconclusive, mismatch
from kael.checker.model import Check, Diagnosis, Failure
from kael.specs.results import Fault, Result, Run
from kael_cli.reporters import sentence
from kael_cli.reporters.github import GithubReporter
from kael_cli.reporters.json import JsonReporter
from kael_cli.reporters.junit import JunitReporter
from kael_cli.reporters.text import TextReporter


def findings() -> Run:
    """One result of every status, with every kind of evidence."""
    passed = Result("tanh gate", None, "specs/gate.yaml", 2, 3, seconds=0.125)
    passed.checks = [
        Check("numeric", "x", "passed", compared=2, max_abs_error=3e-11, max_rel_error=1e-10),
        Check("numeric", "w", "passed", compared=2),
        Check("expect", None, "passed", compared=1),
    ]
    passed.notes = ["input x: at a kink of relu; the gradient lies between the one-sided slopes"]

    failed = Result("loss", "large", "specs/loss.yaml", 9, 3, seconds=0.25)
    failed.status = "failed"
    failed.checks = [
        Check("numeric", "x", "passed", compared=2),
        Check(
            "derivative",
            "w",
            "failed",
            compared=6,
            wrong=3,
            max_abs_error=2.40942,
            max_rel_error=2.0,
            failures=[
                Failure((0, 2), -1.20471, 1.20471, 3.1e-10),
                Failure((1, 0), -0.5, 0.5, 2e-11),
                Failure((1, 10), 3.14, 3.1415926, 1e-12),
            ],
        ),
    ]
    failed.diagnosis = [
        Diagnosis(
            "sign-flipped",
            "the derivative claimed for w has the wrong sign in 3 of 6 entries",
            "the claim may lack a minus: -x * (1 - tanh(v)**2)",
        )
    ]
    failed.reproduce = "kael gradcheck 'specs/loss.yaml::loss[large]' --seed 0"

    plain = Result("square", None, None, 1, 1, label="<expression>", status="failed")
    plain.checks = [
        Check(
            "numeric",
            "x",
            "failed",
            compared=200,
            wrong=150,
            max_abs_error=1e-6,
            max_rel_error=0.5,
            failures=[Failure((), 2.0, 2.0000000001, 1e-13)],
        )
    ]
    plain.diagnosis = [mismatch.diagnosis(plain.checks[0])]
    plain.reproduce = "kael gradcheck 'x**2' -i x=3 --seed 7"

    undecided = Result("far", None, "specs/far.yaml", 1, 1, status="inconclusive")
    undecided.checks = [
        Check("numeric", "x", "inconclusive", compared=1, note="every step meets an infinity")
    ]

    undecided.diagnosis = [inconclusive.diagnosis(undecided.checks[0])]

    broken = Result("bad <name>", "a&b", "specs/bad.yaml", 7, None, status="error")
    broken.reproduce = "kael gradcheck 'specs/bad.yaml::bad <name>[a&b]' --seed 0"
    broken.error = Fault(
        "unknown operation 'tahn'; did you mean 'tanh'?",
        "specs/bad.yaml",
        7,
        12,
        "specs/bad.yaml:7:12: unknown operation 'tahn'; did you mean 'tanh'?\n"
        "  output: tahn(x)\n"
        "          ^",
    )

    expected = Result("known", None, "specs/known.yaml", 1, 1, status="xfailed", reason="#12")
    surprise = Result("fixed", None, "specs/known.yaml", 20, 1, status="xpassed", reason="#9")
    skipped = Result("later", None, "specs/later.py", 3, 1, status="skipped", reason="no data")
    results = [passed, failed, plain, undecided, broken, expected, surprise, skipped]
    return Run(results, seconds=0.84)


def render(reporter: Any) -> str:
    run = findings()
    return "".join(map(reporter.each, run.results)) + str(reporter.close(run))


@pytest.mark.parametrize(
    ("name", "reporter"),
    [
        ("text.txt", TextReporter()),
        ("text-verbose.txt", TextReporter(verbose=True)),
        ("text-check.txt", TextReporter(lines=False, allow_inconclusive=True)),
        ("text-color.txt", TextReporter(paint=lambda color, text: f"<{color}>{text}</>")),
        ("json.json", JsonReporter()),
        ("junit.xml", JunitReporter()),
        ("github.txt", GithubReporter()),
    ],
)
def test_a_format_renders_the_findings(name, reporter, snapshot):
    snapshot(f"reporters/{name}", render(reporter))


def test_json_has_the_keys_and_counts_of_the_contract():
    document = json.loads(render(JsonReporter()))
    assert document["summary"] == {
        "passed": 1,
        "failed": 2,
        "inconclusive": 1,
        "errors": 1,
        "xfailed": 1,
        "xpassed": 1,
        "skipped": 1,
        "seconds": 0.84,
    }
    row = document["results"][1]
    assert row["checks"][1]["failures"][0] == {
        "index": [0, 2],
        "analytic": -1.20471,
        "numeric": 1.20471,
        "numeric_error": 3.1e-10,
    }
    assert document["results"][4]["error"]["column"] == 12


def test_junit_is_well_formed_and_names_spec_and_case():
    root = ElementTree.fromstring(render(JunitReporter()))
    cases = root.findall("./testsuite/testcase")
    assert [case.get("name") for case in cases][:2] == ["tanh gate", "loss[large]"]
    assert root.attrib["failures"] == "4"
    assert root.attrib["errors"] == "1"
    assert root.attrib["skipped"] == "2"


def test_junit_survives_characters_xml_forbids():
    result = Result("nul\0 \x1b[31m", None, "a.yaml", 1, status="failed")
    ElementTree.fromstring(JunitReporter().close(Run([result])))


def test_a_github_annotation_stands_at_the_claim_that_fails():
    result = Result("gate", None, "a.yaml", 1, 1, status="failed", at="a.yaml:9:5")
    assert GithubReporter().each(result).startswith("::error file=a.yaml,line=9,col=5,title=gate")
    result.at = "a.yaml:9"
    assert GithubReporter().each(result).startswith("::error file=a.yaml,line=9,title=gate")
    result.at = ""
    assert GithubReporter().each(result).startswith("::error file=a.yaml,line=1,col=1,title=gate")


def test_a_github_message_keeps_to_one_line():
    for line in render(GithubReporter()).splitlines()[:-1]:
        assert line.startswith(("::error ", "::warning ", "::notice "))


def test_infinities_are_strings_in_json():
    result = Result("inf", None, "a.yaml", 1, status="failed")
    result.checks = [
        Check(
            "numeric", "x", "failed", 1, 1, failures=[Failure((0,), float("inf"), float("nan"), 0)]
        )
    ]
    row = json.loads(JsonReporter().close(Run([result])))["results"][0]
    failure = row["checks"][0]["failures"][0]
    assert (failure["analytic"], failure["numeric"]) == ("Infinity", "NaN")


@pytest.mark.parametrize(
    ("status", "holds"),
    [
        ("passed", True),
        ("xfailed", True),
        ("skipped", True),
        ("failed", False),
        ("error", False),
        ("xpassed", False),
        ("inconclusive", False),
    ],
)
def test_which_verdicts_let_a_run_succeed(status, holds):
    assert sentence.holds(Result("s", None, None, None, status=status)) is holds


def test_an_inconclusive_verdict_can_be_allowed():
    result = Result("s", None, None, None, status="inconclusive")
    assert sentence.holds(result, allow_inconclusive=True)
