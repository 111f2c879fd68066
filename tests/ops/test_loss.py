"""Losses: reductions, weights, edges of their formulas, and operands that do not fit."""

import math

import numpy as np
import pytest

from kael.engine.backward import backward
from kael.errors import KaelIndexError, KaelTypeError, KaelValueError
from kael.ops import REGISTRY
from kael.tensors import tensor

INF = math.inf
BCE = "binary_cross_entropy_with_logits"


def both(name, *values, constants=(), **arguments):
    """Value and the gradients of the floating operands, under ones."""
    leaves = [tensor(v, requires_grad=np.asarray(v).dtype.kind == "f") for v in values]
    out = REGISTRY[name](*leaves, *constants, **arguments)
    backward(out, np.ones(out.shape))
    return out.tolist(), *(x.grad.tolist() for x in leaves if x.requires_grad)


def test_reductions():
    x, y = [1.0, 2.0, 4.0], [0.0, 0.0, 1.0]
    assert both("mse_loss", x, y, reduction="none")[0] == [1, 4, 9]
    assert both("mse_loss", x, y, reduction="sum")[0] == 14
    value, gradient, other = both("mse_loss", x, y)
    assert value == pytest.approx(14 / 3)
    assert gradient == pytest.approx([2 / 3, 4 / 3, 2])
    assert other == pytest.approx([-2 / 3, -4 / 3, -2])


def test_the_mean_divides_by_the_broadcast_count():
    value, gradient, other = both("mse_loss", [[1.0], [2.0]], [0.0, 0.0, 0.0])
    assert value == 2.5
    assert gradient == [[1], [2]]
    assert other == pytest.approx([-1, -1, -1])


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "kl_div"])
def test_an_unknown_reduction_is_refused(name):
    with pytest.raises(KaelValueError, match=f"{name}: reduction is one of none, mean, sum"):
        REGISTRY[name](tensor([1.0]), tensor([1.0]), reduction="avg")


def test_an_empty_loss():
    empty = np.zeros((0, 3))
    assert math.isnan(REGISTRY["mse_loss"](tensor(empty), tensor(empty)).item())
    assert both("mse_loss", empty, empty, reduction="sum") == (0, [], [])
    assert both(BCE, empty, empty, reduction="none") == ([], [], [])


def test_l1_at_0():
    assert both("l1_loss", [1.0, 2.0], [1.0, 3.0], reduction="sum") == (1, [0, -1], [0, 1])


def test_the_seam_of_huber_and_smooth_l1():
    x, zero = [0.5, -0.5, 3.0], [0.0, 0.0, 0.0]
    value, gradient, _ = both("huber_loss", x, zero, reduction="none", delta=0.5)
    assert (value, gradient) == ([0.125, 0.125, 1.375], [0.5, -0.5, 0.5])
    value, gradient, _ = both("smooth_l1_loss", x, zero, reduction="none", beta=0.5)
    assert (value, gradient) == ([0.25, 0.25, 2.75], [1, -1, 1])
    assert both("smooth_l1_loss", x, zero, reduction="sum", beta=0)[:2] == (4, [1, -1, 1])


def test_widths_that_make_no_sense():
    one = tensor([1.0])
    with pytest.raises(KaelValueError, match="huber_loss: delta must be positive, got 0"):
        REGISTRY["huber_loss"](one, one, delta=0)
    with pytest.raises(KaelValueError, match="smooth_l1_loss: beta must not be negative"):
        REGISTRY["smooth_l1_loss"](one, one, beta=-1.0)


def test_cross_entropy_of_logits_far_out():
    x, y = [1000.0, -1000.0, INF, -INF], [0.0, 1.0, 1.0, 0.0]
    value, gradient, _ = both(BCE, x, y, reduction="none")
    assert value == [1000, 1000, 0, 0]
    assert gradient == [1, -1, 0, 0]
    tiny = both(BCE, [40.0], [1.0], reduction="sum")[1][0]
    assert tiny == pytest.approx(-math.exp(-40), rel=1e-12)


