"""An input that is not finite has no numeric derivative: that is said, and hides nothing else."""

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.autograd import gradcheck

MODES = ("projection", "full", "fast", "adaptive")
SIZES = (3, 64)


def scaled(factor):
    """exp(-x), whose gradient is 0 at infinity, with a backward that is off by a factor."""

    return made(lambda x: kael.exp(-x), lambda x, g: g * -factor * kael.exp(-x))


def checked(function, size, mode, value=np.inf):
    values = np.random.default_rng(0).uniform(0, 1, size)
    values[size // 2] = value
    return gradcheck(function, (leaf(values),), mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", SIZES)
def test_a_wrong_gradient_beside_it_is_found(size, mode):
    assert checked(scaled(2.0), size, mode).status == "failed"
    assert checked(lambda x: scaled(2.0)(x).sum(), size, mode).status == "failed"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", SIZES)
def test_a_right_one_is_not_called_verified(size, mode):
    result = checked(scaled(1.0), size, mode)
    assert result.status == "inconclusive"
    if mode != "adaptive":  # which says that every step leaves the domain
        assert any(f"element [{size // 2}]: the input is not finite" in n for n in result.notes)


def test_a_nan_that_nothing_reads_is_no_failure():
    result = checked(lambda x: kael.where(x > 2, x, 3.0).sum(), 64, "projection", np.nan)
    assert result.status == "inconclusive"


def test_more_of_them_than_are_looked_at_are_counted():
    values = np.full(300, np.inf)
    values[:100] = 0.5
    result = gradcheck(scaled(1.0), (leaf(values),), mode="fast")
    assert result.status == "inconclusive"
    assert any("104 entries are below what directions show" in note for note in result.notes)
