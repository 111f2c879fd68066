"""The wrong node of a composed formula, and where a history ends."""

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.autograd import Function
from kael.checker import GradcheckOptions, check
from kael.checker.nodewise import cuts, wrong_nodes
from kael.checker.subject import TensorSubject

wrong_sine = made(kael.sin, lambda x, g: -g * kael.cos(x))
right_square = made(lambda x: x * x, lambda x, g: 2 * g * x)


def subject(function, *values):
    inputs = [leaf(v) for v in values]
    made_subject = TensorSubject(function, inputs, ["x", "y"][: len(inputs)], range(len(inputs)))
    made_subject.record()
    return made_subject


def test_the_wrong_one_of_several_is_found():
    function = lambda x: kael.exp(wrong_sine(right_square(x) + 1)).sum()
    found, all_seen = wrong_nodes(subject(function, [0.5, -1.2]), GradcheckOptions(), None)
    assert all_seen
    (wrong,) = found
    assert wrong.problem.step.name == "Made"
    assert wrong.problem.arrays[0] == pytest.approx(np.array([1.25, 2.44]))


def test_right_nodes_are_not_accused():
    function = lambda x: (kael.relu(x) + kael.abs(x) + kael.sqrt(x)).sum() + x.max()
    found, _ = wrong_nodes(subject(function, [0.0, 0.0, 1.0]), GradcheckOptions(), None)
    assert found == []


def test_a_node_of_several_outputs_and_plain_arguments():
    class Parts(Function):
        @staticmethod
        def forward(ctx, x, times, power=1):
            ctx.times = times
            return x * times, x * power

        @staticmethod
        def backward(ctx, g, h):
            return g * ctx.times, None

    def function(x):
        first, second = Parts.apply(x, 3, power=2)
        return (first * second).sum()

    report = check(function, [leaf([0.5, -1.2])], ["x"])
    assert report.status == "failed"
    (diagnosis,) = report.diagnosis
    assert "PartsBackward returns for x" in diagnosis.message


def test_the_sentence_names_sub_expression_and_place():
    class Span:
        text = "f(x)"
        place = "a.yaml:3:9"

    report = check(lambda x: wrong_sine(x).sum(), [leaf([0.5, 1.0])], ["x"], locate=Span)
    (diagnosis,) = report.diagnosis
    assert diagnosis.code == "sign-flipped"
    assert diagnosis.message.endswith("at `f(x)` (a.yaml:3:9)")


def test_a_python_function_is_named_by_its_line():
    def function(x):
        return wrong_sine(x).sum()

    (diagnosis,) = check(function, [leaf([0.5, 1.0])], ["x"]).diagnosis
    assert "at `wrong_sine(x)` (" in diagnosis.message
    assert "test_nodewise.py:" in diagnosis.message


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda x: x * kael.sin(x).detach(), "mul"),
        (lambda x: x + kael.tensor(np.sin(x.numpy())), "add"),
        (lambda x: x + kael.no_grad(lambda: kael.sin(x))(), "sin"),
    ],
)
def test_where_a_history_ends(function, word):
    (cut,) = cuts(subject(function, [0.5, -1.2]), lambda: None)
    assert cut.input == "x"
    assert word in cut.sentence or "*" in cut.sentence or "+" in cut.sentence


def test_masks_and_constants_are_no_cuts():
    function = lambda x: kael.where(x > 0, x, 0.1 * x) * kael.tensor([1.0, 2.0])
    assert cuts(subject(function, [0.5, -1.2]), None) == []


def test_a_detached_shift_that_cancels_is_not_accused():
    stable = lambda x: kael.log(kael.exp(x - x.max().detach()).sum()) + x.max().detach()
    report = check(stable, [leaf([1.0, 2.0, 3.0])], ["x"])
    assert (report.status, report.diagnosis) == ("passed", [])
