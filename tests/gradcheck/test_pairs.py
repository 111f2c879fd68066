"""A function with another function's derivative is a mismatch, and nothing is guessed of it.

Where the two derivatives differ on one side of zero alone, that is said; no other name is true.
"""

import itertools

import numpy as np
import pytest
from mutants import rule

import kael
from kael.checker import check

FUNCTIONS = {
    "sin": (kael.sin, kael.cos),
    "cos": (kael.cos, lambda x: -kael.sin(x)),
    "tanh": (kael.tanh, lambda x: 1 - kael.tanh(x) ** 2),
    "exp": (kael.exp, kael.exp),
    "square": (lambda x: x**2, lambda x: 2 * x),
    "cube": (lambda x: x**3, lambda x: 3 * x**2),
    "abs": (kael.abs, kael.sign),
    "relu": (kael.relu, lambda x: (x > 0).to(kael.float64)),
    "sigmoid": (kael.sigmoid, lambda x: kael.sigmoid(x) * (1 - kael.sigmoid(x))),
    "softplus": (kael.softplus, kael.sigmoid),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / x**2),
    "x sin": (lambda x: x * kael.sin(x), lambda x: kael.sin(x) + x * kael.cos(x)),
    "x abs": (lambda x: x * kael.abs(x), lambda x: 2 * kael.abs(x)),
    "leaky": (lambda x: kael.leaky_relu(x, 0.1), lambda x: kael.where(x > 0, 1.0, 0.1)),
    "hypot": (lambda x: kael.sqrt(1 + x * x), lambda x: x / kael.sqrt(1 + x * x)),
}
ONE_SIDED = [{"abs", "relu"}, {"abs", "leaky"}, {"relu", "leaky"}, {"square", "x abs"}]
POINT = np.array([1.0, -1.0, 2.0, 0.5])


@pytest.mark.parametrize("own", FUNCTIONS)
def test_another_functions_derivative_is_not_given_a_false_name(own):
    forward, _ = FUNCTIONS[own]
    for other in FUNCTIONS.keys() - {own}:
        derivative = FUNCTIONS[other][1]
        wrong = rule(forward, lambda g, x, d=derivative: g * d(x))
        report = check(wrong, [kael.tensor(POINT, requires_grad=True)], ["x"])
        due = "only-negative" if {own, other} in ONE_SIDED else "mismatch"
        assert [told.code for told in report.diagnosis] == [due], other


def test_no_two_of_them_have_one_derivative():
    x = kael.tensor(POINT)
    for (_, one), (_, other) in itertools.combinations(FUNCTIONS.values(), 2):
        assert not np.allclose(one(x).numpy(), other(x).numpy())
