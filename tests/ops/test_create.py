"""Tensors made from a shape or a range."""

import numpy as np
import pytest

import kael


def test_every_generator_gives_the_default_dtype():
    made = (kael.arange(3), kael.linspace(0, 1, 3), kael.zeros(2), kael.eye(2))
    assert [tensor.dtype for tensor in made] == [kael.float64] * 4
    assert kael.arange(3).requires_grad_().requires_grad


def test_arange_gives_integers_where_they_are_asked_for():
    assert kael.arange(1, 6, 2, dtype="int64").tolist() == [1, 3, 5]
    assert kael.arange(3, dtype="int64").dtype == kael.int64


def test_a_like_takes_shape_and_dtype():
    x = kael.tensor([1.0, 2.0], dtype="float32")
    for made in (kael.zeros_like(x), kael.full_like(x, 3), kael.randn_like(x)):
        assert (made.shape, made.dtype) == ((2,), kael.float32)
    assert kael.full_like(x, 3).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: kael.full((2,), 300, dtype="uint8"), kael.KaelValueError, "300 does not fit"),
        (lambda: kael.full((2,), 1.5, dtype="int64"), kael.KaelValueError, "an integer"),
        (lambda: kael.full((2,), np.nan, dtype="int64"), kael.KaelValueError, "an integer"),
        (lambda: kael.full((2,), [1, 2]), kael.KaelTypeError, "full: fill_value"),
        (lambda: kael.full_like(kael.tensor([1]), 1.5), kael.KaelValueError, "an integer"),
        (lambda: kael.zeros(10**12, 10**6), kael.KaelValueError, "zeros: "),
        (lambda: kael.ones(2**62), kael.KaelValueError, "ones: "),
        (lambda: kael.zeros(-1), kael.KaelValueError, "zeros: sizes must not be negative"),
        (lambda: kael.zeros_like([1.0]), kael.KaelTypeError, "zeros_like takes a tensor, got list"),
        (lambda: kael.randn(2, dtype="int64"), kael.KaelTypeError, "randn: a floating dtype"),
        (lambda: kael.rand_like(kael.tensor([1])), kael.KaelTypeError, "rand: a floating dtype"),
        (lambda: kael.arange("a"), kael.KaelTypeError, "arange: end must be a finite number"),
        (lambda: kael.arange(0, np.inf), kael.KaelTypeError, "arange: end must be a finite number"),
        (lambda: kael.arange(3, 0), kael.KaelValueError, "arange: a step of 1 never leads"),
        (lambda: kael.arange(1e18), kael.KaelValueError, "arange: "),
        (lambda: kael.linspace(None, 1, 2), kael.KaelTypeError, "linspace: start must be a finite"),
        (lambda: kael.linspace(0, 1, 1.5), kael.KaelTypeError, "linspace: size must be an integer"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
