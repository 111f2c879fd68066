"""Random directions and halving: what they find, what they cost, and what they leave alone."""

import numpy as np
import pytest

from kael.checker.directions import MOST_EVALUATIONS, search
from kael.checker.entries import Heads
from kael.checker.kinks import Tolerance
from kael.checker.subject import OutsideSubject

RULE = Tolerance(1e-5, 1e-3, True)


class InPlace(OutsideSubject):
    """No copies of the arguments: the functions here do not write into them."""

    def _arguments(self):
        return self.inputs


def searched(function, x, gradient, seed=0):
    subject = InPlace(function, [x], ["x"], [0], grad=lambda x: gradient)
    with np.errstate(all="ignore"):
        heads = Heads(np.ones((1, 1)), subject.record())
        rng = np.random.default_rng(seed)
        found = search(subject, [0], gradient.reshape(-1, 1), heads, RULE, rng)
    return found, subject.evaluations


@pytest.fixture(scope="module")
def smooth():
    x = np.random.default_rng(1).standard_normal(1_000_000)
    return x, 1 - np.tanh(x) ** 2


def total(x):
    return np.tanh(x).sum()


def test_right_gradients_need_few_evaluations_whatever_the_size(smooth):
    x, gradient = smooth
    for size in (1_000, 100_000):
        found, evaluations = searched(total, x[:size].copy(), gradient[:size])
        assert not found.differs
        assert evaluations < 30


@pytest.mark.parametrize("factor", [1.5, 1.01, 1.001])
def test_three_wrong_among_a_million_are_found(smooth, factor):
    x, gradient = smooth
    wrong = [5, 77_777, 500_000]
    broken = gradient.copy()
    broken[wrong] *= factor
    found, evaluations = searched(total, x.copy(), broken)
    assert set(wrong) <= set(found.suspects)
    assert len(found.suspects) < 10
    assert evaluations < MOST_EVALUATIONS


def test_two_swapped_entries_do_not_cancel():
    x = np.random.default_rng(2).standard_normal(400)
    gradient = 1 - np.tanh(x) ** 2
    gradient[[3, 9]] = gradient[[9, 3]]
    for seed in range(20):
        found, _ = searched(total, x.copy(), gradient, seed)
        assert {3, 9} <= set(found.suspects)


def test_small_entries_are_not_hidden_by_large_ones():
    x = np.random.default_rng(3).standard_normal(500)
    scale = np.where(np.arange(500) < 250, 1e6, 1e-6)
    gradient = scale * (1 - np.tanh(x) ** 2)
    broken = gradient.copy()
    broken[400] *= 1.01
    function = lambda x: (scale[250:] * np.tanh(x[250:])).sum()
    gradient[:250] = 0
    broken[:250] = 0
    assert not searched(function, x.copy(), gradient)[0].differs
    assert 400 in searched(function, x.copy(), broken)[0].suspects


def test_kinks_near_the_point_lead_to_no_suspects_that_smaller_steps_clear():
    x = np.random.default_rng(4).standard_normal(100_000)
    found, _ = searched(lambda x: np.maximum(x, 0).sum(), x, (x > 0) * 1.0)
    assert not found.unresolved
    assert len(found.suspects) < 20


def test_kinks_everywhere_are_between_and_wrong_values_there_are_not():
    x = np.zeros(5_000)
    relu = lambda x: np.maximum(x, 0).sum()
    found, _ = searched(relu, x.copy(), np.zeros(5_000))
    assert found.unresolved
    assert found.between
    found, _ = searched(relu, x.copy(), np.full(5_000, 1.5))
    assert found.unresolved
    assert not found.between


def test_steps_relative_to_each_entry_stay_inside_of_a_domain():
    x = np.abs(np.random.default_rng(5).standard_normal(1_000)) * 1e-7 + 1e-9
    found, _ = searched(lambda x: np.log(x).sum(), x.copy(), 1 / x)
    assert not found.suspects
    assert not found.vague
    broken = 1 / x
    broken[5] *= 1.1
    assert 5 in searched(lambda x: np.log(x).sum(), x.copy(), broken)[0].suspects


def test_the_inputs_are_put_back():
    x = np.random.default_rng(6).standard_normal(300)
    before = x.copy()
    subject = InPlace(total, [x], ["x"], [0], grad=lambda x: x)
    heads = Heads(np.ones((1, 1)), subject.record())
    search(subject, [0], np.ones((300, 1)), heads, RULE, np.random.default_rng(0))
    assert np.array_equal(subject.arrays[0], before)
