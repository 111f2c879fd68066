"""Edge cases of arithmetic and elementary functions: where a formula alone would be wrong."""

import math

import numpy as np
import pytest

from kael.engine.backward import backward
from kael.errors import KaelTypeError, KaelValueError
from kael.ops import REGISTRY, lookup
from kael.tensors import tensor

INF, NAN = math.inf, math.nan


def leaf(value, dtype=None):
    return tensor(value, dtype=dtype, requires_grad=True)


def gradients(name, *values, upstream=None, **arguments):
    """Value and gradients of an operation of floating operands, under ones."""
    leaves = [leaf(np.asarray(value, float)) for value in values]
    out = lookup(name)(*leaves, **arguments)
    backward(out, np.ones(out.shape) if upstream is None else np.asarray(upstream, float))
    return out.tolist(), *(x.grad.tolist() for x in leaves)


@pytest.mark.parametrize(
    ("exponent", "value", "slope"),
    [(3, 0, 0), (2, 0, 0), (1, 0, 1), (0, 1, 0), (0.5, 0, INF), (-1, INF, -INF)],
)
def test_pow_at_base_0(exponent, value, slope):
    x = leaf([0.0])
    out = REGISTRY["pow"](x, exponent)
    backward(out, [1.0])
    assert (out.tolist(), x.grad.tolist()) == ([value], [slope])


def test_gradient_in_the_exponent_at_base_0():
    value, base, exponent = gradients("pow", [0.0, 2.0, 0.0], [1.0, 1.0, 0.0])
    assert value == [0, 2, 1]
    assert base == [1, 1, 0]
    assert exponent == pytest.approx([0, 2 * math.log(2), 0])


def test_no_logarithm_of_a_negative_base_unless_the_exponent_asks():
    base, exponent = leaf([-2.0]), tensor([3.0])
    out = REGISTRY["pow"](base, exponent)
    backward(out, [1.0])
    assert out.tolist() == [-8]
    assert base.grad.tolist() == [12]
    assert math.isnan(gradients("pow", [-2.0], [3.0])[2][0])


def test_an_integer_to_a_negative_power_says_what_to_do():
    power = REGISTRY["pow"]
    with pytest.raises(KaelValueError, match=r"pow: .*make the base floating point"):
        power(tensor([2, 3]), tensor([1, -1]))
    with pytest.raises(KaelValueError, match="integer power below 0"):
        power(tensor([2]), -1)
    assert power(tensor([2, 3]), 2).tolist() == [4, 9]
    assert power(tensor([2]), 2).dtype == np.int64
    assert power(tensor([2.0]), -1).tolist() == [0.5]


@pytest.mark.parametrize("exponent", [1, 2, 2.0, 1.0, 3])
def test_short_ways_of_pow_give_what_the_general_one_does(exponent):
    x = np.array([-3.0, -0.0, 0.0, 1e-200, 1e200, INF, -INF, NAN])
    got = REGISTRY["pow"](tensor(x), exponent).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, np.power(x, float(exponent)))


def test_pow_keeps_the_digits_of_mixed_precision():
    x, exponent = leaf([0.7]), leaf([0.3], "float32")
    backward(REGISTRY["pow"](x, exponent), [1.0])
    power = float(np.float32(0.3))
    assert x.grad.item() == pytest.approx(power * 0.7 ** (power - 1), rel=1e-14)
    assert exponent.grad.dtype == np.float32


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_a_tie_is_shared(name):
    assert gradients(name, [1.0, 1.0], [1.0, 3.0], upstream=[3.0, 5.0])[1:] == (
        ([1.5, 0.0], [1.5, 5.0]) if name == "maximum" else ([1.5, 5.0], [1.5, 0.0])
    )


def test_maximum_passes_an_infinite_gradient_to_the_winner_alone():
    assert gradients("maximum", [1.0], [2.0], upstream=[INF])[1:] == ([0.0], [INF])


def test_clamp_passes_the_gradient_at_both_limits():
    value, slope = gradients("clamp", [0.0, 1.0, 0.5, -1.0, 2.0], min=0, max=1)
    assert value == [0, 1, 0.5, 0, 1]
    assert slope == [1, 1, 1, 0, 0]


def test_clamp_stops_an_infinite_gradient():
    x = leaf(10.0)
    backward(REGISTRY["acos"](REGISTRY["clamp"](x, -1, 1)))
    assert x.grad.item() == 0


def test_limits_of_clamp():
    clamp = REGISTRY["clamp"]
    assert clamp(tensor([1.0, 5.0]), max=2).tolist() == [1, 2]
    assert clamp(tensor([1.0, 5.0]), min=3, max=2).tolist() == [2, 2]
    assert clamp(tensor([1, 5]), min=2).dtype == np.int64
    assert clamp(tensor([1.0], "float32"), min=np.float64(0.5)).dtype == np.float32
    assert math.isnan(clamp(tensor([NAN]), 0, 1).item())
    with pytest.raises(KaelValueError, match="clamp: min, max or both"):
        clamp(tensor([1.0]))
    with pytest.raises(KaelTypeError, match="plain argument and gets no gradient"):
        clamp(tensor([1.0]), min=leaf([0.0]))


def test_abs_stops_at_0_also_under_an_infinite_gradient():
    assert gradients("abs", [0.0, -2.0], upstream=[INF, 3.0])[1] == [0, -3]


def test_sqrt_and_its_reciprocal_at_0():
    assert gradients("sqrt", [0.0, 4.0])[1] == [INF, 0.25]
    assert gradients("rsqrt", [0.0, 4.0])[1] == [-INF, -0.0625]


