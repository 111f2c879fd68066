"""Comparisons that could say nothing: sums that overflow, unknown errors, dropped claims."""

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.autograd import gradcheck
from kael.checker.checks import check


def checked(function, *values, mode="projection"):
    return gradcheck(function, [leaf(v) for v in values], mode=mode)


@pytest.mark.parametrize("mode", ["projection", "fast"])
@pytest.mark.parametrize("edge", [1e-8, 2e-8, 4e-8, 6e-8, 8e-8, 1e-3])
def test_an_entry_at_the_edge_of_the_domain_hides_no_other(edge, mode):
    values = np.linspace(0.1, 0.9, 49)
    values[0] = edge
    wrong = made(lambda x: x * kael.log(x), lambda x, g: g * kael.log(x))
    assert checked(lambda x: wrong(x).sum(), values, mode=mode).status == "failed"
    assert checked(lambda x: (x * kael.log(x)).sum(), values, mode=mode).status == "passed"


@pytest.mark.parametrize("count", [48, 49, 300])
@pytest.mark.parametrize("size", [1e155, 1e200, 1e-200])
def test_terms_whose_square_overflows_are_compared(size, count):
    turned = made(lambda x: x * size, lambda x, g: g * -size)
    values = np.linspace(1, 2, count)
    assert checked(lambda x: turned(x).sum(), values).status == "failed"
    assert checked(lambda x: (x * size).sum(), values).status == "passed"


@pytest.mark.parametrize("mode", ["projection", "full", "fast"])
@pytest.mark.parametrize(("offset", "slope"), [(1e12, 0.01), (1e13, 0.1), (1e14, 1.0)])
def test_what_rounding_of_a_large_value_hides_is_told(offset, slope, mode):
    cut = made(lambda x: slope * x, lambda x, g: 0 * g)
    result = checked(lambda x: offset + cut(x).sum(), [1.0], mode=mode)
    assert result.status != "passed" or any("not verified" in note for note in result.notes)


def test_a_long_step_that_leaves_the_domain_of_one_entry_hides_no_other():
    cut = made(lambda x: x / 2, lambda x, g: 0 * g)
    rest = 1e-12
    function = lambda x: 1e10 + cut(x[0]) + rest * (kael.log(x[1]) + kael.asin(x[2]))
    assert checked(function, [1, 1e-3, 0.999]).status == "failed"


@pytest.mark.parametrize("claimed", [np.nan, np.inf])
def test_no_number_is_the_slope_of_a_cusp(claimed):
    cusp = made(lambda x: kael.sqrt(kael.abs(x)), lambda x, g: g * claimed)
    assert checked(lambda x: cusp(x).sum(), [0.0]).status != "passed"


@pytest.mark.parametrize(
    "backward",
    [
        lambda x, g: 2 * x * kael.clamp(g, -3.0, 3.0),
        lambda x, g: 2 * x * kael.clamp(g, -100.0, 100.0),
        lambda x, g: 2 * x * kael.where(kael.abs(g) < 0.05, 0.0, g),
    ],
    ids=["clipped", "clipped far out", "dropped where small"],
)
@pytest.mark.parametrize("summed", [True, False])
def test_upstream_gradients_of_other_sizes_are_tried(backward, summed):
    square = made(lambda x: x * x, backward)
    for values in ([1.5], [1.5, -0.4, 2.2]):
        if summed or len(values) == 1:
            found = checked(lambda x: square(x).sum(), values)
            assert found.status == "failed"
            assert any("not linear" in note for note in found.notes)


@pytest.mark.parametrize("chosen", [None, ("y",)])
def test_a_claim_that_is_not_compared_is_told(chosen):
    x = kael.tensor(3.0, requires_grad=chosen is not None)
    y = kael.tensor(2.0, requires_grad=True)
    options = kael.autograd.GradcheckOptions(inputs=chosen)
    report = check(lambda x, y: x * y, [x, y], ["x", "y"], options, claims={"x": 7.0, "y": 3.0})
    assert report.status == "passed"
    assert report.notes == [
        "the derivative claimed for x is not compared: no gradient of x is asked for"
    ]
