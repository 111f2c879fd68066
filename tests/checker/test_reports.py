"""Whole kinds of fault that other checkers were reported for, each with its right answer."""

import math

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.autograd import Function, gradcheck
from kael.checker import GradcheckOptions, check


def report(function, inputs, names=None, **options):
    return check(function, inputs, names, GradcheckOptions(**options))


# A kink is not an error, and an error at a kink is one.


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (kael.relu, 0.0),
        (kael.relu, 1e-8),
        (lambda x: kael.clamp(x, 0, 1), [0.0, 1.0]),
        (lambda x: x.max(), [2.0, 2.0, 2.0]),
        (lambda x: x.max(), [1, 1 + 1e-7]),
        (lambda x: x.max(), [1.0, 1.0]),
        (kael.abs, 0.0),
        (lambda x: kael.maximum(x, 0.0), 0.0),
        (lambda x: x.amax(dim=0), [3.0, 3.0, 1.0]),
    ],
)
def test_conventions_at_kinks_pass(function, x):
    assert gradcheck(function, [leaf(x)])


def test_the_note_names_operation_element_and_distance():
    (note,) = gradcheck(lambda x: kael.relu(x - 1).sum(), [leaf([3.0, 1.0])]).notes
    assert "relu" in note
    assert "element [1]" in note
    assert "0 to 1" in note


def test_the_note_carries_what_locate_tells():
    where = lambda: "relu(x - 1)"
    found = check(lambda x: kael.relu(x - 1).sum(), [leaf([1.0])], ["x"], locate=where)
    assert "relu (relu(x - 1)) at element [0]" in found.notes[0]


def test_softplus_from_kinked_parts_fails():
    result = gradcheck(lambda x: kael.relu(x) + kael.log(1 + kael.exp(-kael.abs(x))), [leaf(0.0)])
    assert result.report == "input 0 element []: analytic 0 != numeric 0.5"


@pytest.mark.parametrize("value", [1.5, -1.01, math.nan])
def test_outside_of_the_slopes_of_abs_fails(value):
    assert gradcheck(made(kael.abs, lambda x, g: g * value), [leaf(0.0)]).status == "failed"


@pytest.mark.parametrize("count", [2, 3, 5, 60])
def test_a_whole_gradient_to_each_of_the_tied_fails(count):
    everyone = made(lambda x: x.max(), lambda x, g: g * (x == x.max()).to(kael.float64))
    assert gradcheck(everyone, [leaf(np.ones(count))]).status == "failed"


def test_half_to_each_of_three_tied_fails_though_a_difference_agrees():
    halves = made(lambda x: x.max(), lambda x, g: g * (x == x.max()).to(kael.float64) / 2)
    assert gradcheck(halves, [leaf([1.0, 1.0])])
    assert gradcheck(halves, [leaf([1.0, 1.0, 1.0])]).status == "failed"


def test_each_output_may_answer_its_kink_in_its_own_way():
    function = lambda x: kael.stack([kael.relu(x), kael.maximum(x, 0.0), kael.clamp(x, min=0.0)])
    for seed in range(5):
        assert gradcheck(function, [leaf(0.0)], seed=seed)


def test_kinks_up_and_down_do_not_cancel_into_a_failure():
    function = lambda a, b: (kael.maximum(a, 0.0) - kael.relu(b)).sum()
    assert gradcheck(function, [leaf([0.0, 0.0]), leaf([0.0, 0.0])])


# The upstream gradient.


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(
    "backward",
    [
        lambda x, g: g * g,
        lambda x, g: kael.abs(g),
        lambda x, g: kael.clamp(g, min=0),
        lambda x, g: g * 0 + 1,
        lambda x, g: 1 / g,
    ],
    ids=["g*g", "abs", "clamp", "ignored", "1/g"],
)
def test_what_is_not_linear_in_the_upstream_gradient_fails(size, backward):
    result = gradcheck(made(lambda x: x * 1.0, backward), [leaf(np.linspace(0.5, 2, size))])
    assert result.status == "failed"
    assert "linear" in {finding.kind for finding in result.findings}


def test_a_sum_hides_a_zero_gradient_and_the_check_looks_behind_it():
    wrong = made(lambda x: kael.softmax(x, 0), lambda x, g: g * 0)
    result = gradcheck(lambda x: wrong(x).sum(), [leaf([1.0, 2.0, 3.0])])
    assert result.status == "failed"
    right = gradcheck(lambda x: kael.softmax(x, 0).sum(), [leaf([1.0, 2.0, 3.0])])
    assert right
    assert any("before the sum, with a dense upstream gradient" in note for note in right.notes)


