"""SumToShape: the reduction that undoes broadcasting."""

import pytest

import kael
from kael.autograd import sum_to_shape

G = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ([2, 3], G),
        ([3], [5, 7, 9]),
        ([1, 3], [[5, 7, 9]]),
        ([2, 1], [[6], [15]]),
        ([1, 1], [[21]]),
        ([], 21),
    ],
)
def test_LeadingAndStretchedDimensions(target, expected):
    reduced = sum_to_shape(kael.tensor(G), target)
    assert reduced.tolist() == expected
    assert reduced.shape == tuple(target)


@pytest.mark.parametrize("target", [(2, 2, 3), (2,), (4, 3), (2, 2)])
def test_TooFewDimensions(target):
    with pytest.raises(kael.KaelValueError, match=r"cannot reduce gradient of shape \[2, 3\] to"):
        sum_to_shape(kael.tensor(G), target)


def test_WithoutBroadcastingTheArgumentComesBack():
    gradient = kael.tensor(G)
    assert sum_to_shape(gradient, (2, 3)) is gradient


def test_IsRecordedLikeTheSumsItIsMadeOf():
    x = kael.tensor(G, requires_grad=True)
    sum_to_shape(x, (1,)).backward(kael.tensor([2.0]))
    assert x.grad.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_KeepsFloat32():
    reduced = sum_to_shape(kael.tensor(G, dtype="float32"), (3,))
    assert str(reduced.dtype) == "float32"


def test_BroadcastMultiply():
    a = kael.tensor(G, requires_grad=True)
    b = kael.tensor([10.0, 20.0, 30.0], requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.tolist() == [[10, 20, 30], [10, 20, 30]]
    assert b.grad.tolist() == [5, 7, 9]


@pytest.mark.parametrize(
    ("left", "right"), [((4, 1), (3,)), ((), (2, 2)), ((2, 1, 3), (5, 1)), ((1,), (0,))]
)
def test_GradientsHaveTheirInputsShape(left, right):
    a, b = kael.ones(*left), kael.ones(*right)
    for tensor in (a, b):
        tensor.requires_grad_()
    (a * b).sum().backward()
    assert (a.grad.shape, b.grad.shape) == (left, right)
    assert a.grad.sum().item() == b.grad.sum().item() == (a * b).numel()
