"""Gather and scatter: what is read twice adds, what is written twice counts once."""

import numpy as np
import pytest

import kael


def leaf(values):
    return kael.tensor(values, requires_grad=True)


def gradient(out, x, upstream=None):
    out.backward(np.ones(out.shape) if upstream is None else upstream)
    return x.grad.tolist()


class TestIndexSelectAddsRepeatedIndices:
    def test_under_ones(self):
        x = leaf([1.0, 2.0, 3.0])
        out = x.index_select(0, kael.tensor([2, 0, 2]))
        assert out.tolist() == [3, 1, 3]
        assert gradient(out, x) == [1, 0, 2]

    def test_under_an_upstream_gradient(self):
        x = leaf([1.0, 2.0, 3.0])
        out = kael.index_select(x, 0, [2, 0, 2])
        assert gradient(out, x, [1.0, 10.0, 100.0]) == [10, 0, 101]

    def test_a_changed_index_stops_backward(self):
        x, index = leaf([1.0, 2.0]), kael.tensor([0, 1])
        out = x.index_select(0, index)
        index.fill_(0)
        with pytest.raises(kael.KaelError, match="modified by an inplace"):
            out.sum().backward()

    def test_no_index_at_all(self):
        x = leaf([1.0, 2.0])
        assert gradient(x.index_select(0, []), x) == [0, 0]


def test_gather_adds_what_it_read_twice():
    x = leaf([0.1])
    out = x.gather(0, kael.tensor([0, 0]))
    assert out.tolist() == [0.1, 0.1]
    assert gradient(out, x, [0.2, 0.3]) == [0.5]


def test_gather_of_a_smaller_index():
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    out = x.gather(1, [[2, 2]])
    assert out.tolist() == [[3, 3]]
    assert gradient(out, x, [[1.0, 10.0]]) == [[0, 0, 11], [0, 0, 0]]


def test_scatter_overwrites():
    x, src = leaf([1.0, 2.0, 3.0]), leaf([10.0, 20.0])
    out = x.scatter(0, kael.tensor([2, 0]), src)
    assert out.tolist() == [20, 2, 10]
    out.backward([1.0, 2.0, 3.0])
    assert (x.grad.tolist(), src.grad.tolist()) == ([0, 2, 0], [3, 1])


def test_scatter_to_one_place_twice_keeps_the_last():
    x, src = leaf([1.0, 2.0]), leaf([10.0, 20.0])
    out = x.scatter(0, kael.tensor([1, 1]), src)
    assert out.tolist() == [1, 20]
    out.backward([1.0, 5.0])
    assert (x.grad.tolist(), src.grad.tolist()) == ([1, 0], [0, 5])


@pytest.mark.parametrize(("name", "value"), [("scatter", [1, 7, 7]), ("scatter_add", [1, 9, 10])])
def test_a_number_is_written_everywhere(name, value):
    x, src = leaf([1.0, 2.0, 3.0]), leaf(7.0)
    out = getattr(kael, name)(x, 0, kael.tensor([1, 2]), src)
    assert out.tolist() == value
    assert gradient(out, src, [1.0, 2.0, 3.0]) == 5


def test_scatter_add_adds_at_one_place():
    x, src = leaf([1.0, 2.0]), leaf([[10.0, 20.0, 30.0]])
    out = kael.scatter_add(x.unsqueeze(0), 1, [[1, 1]], src)
    assert out.tolist() == [[1, 32]]
    out.backward([[1.0, 5.0]])
    assert (x.grad.tolist(), src.grad.tolist()) == ([1, 5], [[5, 5, 0]])


def test_index_add_and_alpha():
    x, source = leaf([1.0, 2.0]), leaf([10.0, 20.0, 30.0])
    out = x.index_add(0, [1, 0, 1], source, alpha=2)
    assert out.tolist() == [41, 82]
    out.backward([1.0, 5.0])
    assert (x.grad.tolist(), source.grad.tolist()) == ([1, 5], [10, 2, 10])


def test_take_and_take_along_dim():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    assert gradient(x.take([[3, 0], [3, -1]]), x) == [[1, 0], [0, 3]]
    out = x.detach().take_along_dim(kael.tensor([[1]]), dim=1)
    assert out.tolist() == [[2], [4]]
    assert x.detach().take_along_dim(kael.tensor([3, 3])).tolist() == [4, 4]


def test_positions_of_a_number():
    x = kael.tensor(3.0, requires_grad=True)
    assert kael.take(x, kael.tensor(0)).tolist() == 3
    out = kael.take_along_dim(x, kael.tensor(0), dim=0)
    assert out.shape == ()
    assert gradient(out, x) == 1


def test_one_hot():
    out = kael.one_hot(kael.tensor([0, 2]), 3)
    assert (out.tolist(), out.dtype) == ([[1, 0, 0], [0, 0, 1]], np.int64)
    with pytest.raises(kael.KaelIndexError, match="one_hot: class 3 is out of range for 3 classes"):
        kael.one_hot(kael.tensor([3]), 3)


def test_float32_stays_float32():
    x = kael.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    out = x.scatter_add(0, kael.tensor([0]), kael.tensor([1.0], dtype="float32"))
    assert out.dtype == np.float32
    out.sum().backward()
    assert x.grad.dtype == np.float32


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: x.gather(1, [[0, 3]]), kael.KaelIndexError, "gather: index 3 is out of range"),
        (lambda x: x.gather(1, [[-1]]), kael.KaelIndexError, "gather: index -1 is out of range"),
        (lambda x: x.gather(1, [0]), kael.KaelValueError,
         r"gather: index of shape \[1\] does not fit x of shape \[2, 3\]"),
        (lambda x: x.gather(1, [[0.5]]), kael.KaelTypeError, "gather: index must hold integers"),
        (lambda x: x.index_select(1, [3]), kael.KaelIndexError, "index_select: index 3"),
        (lambda x: x.index_select(1, [[0]]), kael.KaelValueError, "index must have 1 dim"),
        (lambda x: x.index_select(2, [0]), kael.KaelIndexError, "dim 2 is out of range"),
        (lambda x: x.index_add(0, [0], kael.ones(2, 3)), kael.KaelValueError,
         r"index_add: source has shape \[2, 3\].* need \[1, 3\]"),
        (lambda x: x.scatter(1, [[3]], 1.0), kael.KaelIndexError, "scatter: index 3"),
        (lambda x: x.scatter_add(1, [[0, 0]], kael.ones(1, 1)), kael.KaelValueError,
         r"scatter_add: src of shape \[1, 1\] does not cover index of shape \[1, 2\]"),
        (lambda x: x.take([6]), kael.KaelIndexError, "index 6 is out of range"),
    ],
)  # fmt: skip
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call(kael.ones(2, 3))
