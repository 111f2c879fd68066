"""Activations at their kinks, far out, and with arguments that are wrong."""

import math

import numpy as np
import pytest

from kael.engine.backward import backward
from kael.errors import KaelTypeError, KaelValueError
from kael.ops import REGISTRY
from kael.tensors import tensor


def both(name, x, **arguments):
    """Values and slopes."""
    leaf = tensor(np.asarray(x, float), requires_grad=True)
    out = REGISTRY[name](leaf, **arguments)
    backward(out, np.ones(leaf.shape))
    return out.tolist(), leaf.grad.tolist()


@pytest.mark.parametrize(
    ("name", "x", "arguments", "slopes"),
    [
        ("relu", [0.0], {}, [0]),
        ("leaky_relu", [0.0], {"negative_slope": 0.3}, [0.3]),
        ("relu6", [0.0, 6.0], {}, [0, 0]),
        ("hardtanh", [-1.0, 1.0], {}, [0, 0]),
        ("hardtanh", [-2.0, 3.0], {"min_val": -2, "max_val": 3}, [0, 0]),
        ("hardsigmoid", [-3.0, 3.0], {}, [0, 0]),
        ("hardswish", [-3.0, 3.0], {}, [0, 1]),
        ("elu", [0.0], {"alpha": 2.0}, [2]),
        ("celu", [0.0], {"alpha": 2.0}, [1]),
        ("selu", [0.0], {}, [1.7580993408473766]),
        ("softplus", [20.0, 20.000001], {}, [pytest.approx(1, abs=1e-8), 1]),
    ],
)
def test_at_the_kink(name, x, arguments, slopes):
    assert both(name, x, **arguments)[1] == slopes


@pytest.mark.parametrize(
    ("name", "values", "slopes"),
    [
        ("sigmoid", [0, 1], [0, 0]),
        ("logsigmoid", [-1000, 0], [1, 0]),
        ("softplus", [0, 1000], [0, 1]),
        ("silu", [0, 1000], [0, 1]),
        ("mish", [0, 1000], [0, 1]),
        ("gelu", [0, 1000], [0, 1]),
        ("elu", [-1, 1000], [0, 1]),
        ("celu", [-1, 1000], [0, 1]),
        ("softsign", [-1000 / 1001, 1000 / 1001], [1001**-2, 1001**-2]),
    ],
)
def test_far_out_nothing_overflows(name, values, slopes):
    got, gradient = both(name, [-1000.0, 1000.0])
    assert got == pytest.approx(values, abs=1e-300)
    assert gradient == pytest.approx(slopes, abs=1e-300)


def test_a_stopped_gradient_is_0_also_where_it_is_infinite():
    for name in ("relu", "relu6", "hardtanh", "hardsigmoid", "hardswish"):
        leaf = tensor([-5.0], requires_grad=True)
        backward(REGISTRY[name](leaf), [math.inf])
        assert leaf.grad.tolist() == [0], name


def test_gelu_takes_its_form_as_a_string_or_a_flag():
    exact, tanh = 1.9544997361036416, 1.9545976940877752
    for form, value in (("none", exact), (False, exact), ("tanh", tanh), (True, tanh)):
        assert both("gelu", 2.0, approximate=form)[0] == pytest.approx(value, rel=1e-14)
    with pytest.raises(KaelValueError, match="approximate is 'none' or 'tanh', got 'erf'"):
        both("gelu", 2.0, approximate="erf")
    with pytest.raises(KaelTypeError, match="beta takes no string"):
        both("softplus", 2.0, beta="1")


def test_logit_is_the_inverse_of_sigmoid():
    values, slopes = both("logit", [0.0, 0.5, 1.0])
    assert values == [-math.inf, 0, math.inf]
    assert slopes == [math.inf, 4, math.inf]
    limited, slopes = both("logit", [0.0, 0.5, 1.0], eps=0.25)
    assert limited == pytest.approx([-math.log(3), 0, math.log(3)])
    assert slopes == [0, 4, 0]


def test_integers():
    assert REGISTRY["relu"](tensor([-1, 2])).tolist() == [0, 2]
    assert REGISTRY["relu"](tensor([-1, 2])).dtype == np.int64
    assert REGISTRY["sigmoid"](tensor([0])).tolist() == [0.5]
