"""A function that raises beside the given point has no value there; at the point it is an error."""

import math

import numpy as np
import pytest

import kael
from kael.autograd import gradcheck
from kael.checker import check, check_outside

EYE = kael.tensor([[1.0, 0.0], [0.0, 1.0]])
MODES = ["projection", "full", "fast"]


def leaf(values):
    return kael.tensor(values, dtype=kael.float64, requires_grad=True)


def log_of_factor(s):
    return kael.log(kael.diagonal(kael.cholesky(s * EYE))).sum()


def logarithm(s):
    if (s.numpy() <= 0).any():
        raise RuntimeError("a negative variance")
    return kael.log(s).sum()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", [log_of_factor, logarithm])
def test_a_raise_beside_the_point_makes_the_step_smaller(function, mode):
    assert gradcheck(function, [leaf(1e-8)], mode=mode).status == "passed"


def test_a_wrong_gradient_beside_it_fails_all_the_same():
    def wrong(s):
        return log_of_factor(s) + (s.detach() * 1e7).sum()

    report = check(wrong, [leaf(1e-8)], ["s"])
    assert report.status == "failed"


def test_many_entries_of_which_one_is_near_the_edge():
    values = np.linspace(0.5, 2.0, 60)
    values[7] = 1e-8
    assert gradcheck(logarithm, [leaf(values)]).status == "passed"


def test_one_that_raises_everywhere_else_cannot_be_verified():
    def function(s):
        if float(s) != 0.5:
            raise RuntimeError("only there")
        return s * 2

    report = check(function, [leaf(0.5)], ["s"])
    assert report.status == "inconclusive"
    (told,) = report.diagnosis
    assert told.code == "step-left-domain"
    assert "only there" in told.message


def test_a_raise_at_the_point_is_let_out():
    with pytest.raises(RuntimeError, match="a negative variance"):
        gradcheck(logarithm, [leaf(-1.0)])


def test_code_outside_may_raise_beside_the_point_too():
    def function(s):
        if s < 0:
            raise RuntimeError("a negative variance")
        return math.log(s)

    assert check_outside(function, [1e-8], grad=lambda s: 1 / s).status == "passed"
    assert check_outside(function, [1e-8], grad=lambda s: 2 / s).status == "failed"
    with pytest.raises(RuntimeError):
        check_outside(function, [-1.0], grad=lambda s: 1 / s)
