"""What the cases of a spec visit, and which slips they would notice."""

import json

import pytest

from kael.specs import coverage
from kael.specs.yaml_loader import load_bytes
from kael_cli.main import main

HELD = """\
name: held
inputs: {x: [1.5, -0.5], w: [2, 3]}
let: {v: x * w}
output: (tanh(v) + x).sum()
derivatives: {x: (1 - tanh(v)**2) * w + 1, w: (1 - tanh(v)**2) * x}
"""
LOOSE = """\
name: loose
inputs: {x: 1}
output: x**2 - x
derivatives: {x: 2*x - 1}
"""


def instances(text):
    loaded = load_bytes(text.encode(), "case", "case.yaml")
    assert not loaded.errors
    return loaded.specs[0].instances()


def test_every_slip_of_a_spec_with_claims_is_noticed():
    found = coverage.slips(instances(HELD), 0)
    assert found.tried > 15
    assert [slip.sentence for slip in found.unnoticed] == []


def test_a_factor_that_is_one_at_every_case_goes_unnoticed_until_a_case_differs():
    (slip,) = coverage.slips(instances(LOOSE), 0).unnoticed
    assert slip.sentence == "case.yaml:4:18: no case notices the factor `x` left out: `2 - 1`"
    assert coverage.slips(instances(LOOSE + "cases: {two: {x: 2}}\n"), 0).unnoticed == []


def test_without_claims_and_expectations_nothing_is_noticed():
    found = coverage.slips(instances("inputs: {x: [1, 2]}\noutput: (x + sin(x)).sum()\n"), 0)
    assert found.tried == len(found.unnoticed) > 0


def test_an_expectation_notices_a_change_of_the_formula():
    text = "inputs: {x: [1, 2]}\noutput: (x + x**2).sum()\nexpect: {value: 8, grad: {x: [3, 5]}}\n"
    found = coverage.slips(instances(text), 0)
    assert (found.unnoticed, found.tried > 0) == ([], True)


def test_another_way_to_write_the_same_is_no_slip():
    text = "inputs: {x: [1, 2]}\noutput: ((-x)**2).sum()\nderivatives: {x: 2*x}\n"
    assert coverage.slips(instances(text), 0).unnoticed == []


def test_a_spec_that_does_not_hold_is_not_tried():
    found = coverage.slips(instances(LOOSE.replace("2*x - 1", "2*x")), 0)
    assert (found.tried, found.held) == (0, False)


def test_branches_are_those_of_all_cases_together():
    text = "inputs: {x: [1, 2]}\noutput: relu(x).sum()\ncases: {below: {x: [-1, -2]}}\n"
    (branch,) = coverage.branches(instances(text), 0)
    assert branch.sides == {"below": 2, "above": 2}
    assert branch.place == "case.yaml:2:9"
    (alone,) = coverage.branches(instances(text)[:1], 0)
    (told,) = coverage.unvisited([alone])
    assert told.code == "unvisited-branch"
    assert "'below' of `relu(x)` (case.yaml:2:9)" in told.message


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def command(text, *options):
        (tmp_path / "case.yaml").write_text(text)
        capsys.readouterr()
        code = main(["check", "case.yaml", *options])
        return code, capsys.readouterr().out

    return command


ONE_SIDED = "name: hinge\ninputs: {x: [1, 2]}\noutput: relu(x).sum()\n"


def test_the_gate_lists_branches_and_passes(run):
    code, out = run(ONE_SIDED, "--branches")
    assert code == 0
    assert "  branch: `relu(x)` (case.yaml:3:9): below never, above 2x\n" in out


def test_the_gate_fails_on_a_side_that_is_required(run):
    code, out = run(ONE_SIDED, "--require-branches")
    assert code == 1
    assert "no case visits the side 'below' of `relu(x)` (case.yaml:3:9) [unvisited-branch]" in out
    assert "--require-branches" in out.partition("reproduce: ")[2]
    assert run(ONE_SIDED + "cases: {below: {x: [-1, -3]}}\n", "--require-branches")[0] == 0


def test_the_gate_lists_mutants_and_passes(run):
    code, out = run(LOOSE, "--mutate")
    assert code == 0
    assert "  mutant: case.yaml:4:18: no case notices the factor `x` left out: `2 - 1`\n" in out


def test_the_document_has_both_where_they_are_asked_for(run):
    _, out = run(LOOSE, "--mutate", "--branches", "--format", "json")
    (row,) = json.loads(out)["results"]
    assert row["branches"] == []
    assert row["mutants"]["tried"] > len(row["mutants"]["unnoticed"]) == 1
    _, out = run(LOOSE, "--format", "json")
    (row,) = json.loads(out)["results"]
    assert "mutants" not in row
    assert "branches" not in row
