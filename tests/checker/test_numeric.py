"""Single entries of plain NumPy functions: the numeric side, its own error, and the verdict."""

import math

import numpy as np
import pytest

from kael.checker.entries import Heads, compare_entries, probe_each
from kael.checker.kinks import Tolerance
from kael.checker.numeric import Ladder, slope
from kael.checker.subject import OutsideSubject


def relu(x):
    return np.maximum(x, 0)


def softplus(x):
    return (relu(x) + np.log(1 + np.exp(-np.abs(x)))).sum()


def soft_shrink(x):
    return (np.sign(x) * np.maximum(np.abs(x) - 1e-4, 0)).sum()


def compared(function, x, analytic, atol=1e-5, rtol=1e-3, strict=True, fine=False):
    """The verdicts of every entry of one input."""
    x, analytic = np.atleast_1d(np.array(x, float)), np.atleast_1d(np.array(analytic, float))
    subject = OutsideSubject(function, [x], ["x"], [0], grad=lambda x: analytic)
    with np.errstate(all="ignore"):
        heads = Heads(np.ones((1, 1)), subject.record())
        return compare_entries(
            subject,
            probe_each(subject),
            0,
            np.arange(x.size),
            analytic[:, None],
            heads,
            Tolerance(atol, rtol, strict),
            1e-6,
            fine,
        )


RIGHT = {
    "relu at 0": (lambda x: relu(x).sum(), 0.0, 0.0),
    "relu at 0, the other end": (lambda x: relu(x).sum(), 0.0, 1.0),
    "relu nearer to its kink than the step": (lambda x: relu(x).sum(), 1e-8, 1.0),
    "the same under a large value": (lambda x: relu(x).sum() + 1e3, 1e-8, 1.0),
    "clamp at its bound": (lambda x: np.clip(x, 0, 1).sum(), 0.0, 1.0),
    "max of nearly tied": (lambda x: x.max(), [1, 1 + 1e-7], [0, 1]),
    "abs at 0": (lambda x: np.abs(x).sum(), 0.0, 0.0),
    "softplus of kinked parts": (softplus, 0.0, 0.5),
    "a small gradient": (lambda x: 1e-6 * (x**2).sum(), 1.0, 2e-6),
    "sin far out": (lambda x: np.sin(x).sum(), 1e10, math.cos(1e10)),
    "square far out": (lambda x: (x**2).sum(), 1e10, 2e10),
    "log close to 0": (lambda x: np.log(x).sum(), 1e-7, 1e7),
    "log nearer than any step": (lambda x: np.log(x).sum(), 1e-30, 1e30),
    "log at ten steps": (lambda x: np.log(x).sum(), 1e-5, 1e5),
    "sqrt at 0": (lambda x: np.sqrt(x).sum(), 0.0, math.inf),
    "acos at 1": (lambda x: np.arccos(x).sum(), 1.0, -math.inf),
    "sqrt near 0": (lambda x: np.sqrt(x).sum(), 1e-10, 0.5e5),
    "cube at 0": (lambda x: (x**3).sum(), 0.0, 0.0),
    "x*abs(x) at 0": (lambda x: (x * np.abs(x)).sum(), 0.0, 0.0),
    "power 1.5 at the edge of its domain": (lambda x: (x**1.5).sum(), 0.0, 0.0),
    "floor inside of a step": (lambda x: np.floor(x).sum(), 1.5, 0.0),
    "steep": (lambda x: np.tanh(1e5 * x).sum(), 1e-6, 1e5 / math.cosh(0.1) ** 2),
    "huge values": (lambda x: np.exp(x).sum(), 709.7, math.exp(709.7)),
    "cancellation": (lambda x: ((1 - np.cos(x)) / x**2).sum(), 1e-4, -1e-4 / 12),
    "pole": (lambda x: (1 / x).sum(), 1e-9, -1e18),
    "rounded corner": (
        lambda x: np.sqrt(x**2 + 1e-16).sum(),
        1e-9,
        1e-9 / math.sqrt(1.01e-16),
    ),
    "lost digits": (lambda x: ((x + 1e6) - 1e6).sum(), 1.0, 1.0),
}

