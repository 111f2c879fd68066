"""Wrong gradients must not pass, right ones must, at any scale of inputs and values."""

import itertools
import math

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.autograd import gradcheck

L = 1e-10


def given_by(forward, derivative):
    """An operation with a hand-written derivative, summed."""
    given = made(forward, lambda x, g: g * derivative(x))
    return lambda x: given(x).sum()


def checked(function, values, **options):
    return gradcheck(function, [leaf(values)], **options)


FORMS = {
    "exp": (lambda x, s: kael.exp(-x / s), lambda x, s: -kael.exp(-x / s) / s),
    "sin": (lambda x, s: kael.sin(x / s), lambda x, s: kael.cos(x / s) / s),
    "power": (lambda x, s: (x / s) ** -12, lambda x, s: -12 * (x / s) ** -13 / s),
    "steep": (lambda x, s: kael.exp(20 * x / s), lambda x, s: 20 * kael.exp(20 * x / s) / s),
}


@pytest.mark.parametrize("factor", [1.0, 1.01, -1.0, 0.0])
@pytest.mark.parametrize(
    ("form", "scale", "size"), list(itertools.product(FORMS, (L, 1.0, 1e9), (1e-21, 1.0, 1e15)))
)
def test_a_wrong_factor_fails_in_any_units(form, scale, size, factor):
    forward, derivative = FORMS[form]
    function = given_by(
        lambda x: size * forward(x, scale), lambda x: factor * size * derivative(x, scale)
    )
    found = checked(function, [0.31 * scale, 0.77 * scale, 1.7 * scale])
    assert found.status in (("passed", "inconclusive") if factor == 1.0 else ("failed",))


@pytest.mark.parametrize("count", [3, 100])
def test_a_severed_potential_in_si_units_fails(count):
    def energy(r, cut):
        q = (3.4e-10 / (r.detach() if cut else r)) ** 6
        return (4 * 1.65e-21 * (q * q - q)).sum() + 0 * r.sum()

    r = np.linspace(3.6e-10, 5.5e-10, count)
    assert checked(lambda r: energy(r, cut=False), r).status == "passed"
    assert checked(lambda r: energy(r, cut=True), r).status == "failed"


def test_a_right_kink_passes_in_si_units():
    found = checked(lambda x: kael.relu(x / L - 0.77).sum(), [0.31 * L, 0.77 * L, 1.7 * L])
    assert found.status == "passed"
    assert "at a kink" in found.notes[0]


def test_an_overflow_beside_the_point_hides_no_sign():
    function = given_by(
        lambda x: kael.exp(-x / 4.14e-21), lambda x: kael.exp(-x / 4.14e-21) / 4.14e-21
    )
    assert checked(function, [1e-21, 5e-21, 2e-20]).status == "failed"


@pytest.mark.parametrize("mode", ["projection", "full", "adaptive", "fast"])
@pytest.mark.parametrize(("value", "word"), [(math.inf, "infinite"), (math.nan, "NaN")])
def test_a_gradient_that_is_not_finite_fails_where_the_slope_is(value, word, mode):
    function = given_by(lambda x: 2 * x, lambda x: kael.tensor([value, 2.0, 2.0]))
    found = checked(function, [1.0, 2.0, 3.0], mode=mode)
    assert found.status == "failed"
    assert any(word in note and note.endswith("[anomaly]") for note in found.notes)


def test_an_infinite_slope_is_said():
    found = checked(lambda x: kael.sqrt(x).sum(), [0.0, 4.0])
    assert found.status == "passed"
    assert any("the slope is infinite here" in note for note in found.notes)


def test_what_agrees_by_chance_only_is_said_to_be_unverified():
    function = given_by(lambda x: 1e-21 * kael.abs(x - 1) + 1e-12, lambda x: x * 0 + 1.01e-21)
    found = checked(function, [1.7])
    assert found.status != "passed" or any("not verified" in note for note in found.notes)


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 1.0])
@pytest.mark.parametrize("unit", ["ordinary", "own"])
def test_a_factor_is_named_at_any_size_of_the_inputs(scale, unit):
    size = scale if unit == "own" else 1.0
    function = given_by(
        lambda x: kael.sigmoid(x / size + 0.3),
        lambda x: 2 * kael.sigmoid(x / size + 0.3) * kael.sigmoid(-x / size - 0.3) / size,
    )
    found = checked(function, [1.3 * scale, -0.7 * scale, 0.4 * scale])
    assert any("is 2 times the right one" in note and "[factor]" in note for note in found.notes)
