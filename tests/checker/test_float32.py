"""A float32 input is checked against float64 differences; those beside it are not its like."""

import numpy as np
import pytest
from tests_checker_functions import leaf

import kael
from kael.checker import GradcheckOptions, check

MODES = ["projection", "full", "fast", "adaptive"]


def beside(count, y, cut=False, claim=None, **options):
    x = kael.tensor(np.full(count, 0.5), dtype=kael.float32, requires_grad=True)

    def function(x, y):
        return (kael.exp(x) * y * (y.detach() if cut else y)).sum()

    claims = None if claim is None else {"y": claim}
    report = check(function, [x, leaf(y)], ["x", "y"], GradcheckOptions(**options), claims)
    return {(c.kind, c.input): c for c in report.checks if c.kind in ("numeric", "derivative")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [2, 60])
def test_only_the_float32_input_has_the_note(count, mode):
    found = beside(count, np.linspace(1, 2, count), mode=mode)
    assert {c.status for c in found.values()} == {"passed"}
    notes = {name: check.note or "" for (_, name), check in found.items()}
    assert "float32" in notes["x"]
    assert "float32" not in notes["y"]


@pytest.mark.parametrize("mode", MODES)
def test_the_looser_tolerance_is_for_float32_alone(mode):
    found = beside(2, np.array([2e-5, 1e-5]), cut=True, mode=mode)
    assert found["numeric", "y"].status == "failed"


@pytest.mark.parametrize(("factor", "status"), [(1.0, "passed"), (1.0003, "failed")])
def test_a_claim_for_the_other_input_is_held_to_more_digits(factor, status):
    y = np.array([1.0, 2.0])
    found = beside(2, y, claim=factor * 2 * y * np.exp(0.5))
    assert found["derivative", "y"].status == status