def test_weights_have_gradients_and_may_be_left_out():
    x, y, weight, positive = [0.5, -1.0], [1.0, 0.0], [2.0, 3.0], [4.0, 5.0]
    value, _, _, by_weight = both(
        BCE, x, y, weight, constants=("sum",), pos_weight=tensor(positive)
    )
    each = [4 * math.log1p(math.exp(-0.5)), math.log1p(math.exp(-1.0))]
    assert value == pytest.approx(2 * each[0] + 3 * each[1])
    assert by_weight == pytest.approx(each)
    plain = REGISTRY[BCE](tensor(x), tensor(y))
    assert REGISTRY[BCE](tensor(x), tensor(y), weight=None, pos_weight=None).item() == plain.item()


def test_kl_at_a_target_of_0():
    value, gradient, target = both("kl_div", [-1.0, -2.0], [0.0, 1.0], reduction="sum")
    assert value == 2
    assert gradient == [0, -1]
    assert target == [-INF, 3]


def test_batchmean():
    x, y = np.full((2, 3), -1.0), np.full((2, 3), 0.5)
    total = both("kl_div", x, y, reduction="sum")
    mean = both("kl_div", x, y, reduction="batchmean")
    assert mean[0] == pytest.approx(total[0] / 2)
    np.testing.assert_allclose(mean[1], np.divide(total[1], 2))


def test_nll_picks_the_class_and_divides_by_the_weights():
    logs = np.array([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]])
    value, gradient = both("nll_loss", logs, np.array([2, 0]))
    assert value == 3.5
    assert gradient == [[0, 0, -0.5], [-0.5, 0, 0]]
    value, gradient, weight = both("nll_loss", logs, np.array([2, 0]), np.array([1.0, 2.0, 3.0]))
    assert value == pytest.approx((3 * 3 + 1 * 4) / 4)
    assert gradient == [[0, 0, -0.75], [-0.25, 0, 0]]
    assert weight == pytest.approx([(4 - 3.25) / 4, 0, (3 - 3.25) / 4])


def test_nll_of_one_sample_and_of_images():
    assert both("nll_loss", np.array([-1.0, -2.0]), np.array(1)) == (2, [0, -1])
    logs, target = -np.arange(12.0).reshape(1, 3, 2, 2), np.array([[[0, 1], [2, 0]]])
    assert both("nll_loss", logs, target, reduction="none")[0] == [[[0, 5], [10, 3]]]


def test_nll_ignores_what_it_is_told_to():
    logs = np.array([[-1.0, -2.0], [-INF, -5.0]])
    assert both("nll_loss", logs, np.array([1, -100])) == (2, [[0, -1], [0, 0]])
    value, gradient = both("nll_loss", logs, np.array([1, 0]), ignore_index=0)
    assert (value, gradient) == (2, [[0, -1], [0, 0]])
    assert math.isnan(both("nll_loss", logs, np.array([-100, -100]))[0])


def test_nll_names_what_does_not_fit():
    loss, logs = REGISTRY["nll_loss"], tensor(np.zeros((2, 3)))
    with pytest.raises(KaelIndexError, match="target 3 is out of range for 3 classes"):
        loss(logs, tensor([0, 3]))
    with pytest.raises(KaelIndexError, match="target -1 is out of range"):
        loss(logs, tensor([0, -1]))
    with pytest.raises(KaelTypeError, match="class indices, got float64"):
        loss(logs, tensor([0.0, 1.0]))
    with pytest.raises(KaelValueError, match=r"input \[2, 3\] and target \[3\] do not match"):
        loss(logs, tensor([0, 1, 2]))
    with pytest.raises(KaelValueError, match=r"weight \[2\] must have one entry a class, 3"):
        loss(logs, tensor([0, 1]), tensor([1.0, 2.0]))


def test_mixed_precision_keeps_the_digits():
    x = tensor(np.array([0.3, -0.7]), requires_grad=True)
    y = tensor(np.array([0.1, 0.9], np.float32), requires_grad=True)
    backward(REGISTRY[BCE](x, y, reduction="sum"))
    wide = np.array([0.1, 0.9], np.float32).astype(float)
    expected = 1 / (1 + np.exp(-x.numpy())) - wide
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-13)
    assert y.grad.dtype == np.float32
