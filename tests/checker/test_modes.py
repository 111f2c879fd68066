"""What each mode finds, what it refuses, and what it costs."""

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.autograd import gradcheck
from kael.checker import GradcheckOptions, check

MODES = ("projection", "full", "adaptive", "complex", "fast")


def planted(size):
    """exp with a backward in which one element is off by a share."""

    def backward(x, g):
        factor = np.ones(x.numel())
        factor[2] += size
        return g * kael.exp(x) * kael.tensor(factor)

    return made(kael.exp, backward)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: kael.tanh(x) * x,
        lambda x: kael.log_softmax(x, 0),
        lambda x: kael.logsumexp(x, 0),
        lambda x: x.prod(),
        lambda x: (x.unsqueeze(0) @ x.unsqueeze(1)).sum(),
        lambda x: x[1:] / x[:-1],
        lambda x: x**2.5,
        lambda x: kael.where(x > 0.5, x * x, kael.sin(x)),
        lambda x: kael.sigmoid(x).var(),
    ],
)
def test_right_gradients_pass_in_every_mode(mode, function):
    assert gradcheck(function, [leaf([1.0, 2.0, 0.3, 0.7])], mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_planted_share_of_a_hundredth_fails_in_every_mode(mode):
    assert gradcheck(planted(1e-2), [leaf([1.0, 2.0, 0.3, 0.7])], mode=mode).status == "failed"


@pytest.mark.parametrize(("mode", "size"), [("adaptive", 1e-6), ("complex", 1e-10)])
def test_fine_modes_find_fine_errors(mode, size):
    result = gradcheck(planted(size), [leaf([1.0, 2.0, 0.3, 0.7])], mode=mode)
    assert result.status == "failed"
    (finding,) = result.findings
    assert finding.entries[finding.wrong].tolist() == [2]
    assert gradcheck(planted(0.0), [leaf([1.0, 2.0, 0.3, 0.7])], mode=mode)


def test_full_compares_every_entry_of_the_jacobian_and_names_the_output():
    found = check(
        lambda x: kael.tanh(x), [leaf([1.0, 2.0, 0.3])], ["x"], GradcheckOptions(mode="full")
    )
    (numeric,) = [c for c in found.checks if c.kind == "numeric"]
    assert (numeric.status, numeric.compared) == ("passed", 9)
    wrong = check(planted(0.1), [leaf([1.0, 2.0, 0.3])], ["x"], GradcheckOptions(mode="full"))
    (numeric,) = [c for c in wrong.checks if c.kind == "numeric"]
    assert [(f.index, f.output) for f in numeric.failures] == [((2,), (2,))]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (kael.abs, "abs"),
        (lambda x: kael.exp(kael.relu(x)), "relu"),
        (lambda x: x.max(), "max"),
    ],
)
def test_complex_refuses_by_name(function, name):
    with pytest.raises(kael.KaelValueError, match=f"and {name} does not"):
        gradcheck(function, [leaf([1.0, 2.0])], mode="complex")


def test_complex_sees_through_a_function_that_is_not_analytic_inside():
    hidden = made(lambda x: kael.abs(x) * x, lambda x, g: 2 * g * kael.abs(x))
    with pytest.raises(kael.KaelValueError, match="the complex step and real differences disagree"):
        gradcheck(hidden, [leaf([1.0, 2.0])], mode="complex")


def test_complex_sees_a_value_read_out_of_the_graph():
    with pytest.raises(kael.KaelError):
        gradcheck(lambda x: kael.tensor(x.tolist()) * 2, [leaf([1.0])], mode="complex")


@pytest.mark.parametrize("function", [kael.sqrt, kael.asin, lambda x: x**0.5])
def test_complex_cannot_show_an_infinite_slope(function):
    x = leaf([0.3, 1.0 if function is kael.asin else 0.0])
    assert gradcheck(function, [x])
    assert gradcheck(function, [x], mode="complex").status == "inconclusive"


@pytest.mark.parametrize("wrong", [1.0, np.inf])
def test_complex_tells_a_wrong_slope_at_the_edge_of_a_domain(wrong):
    edged = made(lambda x: x**2.5, lambda x, g: g * kael.where(x > 0, 2.5 * x**1.5, 1.0))
    assert gradcheck(edged, [leaf([0.3, 0.0])], mode="complex").status == "failed"
    smooth = made(kael.exp, lambda x, g: g * kael.where(x > 0, kael.exp(x), wrong + 1))
    assert gradcheck(smooth, [leaf([0.3, 0.0])], mode="complex").status == "failed"


@pytest.mark.parametrize("size", [10, 1_000, 100_000])
def test_fast_costs_the_same_at_every_size(size):
    calls = []
    x = leaf(np.random.default_rng(0).standard_normal(size))
    assert gradcheck(lambda x: calls.append(1) or kael.tanh(x), [x], mode="fast")
    assert len(calls) < 40


def test_fast_finds_a_tenth_in_one_of_a_hundred_entries():
    x = leaf(np.random.default_rng(0).standard_normal(100))
    for seed in range(10):
        assert not gradcheck(planted(0.1), [x], mode="fast", seed=seed)


def test_three_wrong_among_a_million_are_named_in_under_a_thousand_evaluations():
    wrong = [5, 77_777, 500_000]

    def backward(x, g):
        broken = (g * (1 - kael.tanh(x) ** 2)).numpy().copy()
        broken[wrong] *= 1.01
        return kael.tensor(broken)

    calls = []
    function = made(lambda x: calls.append(1) or kael.tanh(x), backward)
    x = leaf(np.random.default_rng(1).standard_normal(1_000_000))
    found = check(lambda x: function(x).sum(), [x], ["x"], diagnosed=False)
    (numeric,) = [c for c in found.checks if c.kind == "numeric"]
    assert sorted(f.index[0] for f in numeric.failures) == wrong
    assert (numeric.compared, numeric.wrong) == (1_000_000, 3)
    assert len(calls) < 1_000


def test_a_large_input_wrong_everywhere_is_called_so_quickly():
    calls = []
    negated = made(lambda x: calls.append(1) or kael.sin(x), lambda x, g: -g * kael.cos(x))
    x = leaf(np.random.default_rng(1).standard_normal(20_000))
    found = check(lambda x: negated(x).sum(), [x], ["x"], diagnosed=False)
    (numeric,) = [c for c in found.checks if c.kind == "numeric"]
    assert numeric.status == "failed"
    assert numeric.wrong > 50
    assert len(calls) < 3_000


def test_all_entries_at_kinks_pass_and_outside_fail():
    x = np.zeros(3_000)
    assert gradcheck(lambda x: kael.relu(x).sum(), [leaf(x)])
    outside = made(kael.relu, lambda x, g: g * 1.5)
    assert gradcheck(lambda x: outside(x).sum(), [leaf(x)]).status == "failed"


def test_the_report_states_the_smallest_error_it_would_have_seen():
    found = check(lambda x: kael.tanh(x).sum(), [leaf(np.linspace(-1, 1, 500))], ["x"])
    assert 0 < found.smallest_error_seen["x"] < 1e-3
