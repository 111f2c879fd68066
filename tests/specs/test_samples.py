"""Sampled points: as declared, at special values, shrunk to the smallest that fails."""

import shlex
import zlib

import numpy as np
import pytest

from kael.checker.sampling import Source, points, shrink, simpler, special_points
from kael.specs.samples import literal, sources_of, stream
from kael.specs.verdict import Request, gradcheck
from kael.specs.yaml_loader import load_bytes
from kael_cli.main import main

WRONG_BELOW = """\
name: claim
inputs: {x: [1.5, 2, 4], w: {shape: [3], init: uniform, low: 0.5, high: 2.5}}
output: (abs(x) * w).sum()
derivatives: {x: w * x**0}
"""


def instance_of(text):
    loaded = load_bytes(text.encode(), "case", "case.yaml")
    assert not loaded.errors
    return loaded.specs[0].instances()[0]


def streams(name, number):
    return np.random.default_rng(zlib.crc32(f"{name} {number}".encode()))


def bounded(low=None, high=None):
    return Source("x", np.array([0.7, 0.9]), lambda rng: rng.uniform(0.5, 2, 2), low, high)


def test_there_are_as_many_as_asked_for_and_then_the_special_ones():
    drawn = list(points([bounded()], 3, streams))
    assert [point.label for point in drawn[:3]] == ["sample 1", "sample 2", "sample 3"]
    assert [point.edge for point in drawn[:4]] == [False, False, False, True]
    assert list(points([bounded()], 0, streams)) == []


def test_special_values_are_zero_ones_tiny_huge_and_ties():
    values = [tuple(point.arrays["x"]) for point in special_points([bounded()], streams)]
    for value in (0.0, 1.0, -1.0, 1e-8, -1e-8, 1e6, -1e6, 0.7):
        assert (value, value) in values


def test_a_declared_range_is_kept_and_its_ends_are_tried():
    values = [point.arrays["x"] for point in special_points([bounded(0.5, 2.5)], streams)]
    assert all((array >= 0.5).all() and (array <= 2.5).all() for array in values)
    assert {0.5, 2.5, 1.0} <= {float(v) for array in values for v in array}


def test_shrinking_keeps_what_fails_and_makes_the_rest_simple():
    start = {"x": np.array([3.14159, -2.71828, 0.57721, 41.3])}
    source = Source("x", start["x"], lambda rng: rng.random(4))
    best = shrink([source], start, lambda arrays: arrays["x"][3] > 10 and arrays["x"][0] != 0)
    assert best["x"].tolist() == [1.0, 0.0, 0.0, 41.0]


def test_shrinking_stays_in_the_declared_range():
    source = Source("x", np.array([1.7]), lambda rng: rng.random(1), 1.5, 2.5)
    assert shrink([source], {"x": np.array([1.7321])}, lambda arrays: True)["x"].tolist() == [2.0]


def test_shrinking_ends():
    calls = []
    source = Source("x", np.zeros(50), lambda rng: rng.random(50))
    start = {"x": np.random.default_rng(0).standard_normal(50)}
    shrink([source], start, lambda arrays: calls.append(1) or len(calls) % 2 == 0, trials=90)
    assert len(calls) <= 90


def test_simpler_numbers_are_in_order_of_simplicity():
    assert simpler(-2.718) == [0.0, 1.0, -1.0, -2.0, -3.0, -2.7, -2.72]
    assert simpler(0.0)[0] == 1.0


def test_a_claim_that_holds_at_its_point_and_not_elsewhere_fails_with_the_smallest_inputs():
    result = gradcheck(instance_of(WRONG_BELOW), Request())
    assert result.status == "passed"
    result = gradcheck(instance_of(WRONG_BELOW), Request(samples=4, arguments=["--samples", "4"]))
    assert result.status == "failed"
    (note,) = [note for note in result.notes if "smallest found" in note]
    assert "w=[1,1,1]" in note
    assert "-1" in note
    words = shlex.split(result.reproduce)
    assert "w=[1,1,1]" in words
    assert "--samples" not in words


@pytest.mark.parametrize("most", [60, 100, 200, 1000, None])
def test_a_failing_sample_is_told_however_few_evaluations_are_left(most):
    text = (
        "inputs: {x: {shape: [3], init: ones}}\noutput: (x**2).sum()\nderivatives: {x: '2'}\n"
        "gradcheck: {samples: 3}\n"
    )
    result = gradcheck(
        instance_of(text), Request(checking={"max_evaluations": most} if most else {})
    )
    assert result.status == "failed"
    assert any(check.status == "failed" for check in result.checks)


def test_the_command_reproduces_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "case.yaml").write_text(WRONG_BELOW)
    assert main(["gradcheck", "case.yaml", "--samples", "3"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "reproduce:" in line]
    assert main(shlex.split(line.partition("kael ")[2])) == 1


def test_points_outside_of_a_domain_are_skipped_and_counted():
    result = gradcheck(
        instance_of("inputs: {x: [1, 2]}\noutput: log(x).sum()\n"), Request(samples=3)
    )
    assert result.status == "passed"
    (note,) = [note for note in result.notes if "sampled points" in note]
    assert "at the others the formula has no value" in note


def test_a_right_formula_at_its_kinks_and_ties_passes():
    text = "inputs: {x: [1, 2, -1]}\noutput: (relu(x) + abs(x)).sum() + max(x)\n"
    assert gradcheck(instance_of(text), Request(samples=5)).status == "passed"


def test_samples_of_the_spec_itself_are_checked():
    text = WRONG_BELOW + "gradcheck: {samples: 2}\n"
    result = gradcheck(instance_of(text), Request())
    assert result.status == "failed"
    assert result.reproduce.endswith("--samples 0 --seed 0")


@pytest.mark.parametrize("other", ["name: another\n", ""])
def test_streams_follow_from_the_spec_and_nothing_else(other):
    one = instance_of(WRONG_BELOW)
    text = WRONG_BELOW.replace("name: claim\n", other) if other else WRONG_BELOW
    two = instance_of(text)
    same = stream(one, 0, "x", 1).random() == stream(two, 0, "x", 1).random()
    assert same == (not other)
    assert sources_of(one, 0)[1].values.tolist() == sources_of(one, 0)[1].values.tolist()


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array(2.0), "2"),
        (np.array([[0.0, -1.0], [1e-8, 2.5]]), "[[0,-1],[1e-08,2.5]]"),
    ],
)
def test_inputs_are_written_as_the_command_line_reads_them(array, text):
    assert literal(array) == text
