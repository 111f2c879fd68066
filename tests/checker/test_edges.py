"""Points close to an edge, a kink or nothing at all: the steps must reach them, and not crash."""

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.autograd import gradcheck


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda x: 1 / x, 1e-300),
        (kael.lgamma, 1e-300),
        (kael.atanh, 1 - 1e-12),
        (kael.erfinv, 1 - 1e-12),
        (kael.acosh, 1 + 1e-12),
        (kael.asin, 1 - 1e-8),
    ],
)
def test_a_right_gradient_close_to_an_edge_passes(function, value):
    assert gradcheck(function, [leaf([value])]).status == "passed"


@pytest.mark.parametrize("factor", [-1.0, 0.5, 2.0, 1.02])
@pytest.mark.parametrize("value", [1 - 1e-8, 1 - 1e-11])
def test_a_wrong_gradient_close_to_an_edge_fails(value, factor):
    function = made(kael.asin, lambda x, g: factor * g / ((1 - x) * (1 + x)) ** 0.5)
    assert gradcheck(function, [leaf([value])]).status == "failed"


def test_an_edge_that_no_step_resolves_is_no_crash():
    found = gradcheck(lambda x: kael.log1p(-x), [leaf([1 - 1e-12])])
    assert found.status in ("passed", "inconclusive")


def test_a_kink_passed_over_is_no_infinite_slope():
    found = gradcheck(kael.relu, [leaf([1e-12, 1 + 1e-12, -1.0, 2.0])])
    assert found.status == "passed"
    assert not any("without bound" in note for note in found.notes)


@pytest.mark.parametrize("value", [1e-9, -1e-9, 1e-8, 3e-10])
def test_a_hand_written_forward_may_cancel_on_its_way(value):
    function = made(lambda x: 1 - kael.cos(x), lambda x, g: g * kael.sin(x))
    assert gradcheck(function, [leaf([value])]).status == "passed"


def test_a_hand_written_forward_may_round_to_nothing():
    share = float(np.tanh(-18.5))
    function = made(lambda x: x + share * x, lambda x, g: g * (1 + share))
    found = gradcheck(function, [leaf([18.0])])
    assert found.status == "passed"
    assert any("not verified" in note for note in found.notes)
    wrong = made(lambda x: x + share * x, lambda x, g: g * 1e-9)
    assert gradcheck(wrong, [leaf([18.0])]).status == "failed"


def test_what_cancels_in_the_value_hides_no_wrong_slope():
    share = kael.tensor([1.0, 1.01, 1.0])
    function = made(lambda x: kael.sin(x).sum(), lambda x, g: g * kael.cos(x) * share)
    assert gradcheck(function, [leaf([0.0, 1.0, -1.0])]).status == "failed"


def test_small_values_that_show_no_fault_do_not_make_it_one_of_large_values():
    function = made(lambda x: 1 + kael.sin(x), lambda x, g: g * 1.02 * kael.cos(x))
    found = gradcheck(function, [leaf([1.6e-8, -1.8e-8, 8.6e-8])], mode="adaptive")
    assert found.status == "failed"
    assert not any("[only-large]" in note for note in found.notes)


def test_entries_too_small_to_show_a_fault_do_not_make_it_one_of_few_elements():
    function = made(lambda x: kael.exp(-x * x), lambda x, g: -4 * g * x * kael.exp(-x * x))
    found = gradcheck(function, [leaf([4.1, 19.0, -17.0, 16.0, 21.0, 18.0])])
    assert found.status == "failed"
    assert not any("[few-elements]" in note for note in found.notes)


@pytest.mark.parametrize("scale", [1e6, 1e10])
def test_a_function_that_turns_over_is_at_no_kink(scale):
    function = made(kael.sin, lambda x, g: -g * kael.cos(x))
    found = gradcheck(function, [leaf(scale * np.array([1.3, -0.7, 0.4]))])
    assert found.status == "failed"
    assert not any("[at-kink]" in note for note in found.notes)
