"""The sentences on a check say what was seen, and nothing that was not."""

import math

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.checker import GradcheckOptions, check
from kael_cli.reporters import sentence


def claims_of(formula):
    """What a spec hands over: the claim at the point, and everywhere."""
    return lambda name, arrays: formula(arrays[0])


def claimed(function, x, formula):
    x = np.array(x)
    return check(function, [leaf(x)], ["x"], claims={"x": formula(x)}, claim_of=claims_of(formula))


def codes(report):
    return {told.code for told in report.diagnosis}


def test_what_cannot_be_told_has_no_fault():
    report = check(lambda x: kael.sin(x * 1e8), [leaf(1.0)], ["x"])
    assert report.status == "inconclusive"
    assert codes(report) == {"inconclusive"}


def test_a_claim_of_one_at_a_tie_is_not_called_zero():
    report = claimed(lambda x: x.max(), [1.0, 2.0, 2.0, 0.0], lambda x: np.where(x == 2, 1.0, 0.0))
    assert report.status == "failed"
    assert not codes(report) & {"zero", "shifted"}


def test_a_factor_is_seen_beneath_a_large_constant():
    report = claimed(lambda x: 1e9 + (x**2).sum(), [0.1, 0.2], lambda x: 2.1 * x)
    (told,) = report.diagnosis
    assert told.code == "factor"
    assert "1.05 times" in told.message


def test_a_potential_in_si_units_is_not_wrong_where_it_is_large_only():
    def energy(r):
        q = (3.4e-10 / r) ** 6
        return (4 * 1.65e-21 * (q * q - q)).sum()

    def slope(r):
        q = (3.4e-10 / r) ** 6
        return 4 * 1.65e-21 * (-12 * q**2 + 3 * q) / r

    report = claimed(energy, [3.6e-10, 4.1e-10, 5.5e-10], slope)
    assert report.status == "failed"
    assert "only-large" not in codes(report)


def test_an_entry_that_is_nan_is_the_largest_error():
    function = made(lambda x: 2 * x, lambda x, g: g * kael.tensor([math.nan, 2.0]))
    report = check(lambda x: function(x).sum(), [leaf([1.0, 2.0])], ["x"])
    (numeric,) = [c for c in report.checks if c.kind == "numeric"]
    assert numeric.max_abs_error == math.inf


def test_the_entries_that_are_open_are_counted():
    report = check(lambda x: kael.sin(x[0] * 1e8) + x[1], [leaf([1.0, 2.0])], ["x"])
    (numeric,) = [c for c in report.checks if c.kind == "numeric"]
    assert sentence.tally(numeric) == "numeric x: 1 of 2 entries inconclusive"


def test_what_is_not_deterministic_says_so_once():
    rng = np.random.default_rng(0)
    report = check(lambda x: (x * kael.tensor(rng.random(2))).sum(), [leaf([1.0, 2.0])], ["x"])
    (told,) = report.diagnosis
    lines = [told.message, told.remedy, *map(sentence.tally, report.checks)]
    assert sum("not deterministic" in line for line in lines) == 1
    assert sum("fix the seed" in line for line in lines) == 1


@pytest.mark.parametrize(("mode", "output"), [("full", (1, 1)), ("projection", None)])
def test_a_failure_names_the_element_of_the_output(mode, output):
    ones = np.ones((2, 2))
    ones[1, 1] = 2.0
    function = made(lambda x: x.reshape(2, 2) * 1, lambda x, g: (g * kael.tensor(ones)).reshape(4))
    report = check(function, [leaf([1.0, 2.0, 3.0, 4.0])], ["x"], GradcheckOptions(mode=mode))
    (failure,) = next(c for c in report.checks if c.kind == "numeric").failures
    assert (failure.index, failure.output) == ((3,), output)