def test_atan2_at_the_origin_and_far_out():
    assert gradients("atan2", [0.0], [0.0]) == ([0], [0], [0])
    value, x, other = gradients("atan2", [3e200], [4e200])
    assert value == pytest.approx([math.atan2(3, 4)])
    assert x == pytest.approx([0.16e-200])
    assert other == pytest.approx([-0.12e-200])


def test_hypot_neither_overflows_nor_divides_by_0():
    assert gradients("hypot", [0.0], [0.0]) == ([0], [0], [0])
    value, x, other = gradients("hypot", [3e200, 3e-200], [4e200, 4e-200])
    assert value == pytest.approx([5e200, 5e-200])
    assert x == pytest.approx([0.6, 0.6])
    assert other == pytest.approx([0.8, 0.8])


def test_logaddexp_at_infinities():
    value, x, other = gradients("logaddexp", [-INF, -INF, INF, 800.0], [-INF, 1.0, INF, 0.0])
    assert value == [-INF, 1, INF, 800]
    assert x == pytest.approx([0, 0, 0.5, 1])
    assert other == pytest.approx([0, 1, 0.5, 0])


def test_division_keeps_its_gradient_where_a_square_would_overflow():
    assert gradients("div", [1e200], [2e200])[1:] == ([5e-201], [pytest.approx(-2.5e-201)])


def test_division_by_0():
    assert gradients("div", [1.0, -1.0], [0.0, 0.0])[0] == [INF, -INF]
    for name in ("remainder", "fmod", "floor_divide"):
        with pytest.raises(KaelValueError, match=f"{name}: an integer cannot be divided by 0"):
            REGISTRY[name](tensor([1, 2]), tensor([1, 0]))


def test_remainders_follow_the_sign_of_one_operand():
    x, other = [5.5, -5.5, 5.5], [2.0, 2.0, -2.0]
    assert gradients("remainder", x, other) == ([1.5, 0.5, -0.5], [1, 1, 1], [-2, 3, 3])
    assert gradients("fmod", x, other) == ([1.5, -1.5, 1.5], [1, 1, 1], [-2, 2, 2])


def test_inverse_functions_at_the_ends_of_their_domain():
    assert gradients("asin", [1.0, -1.0])[1] == [INF, INF]
    assert gradients("acos", [1.0, -1.0])[1] == [-INF, -INF]
    assert gradients("atanh", [1.0, -1.0])[1] == [INF, INF]
    assert gradients("acosh", [1.0])[1] == [INF]
    assert gradients("log1p", [-1.0])[1] == [INF]
    assert gradients("asinh", [1e200])[1] == pytest.approx([1e-200])


def test_a_number_never_widens_float32():
    x = leaf([1.5, 2.5], "float32")
    for name in ("add", "mul", "div", "pow", "maximum", "atan2", "hypot"):
        assert REGISTRY[name](x, 2.0).dtype == np.float32
        assert REGISTRY[name](2, x).dtype == np.float32


def test_integers_compute_in_the_default_dtype():
    assert REGISTRY["exp"](tensor([0, 1])).dtype == np.float64
    assert REGISTRY["div"](tensor([1, 2]), tensor([4, 4])).tolist() == [0.25, 0.5]
    assert REGISTRY["mul"](tensor([True, False]), leaf([2.0, 3.0])).tolist() == [2, 0]
    assert not REGISTRY["mul"](tensor([1, 2]), tensor([3, 4])).requires_grad


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(KaelValueError, match=r"add: shapes \[2, 3\] and \[4\] do not broadcast"):
        REGISTRY["add"](tensor(np.ones((2, 3))), tensor(np.ones(4)))
    with pytest.raises(KaelValueError, match=r"lerp: shapes \[2\] and \[3\]"):
        REGISTRY["lerp"](tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0]), 0.5)


def test_every_operand_of_lerp_and_addcmul_has_a_gradient():
    assert gradients("lerp", [1.0], [3.0], [0.25]) == ([1.5], [0.75], [0.25], [2])
    assert gradients("addcmul", [1.0], [2.0], [3.0], value=0.5) == ([4], [1], [1.5], [1])
    assert gradients("addcdiv", [1.0], [2.0], [4.0], value=2) == ([2], [1], [0.5], [-0.25])


def test_a_hidden_nan_stays_in_the_gradient():
    """Reverse mode multiplies the 0 of a branch not taken by its infinite slope."""
    x = leaf([0.0, 2.0, 3.0])
    mask = REGISTRY["gt"](x, 2.0)
    out = REGISTRY["where"](mask, REGISTRY["log"](x), REGISTRY["mul"](x, 2.0))
    backward(out, np.ones(3))
    assert math.isnan(x.grad.tolist()[0])
    assert x.grad.tolist()[1:] == pytest.approx([2, 1 / 3])


def test_relu_and_maximum_differ_at_0():
    assert gradients("relu", [0.0])[1] == [0]
    assert gradients("maximum", [0.0], [0.0])[1] == [0.5]


def test_lerp_ends_at_its_ends():
    far = REGISTRY["lerp"](tensor([1e16, 1.0]), tensor([1.0, 1e16]), tensor([1.0, 0.0]))
    assert far.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda b: -b, "neg takes no booleans; use ~ or logical_not"),
        (lambda b: REGISTRY["neg"](b), "neg takes no booleans; use ~ or logical_not"),
        (lambda b: b - b, "sub takes no booleans; use logical_xor"),
        (lambda b: True - b, "sub takes no booleans; use logical_xor"),
        (lambda b: b.sub(b), "sub takes no booleans; use logical_xor"),
        (lambda b: b.sub_(b), "sub_ takes no booleans; use logical_xor"),
    ],
)
def test_booleans_have_no_difference(compute, message):
    with pytest.raises(KaelTypeError, match=message):
        compute(tensor([True, False]))
    assert (tensor([True, False]) - 1.0).tolist() == [0, -1]
