"""Comparisons, logic, tests for special values and rounding: values, dtypes, no history."""

import math

import numpy as np
import pytest

from kael.errors import KaelTypeError
from kael.ops import REGISTRY, lookup
from kael.tensors import tensor

NAN, INF = math.nan, math.inf
FAMILY = [op for op in REGISTRY.values() if op.family == "compare"]


@pytest.mark.parametrize("op", FAMILY, ids=[op.name for op in FAMILY])
def test_nothing_here_has_history(op):
    assert not op.differentiable
    assert op.vjp_text == ("",) * len(op.inputs)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("eq", [False, True, False, False]),
        ("ne", [True, False, True, True]),
        ("lt", [True, False, False, False]),
        ("le", [True, True, False, False]),
        ("gt", [False, False, True, False]),
        ("ge", [False, True, True, False]),
        ("less_equal", [True, True, False, False]),
        ("not_equal", [True, False, True, True]),
    ],
)
def test_comparisons(name, values):
    x = tensor([0.0, 1.0, 2.0, NAN], requires_grad=True)
    out = lookup(name)(x, 1)
    assert out.tolist() == values
    assert out.dtype == np.bool_
    assert not out.requires_grad


def test_comparisons_promote_and_broadcast():
    assert REGISTRY["lt"](tensor([[1], [2]]), tensor([1.5, 2.5])).tolist() == [
        [True, True],
        [False, True],
    ]
    assert REGISTRY["gt"](tensor([1, 2]), 1.5).tolist() == [False, True]


def test_logic_of_truth_values():
    x, other = tensor([0.0, 2.0, NAN]), tensor([1, 0, 1])
    assert REGISTRY["logical_and"](x, other).tolist() == [False, False, True]
    assert REGISTRY["logical_or"](x, other).tolist() == [True, True, True]
    assert REGISTRY["logical_xor"](x, other).tolist() == [True, True, False]
    assert REGISTRY["logical_not"](x).tolist() == [True, False, False]


def test_logic_of_bits():
    assert REGISTRY["bitwise_and"](tensor([12, -1]), 10).tolist() == [8, 10]
    assert REGISTRY["bitwise_or"](tensor([12]), tensor([10])).tolist() == [14]
    assert REGISTRY["bitwise_xor"](tensor([12]), tensor([10])).tolist() == [6]
    assert REGISTRY["bitwise_not"](tensor([0, 5])).tolist() == [-1, -6]
    assert REGISTRY["bitwise_not"](tensor([True, False])).tolist() == [False, True]
    with pytest.raises(KaelTypeError, match="combine booleans or integers, not float64"):
        REGISTRY["bitwise_and"](tensor([True]), tensor([1.0]))


def test_special_values():
    x = tensor([NAN, INF, -INF, 0.0])
    assert REGISTRY["isnan"](x).tolist() == [True, False, False, False]
    assert REGISTRY["isinf"](x).tolist() == [False, True, True, False]
    assert REGISTRY["isfinite"](x).tolist() == [False, False, False, True]
    assert REGISTRY["isnan"](tensor([1, 2])).tolist() == [False, False]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("floor", [-3, -1, 0, 0, 2, 2]),
        ("ceil", [-2, 0, 0, 1, 3, 3]),
        ("trunc", [-2, 0, 0, 0, 2, 2]),
        ("round", [-2, 0, 0, 0, 2, 3]),
        ("sign", [-1, -1, 0, 1, 1, 1]),
    ],
)
def test_rounding(name, values):
    assert REGISTRY[name](tensor([-2.5, -0.5, 0.0, 0.5, 2.5, 2.6])).tolist() == values


def test_rounding_to_places():
    assert REGISTRY["round"](tensor([0.25, 1.234]), decimals=1).tolist() == [0.2, 1.2]
    assert REGISTRY["round"](tensor([1250, 1350]), decimals=-2).tolist() == [1200, 1400]


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "sign"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_whole_numbers_stay_what_they_are(name, dtype):
    x = tensor([0, 1], dtype)
    out = REGISTRY[name](x)
    assert out.dtype == x.dtype
    assert out.tolist() == x.tolist()


def test_whole_division():
    divide = REGISTRY["floor_divide"]
    assert divide(tensor([7, -7]), 2).tolist() == [3, -4]
    assert divide(tensor([7.5, -7.5]), 2).tolist() == [3, -4]
    assert divide(tensor([5.0, -5.0]), 0.0).tolist() == [INF, -INF]
