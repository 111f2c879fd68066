"""A slope behind a large value: a step that rounding swallows is no proof of a zero gradient."""

import numpy as np
import pytest

import kael
from kael.autograd import gradcheck

MODES = ("projection", "full", "fast", "adaptive")


def status(function, values, mode):
    return gradcheck(function, (kael.tensor(values, requires_grad=True),), mode=mode).status


def cut(slope, offset):
    """slope * x + offset whose graph is cut: the gradient is 0, the slope is not."""
    return lambda x: (slope * x.detach() + offset).sum() + 0 * x.sum()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("slope", "offset"),
    [(0.5, 1e10), (1.0, 1e11), (1e-3, 1e8), (1.4e-5, 2e5), (1e-9, 20.0), (1e-10, 1.0)],
)
@pytest.mark.parametrize("x", [0.0, 0.3])
def test_a_cut_graph_is_seen(slope, offset, x, mode):
    assert status(cut(slope, offset), [x], mode) == "failed"


@pytest.mark.parametrize("mode", ["projection", "fast"])
def test_among_many_entries(mode):
    values = np.random.default_rng(0).standard_normal(64)
    assert status(cut(0.5, 1e10), values, mode) == "failed"
    assert status(lambda x: 1 + x.relu().sum(), values, mode) == "passed"


def test_slopes_that_cancel_when_all_move_alike():
    assert status(lambda x: x.detach()[0] - x.detach()[1] + 1e10 + 0 * x.sum(), [1, 2.0],
                  "projection") == "failed"  # fmt: skip


@pytest.mark.parametrize("mode", ["projection", "full", "fast"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.relu().sum(),
        lambda x: 1e6 + x.relu().sum(),
        lambda x: x.clamp(min=-1e-3).sum(),
        lambda x: x.amax(),
        lambda x: kael.where(x > 0.315, 1.0, 0.0).sum() + 0 * x.sum(),
        lambda x: 1e7 + x.floor().sum(),
        lambda x: 1e6 + x[0] * x[0] + 0 * x.sum(),
    ],
)
def test_a_gradient_that_is_zero_passes(function, mode):
    for values in ([0.31, 0.52, -0.3, -0.7], [-5e-3, -2e-3, -1e-4, 0.5]):
        assert status(function, values, mode) == "passed"


def test_entries_that_are_zero_cost_two_evaluations_together():
    calls = []

    def counted(x):
        calls.append(1)
        return x[0] * x[0] + 0 * x.sum()

    x = kael.tensor(np.linspace(1, 2, 20), requires_grad=True)
    assert gradcheck(counted, (x,), mode="full").status == "passed"
    alone = len(calls)
    calls.clear()
    assert gradcheck(lambda x: counted(x) + (x * x).sum(), (x,), mode="full").status == "passed"
    assert alone - len(calls) == 2
