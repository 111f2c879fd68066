"""Calls: what plain arguments may be, and the dtype of Python numbers."""

import subprocess
import sys

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


def test_keywords_bind_by_name_in_any_order_and_again():
    for _ in range(2):  # what the first call learns serves the second
        assert kael.sum(X, keepdim=True, dim=1).tolist() == [[3], [7]]
        assert kael.sum(X, dim=1, keepdim=True).tolist() == [[3], [7]]
        assert kael.sum(dim=0, x=X).tolist() == [4, 6]
        assert kael.sum(X, dim=0).tolist() == [4, 6]
        assert kael.sum(X, 0, True).tolist() == [[4, 6]]
        assert kael.sum(X).tolist() == 10
        assert X.reshape(4).tolist() == X.reshape((2, 2)).reshape(-1).tolist() == [1, 2, 3, 4]
        assert X.reshape(1, 4).shape == X.reshape([1, 4]).shape == (1, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kael.sum(X, 0, True, 1), r"sum takes at most 3 arguments \(sum\(x.*\), got 4"),
        (lambda: kael.reshape(X, 4, shape=4), "reshape got two values for 'shape'"),
        (lambda: kael.softmax(X), r"softmax needs 'dim': softmax\(x, dim\)"),
        (lambda: kael.sum(X, axis=0), "sum has no argument 'axis'"),
    ],
)
def test_a_call_that_does_not_fit_says_how(call, message):
    for _ in range(2):  # a refused form is not remembered
        with pytest.raises(kael.KaelTypeError, match=message):
            call()


def test_operands_of_every_kind_bind_on_both_sides():
    double = kael.tensor([2.0], dtype="float64")
    listed = [1.0]
    for result in (double + 1, 1 + double, double + listed, np.float64(1) + double, double + 1.0):
        assert result.tolist() == [3]
    single = kael.tensor([2.0], dtype="float32")
    assert (single * 0.5).dtype == (0.5 * single).dtype == kael.float32
    assert kael.pow(2.0, exponent=single).tolist() == [4]


def test_calls_are_compiled_when_first_used():
    # In a process of its own: here other tests have used every operation.
    code = """
import kael.ops.math, kael.ops.reduce, kael.ops.nn
from kael.ops.registry import REGISTRY
compiled = lambda: [name for name, op in REGISTRY.items() if op.layouts]
assert len(REGISTRY) > 60 and compiled() == [], compiled()
import kael
kael.tanh(kael.tensor([1.0]))
print(compiled())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['tanh']\n"


def test_numbers_beyond_a_floating_dtype():
    single = kael.tensor([1.0], dtype="float32")
    assert (single + 1e300).tolist() == [np.inf]
    with pytest.raises(kael.KaelValueError, match="does not fit into float32"):
        single + 10**400


@pytest.mark.parametrize(
    "call",
    [
        lambda x: kael.sum([x, x]),
        lambda x: kael.exp([[x, 1.0]]),
        lambda x: x * [x, x],
        lambda x: kael.where(x > 0, [x, x], 0.0),
        lambda x: kael.sum(kael.split(x, 1)),
    ],
)
def test_a_list_of_tensors_with_history_is_no_tensor(call):
    x = kael.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(kael.KaelTypeError, match="its history would be lost"):
        call(x)


def test_a_list_of_tensors_without_history_is_a_constant():
    assert kael.sum([kael.tensor(1.0), 2.0]).item() == 3.0