# Tolerances and scales.


def test_a_gradient_twice_too_large_fails_below_the_absolute_tolerance():
    wrong = made(lambda x: 1e-6 * x * x, lambda x, g: 4e-6 * x * g)
    assert gradcheck(wrong, [leaf(1.0)]).report == (
        "input 0 element []: analytic 4e-06 != numeric 2e-06"
    )


def test_what_cannot_be_verified_below_it_is_said():
    tiny = made(lambda x: 1 + 1e-17 * x, lambda x, g: 2e-17 * g)
    result = gradcheck(tiny, [leaf(1.0)])
    assert result
    assert any("below the absolute tolerance: not verified" in note for note in result.notes)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (kael.sin, 1e10),
        (lambda x: x**2, 1e10),
        (lambda x: (x + 1e12) - 1e12, 1.0),
        (kael.log, 1e-7),
        (kael.log, 1e-5),
        (kael.sqrt, 0.0),
    ],
)
def test_scales_and_edges_are_never_called_wrong(function, x):
    assert gradcheck(function, [leaf(x)]).status in ("passed", "inconclusive")


@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        (kael.sin, lambda x, g: g * kael.cos(x) * 1.9, 1e10),
        (lambda x: x**2, lambda x, g: g * 3.2768 * x, 1e10),
        (kael.log, lambda x, g: g * 1.02 / x, 1e-7),
        (kael.log, lambda x, g: g * 1.00335 / x, 1e-5),
    ],
)
def test_a_wrong_gradient_there_does_not_pass(forward, backward, x):
    assert not gradcheck(made(forward, backward), [leaf(x)])


# Undefined, random, nothing.


def test_an_undefined_value_is_an_error_and_says_where():
    found = report(kael.acosh, [leaf(0.5)])
    assert found.status == "error"
    assert "NaN at the given point" in found.error
    assert "acosh(0.5)" in found.error
    with pytest.raises(kael.KaelValueError, match="NaN at the given point"):
        gradcheck(kael.acosh, [leaf(0.5)])


def test_a_random_function_is_neither_passed_nor_called_wrong():
    rng = np.random.default_rng(3)
    dropout = lambda x: x * kael.tensor((rng.random(4) > 0.5) * 2.0)
    result = gradcheck(dropout, [leaf([1, 2, 3, 4])])
    assert result.status == "inconclusive"
    assert "not deterministic (or keeps state): fix the seed or freeze the state" in result.report


def test_one_wrong_entry_of_a_product_is_named():
    class Product(Function):
        @staticmethod
        def forward(ctx, w, x):
            ctx.save_for_backward(w, x)
            return w @ x

        @staticmethod
        def backward(ctx, g):
            w, x = ctx.saved_tensors
            broken = np.outer(g.numpy(), x.numpy())
            broken[3, 7] *= 1.01
            return kael.tensor(broken), w.T @ g

    rng = np.random.default_rng(0)
    inputs = [leaf(rng.standard_normal((5, 9))), leaf(rng.standard_normal(9))]
    found = report(Product.apply, inputs, ["W", "x"])
    by_input = {c.input: c for c in found.checks if c.kind == "numeric"}
    assert [f.index for f in by_input["W"].failures] == [(3, 7)]
    assert (by_input["W"].compared, by_input["W"].wrong) == (45, 1)
    assert by_input["W"].failures[0].numeric_error < 1e-6
    assert (by_input["x"].status, by_input["x"].wrong) == ("passed", 0)


def test_nothing_compared_is_no_success():
    found = report(lambda x: x * 2, [kael.tensor([1.0])])
    assert (found.status, found.compared) == ("skipped", 0)
    empty = report(lambda x: x * 2, [leaf(np.zeros(0))])
    assert (empty.status, empty.compared) == ("skipped", 0)
    assert empty.notes == ["nothing compared: every input is empty"]


def test_a_write_into_an_input_is_a_finding():
    def function(x):
        with kael.no_grad():
            x.add_(1e-3)
        return (x * 2).sum()

    found = report(function, [leaf([1.0, 2.0])])
    assert "unchanged" in {c.kind for c in found.checks if c.status == "failed"}