WRONG = {
    "relu at 0, outside": (lambda x: relu(x).sum(), 0.0, 1.5),
    "relu near its kink": (lambda x: relu(x).sum(), 1e-8, 0.5),
    "the same under a large value": (lambda x: relu(x).sum() + 1e3, 1e-8, 0.5),
    "abs at 0, outside": (lambda x: np.abs(x).sum(), 0.0, 1.5),
    "softplus by the convention of its parts": (softplus, 0.0, 0.0),
    "a small gradient twice too large": (lambda x: 1e-6 * (x**2).sum(), 1.0, 4e-6),
    "a smaller one under a large value": (lambda x: 1 + 1e-12 * x.sum(), 1.0, 2e-12),
    "sin far out": (lambda x: np.sin(x).sum(), 1e10, 2 * math.cos(1e10)),
    "square far out, as a blind quotient has it": (lambda x: (x**2).sum(), 1e10, 3.2768e10),
    "log close to 0": (lambda x: np.log(x).sum(), 1e-7, 1.01e7),
    "log as a blind quotient has it": (lambda x: np.log(x).sum(), 1e-5, 1.00335e5),
    "cube at 0": (lambda x: (x**3).sum(), 0.0, 1e-3),
    "x*abs(x) at 0": (lambda x: (x * np.abs(x)).sum(), 0.0, 0.1),
    "floor passed straight through": (lambda x: np.floor(x).sum(), 1.5, 1.0),
    "relu below 0": (lambda x: relu(x).sum(), -1e-3, 1.0),
    "soft shrink inside of its flat": (soft_shrink, 0.0, 1.0),
    "NaN where a slope is": (lambda x: (2 * x).sum(), 0.0, math.nan),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_pass(name):
    function, x, analytic = RIGHT[name]
    assert set(compared(function, x, analytic).status) == {"passed"}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_fail(name):
    function, x, analytic = WRONG[name]
    assert "failed" in set(compared(function, x, analytic).status)


@pytest.mark.parametrize(
    ("function", "x", "analytic"),
    [
        (lambda x: ((x + 1e12) - 1e12).sum(), 1.0, 1.0),
        (lambda x: ((x + 1e12) - 1e12).sum(), 0.3, 1.0),
        (lambda x: ((x + 1e16) - 1e16).sum(), 1.0, 1.0),
        (lambda x: np.tanh(((x + 1e12) - 1e12).sum()), 0.7, 1 - math.tanh(0.7) ** 2),
        (lambda x: np.sin(1e8 * x).sum(), 0.3, 1e8 * math.cos(0.3e8)),
    ],
)
def test_what_rounding_or_oscillation_hides_is_never_called_wrong(function, x, analytic):
    assert "failed" not in set(compared(function, x, analytic).status)


def test_rounding_says_that_it_hides_the_slope():
    result = compared(lambda x: ((x + 1e12) - 1e12).sum(), 1.0, 1.0)
    (verdict,) = result.verdicts.values()
    assert verdict.status == "inconclusive"
    assert "rounding" in verdict.note


def test_a_wrong_slope_is_seen_through_rounding():
    assert compared(lambda x: ((x + 1e12) - 1e12).sum(), 1.0, 3.0).status[0] == "failed"


@pytest.mark.parametrize(
    ("function", "x"),
    [(lambda x: np.floor(x).sum(), 1.0), (lambda x: np.where(x > 0, x + 1, x).sum(), 0.0)],
)
def test_jumps_are_told_apart(function, x):
    (verdict,) = compared(function, x, 1.0).verdicts.values()
    assert (verdict.status, verdict.reason) == ("inconclusive", "discontinuous")


def test_a_slope_without_bound_is_neither_right_nor_wrong_for_a_finite_value():
    (verdict,) = compared(lambda x: np.sqrt(x).sum(), 0.0, 3.0).verdicts.values()
    assert (verdict.status, verdict.reason) == ("inconclusive", "undefined")


def test_below_the_absolute_tolerance_and_hidden_is_said():
    result = compared(lambda x: 1 + 1e-17 * (x**2).sum(), 1.0, 4e-17)
    (verdict,) = result.verdicts.values()
    assert (verdict.status, verdict.unverified) == ("passed", True)


def test_exact_zeros_pass_silently_and_cheaply():
    result = compared(lambda x: (0 * x).sum(), [1.0, 2.0], [0, 0])
    assert set(result.status) == {"passed"}
    assert not result.verdicts


def test_given_tolerances_apply_as_they_are():
    function = lambda x: (x**2).sum()
    assert compared(function, 1.0, 2.1, atol=0.2, rtol=0, strict=False).status[0] == "passed"
    assert compared(function, 1.0, 2.1, atol=0.05, rtol=0, strict=False).status[0] == "failed"


def test_smooth_entries_cost_two_evaluations():
    calls = []
    compared(
        lambda x: calls.append(1) or np.tanh(x).sum(), [0.3, 0.7], 1 - np.tanh([0.3, 0.7]) ** 2
    )
    assert len(calls) == 1 + 2 * 2


def test_fine_steps_are_good_to_ten_digits():
    x = np.linspace(0.1, 2, 7)
    exact = np.exp(x) * np.cos(x) - np.exp(x) * np.sin(x)
    function = lambda x: (np.exp(x) * np.cos(x)).sum()
    good = compared(function, x, exact, 1e-10, 1e-8, True, True)
    assert set(good.status) == {"passed"}
    assert np.max(np.abs(good.numeric - exact)) < 1e-10
    exact[4] *= 1 + 1e-6
    bad = compared(function, x, exact, 1e-10, 1e-8, True, True)
    assert np.flatnonzero(bad.wrong).tolist() == [4]


def test_the_smaller_of_two_scales_is_the_derivative():
    ladder = Ladder(1e-17)
    for k in range(2, 10):
        h = 10.0**-k
        value = lambda t: max(t + 1e-6, 0.0)
        ladder.add(h, (h, h), (value(h) - value(0), value(0) - value(-h)))
    assert slope(ladder.central(), 2, ladder.noise).value == pytest.approx(1)
