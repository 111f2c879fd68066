"""Calls: what plain arguments may be, and the dtype of Python numbers."""

import numpy as np
import pytest

import kael

X = kael.tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: kael.addcmul(X, X, X, value=1j),
        lambda: kael.norm(X, p=np.complex128(1j)),
        lambda: kael.sum(X, dim={1: 2}),
        lambda: kael.sum(X, dim=set()),
        lambda: kael.sum(X, keepdim=np.array([1, 2])),
        lambda: kael.topk(X, 1, largest={}),
        lambda: kael.gelu(X, approximate=b"none"),
        lambda: kael.huber_loss(X, X, delta=None),
        lambda: kael.masked_fill(X, X > 2, [[1], [1, 2]]),
    ],
)
def test_a_plain_argument_is_a_plain_value(call):
    with pytest.raises(kael.KaelTypeError, match="must be a"):
        call()


def test_a_number_beyond_every_size_is_refused():
    with pytest.raises(kael.KaelValueError, match=r"reshape: size .* is beyond every size"):
        X.reshape(10**30)
    with pytest.raises(kael.KaelValueError, match=r"sum: dim .* is beyond every size"):
        X.sum(dim=10**30)


def test_a_list_says_no_form_of_gelu():
    with pytest.raises(kael.KaelValueError, match=r"gelu: approximate .* got \['tanh'\]"):
        kael.gelu(X, approximate=["tanh"])


def test_numbers_follow_the_default_dtype_as_it_changes():
    whole = kael.tensor([1, 2])
    assert (whole * 0.375).dtype == kael.float64
    kael.set_default_dtype("float32")
    try:
        assert (whole * 0.375).dtype == kael.float32
    finally:
        kael.set_default_dtype("float64")
    assert (whole * 0.375).dtype == kael.float64
