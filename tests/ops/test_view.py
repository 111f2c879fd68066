"""Views share memory, copies do not; shapes, dims and the errors that name them."""

import numpy as np
import pytest

import kael


def grid():
    return kael.tensor(np.arange(6.0).reshape(2, 3))


def gradient(out, x, upstream):
    out.backward(upstream)
    return x.grad.tolist()


VIEWS = {
    "view": lambda x: x.view(3, 2),
    "reshape": lambda x: x.reshape(6),
    "transpose": lambda x: x.transpose(0, 1),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "permute": lambda x: x.permute(1, 0),
    "squeeze": lambda x: x.squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "expand": lambda x: x.expand(4, 2, 3),
    "slice": lambda x: x.slice(1, 1, 3),
    "narrow": lambda x: x.narrow(1, 0, 2),
    "select": lambda x: x.select(0, 1),
    "select to 0-d": lambda x: x[1][2],
    "getitem": lambda x: x[:, ::2],
    "split": lambda x: x.split(2, dim=1)[0],
    "unbind": lambda x: x.unbind()[1],
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "flatten": lambda x: x.flatten(),
    "to its own dtype": lambda x: x.to(kael.float64),
    "contiguous": lambda x: x.contiguous(),
}
COPIES = {
    "clone": lambda x: x.clone(),
    "reshape of a transpose": lambda x: x.T.reshape(6),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "repeat": lambda x: x.repeat(1, 1),
    "einsum": lambda x: kael.einsum("ij->ji", x),
    "index": lambda x: x[[0, 1]],
    "pad": lambda x: kael.pad(x, ()),
    "to another dtype": lambda x: x.to("float32"),
    "contiguous of a transpose": lambda x: x.T.contiguous(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_sees_writes_to_its_base(name):
    x = grid()
    seen = VIEWS[name](x)
    x.zero_()
    assert seen.version == 1
    assert not seen.numpy().any()


@pytest.mark.parametrize("name", ["select to 0-d", "getitem", "diagonal", "transpose", "unbind"])
def test_a_write_to_a_view_reaches_its_base(name):
    x = grid()
    seen = VIEWS[name](x)
    seen.fill_(9.0)
    assert x.version == 1
    assert (x.numpy() == 9).sum() == seen.numel()


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_does_not_see_writes(name):
    x = grid()
    copy = COPIES[name](x)
    before = copy.tolist()
    x.fill_(-1.0)
    assert copy.version == 0
    assert copy.tolist() == before


def test_contiguous_makes_rows():
    assert grid().T.contiguous().is_contiguous()


def test_slice_copies_the_gradient_into_zeros():
    x = kael.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    assert gradient(x.slice(0, 1, 3), x, [7.0, 9.0]) == [0, 7, 9, 0]


class TestSplitAccumulatesPieces:
    def test_in_another_order(self):
        x = kael.tensor([1.0, 2.0, 3.0, 4.0, 5.0], requires_grad=True)
        first, second, third = x.split(2)
        assert third.tolist() == [5]
        assert first.grad_fn.name == "SliceBackward"
        out = kael.cat([third, first, second])
        assert gradient(out, x, [1.0, 2.0, 3.0, 4.0, 5.0]) == [2, 3, 4, 5, 1]

    def test_by_sizes_and_chunks(self):
        x = kael.tensor(np.arange(7.0))
        assert [p.numel() for p in x.split([1, 6])] == [1, 6]
        assert [p.numel() for p in x.chunk(3)] == [3, 3, 1]
        with pytest.raises(kael.KaelValueError, match=r"split: sizes \[1, 2\] must sum to 7"):
            x.split([1, 2])


def test_dims_0_and_minus_1_of_a_number():
    x = kael.tensor(3.0, requires_grad=True)
    for view in (x.transpose(0, -1), x.movedim(-1, 0)):
        x.zero_grad()
        assert gradient(view, x, 2.0) == 2
        assert view.shape == ()


def test_chunks_of_an_empty_dim():
    assert [piece.shape for piece in kael.zeros(2, 0).chunk(3, dim=1)] == [(2, 0)] * 3


def test_permute_gives_the_gradient_the_inverse_order():
    x = kael.tensor(np.arange(24.0).reshape(2, 3, 4), requires_grad=True)
    out = x.permute(2, 0, 1)
    assert out.shape == (4, 2, 3)
    upstream = np.arange(24.0).reshape(4, 2, 3)
    assert gradient(out, x, upstream) == upstream.transpose(1, 2, 0).tolist()


def test_expand_sums_the_gradient():
    x = kael.tensor([[1.0], [2.0]], requires_grad=True)
    assert gradient(x.expand(2, 3), x, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) == [[6], [15]]


def test_repeat_and_unfold_add_what_was_read_twice():
    x = kael.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert gradient(x.repeat(2), x, [1.0, 2.0, 3.0, 10.0, 20.0, 30.0]) == [11, 22, 33]
    x.zero_grad()
    assert gradient(x.unfold(0, 2, 1), x, [[1.0, 2.0], [10.0, 20.0]]) == [1, 12, 20]


def test_to_gives_the_gradient_the_dtype_of_its_input():
    x = kael.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    out = x.to(kael.float64)
    assert out.dtype == np.float64
    gradient(out, x, [1.0, 2.0])
    assert x.grad.dtype == np.float32
    assert not x.to("int64").requires_grad


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x.narrow(0, 0, 1), "SliceBackward"),
        (lambda x: x[0:1], "SliceBackward"),
        (lambda x: x[0], "SelectBackward"),
        (lambda x: x.select(0, 0), "SelectBackward"),
        (lambda x: x[:, None], "UnsqueezeBackward"),
        (lambda x: x.T, "TransposeBackward"),
        (lambda x: x.mT, "TransposeBackward"),
        (lambda x: x.view(6), "ViewBackward"),
        (lambda x: x.flatten(), "ReshapeBackward"),
    ],
)
def test_node_names(call, name):
    assert call(grid().requires_grad_()).grad_fn.name == name


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: x.reshape(4, 2), kael.KaelValueError,
         r"reshape: shape \[2, 3\] has 6 elements, which do not fill \[4, 2\]"),
        (lambda x: x.reshape(-1, -1), kael.KaelValueError, "at most one may be -1"),
        (lambda x: x.T.view(6), kael.KaelValueError, r"view: .*without a copy; use reshape"),
        (lambda x: x.permute(0, 0), kael.KaelValueError, "must name each of the 2 dims"),
        (lambda x: x.transpose(0, 2), kael.KaelIndexError, "transpose: dim 2 is out of range"),
        (lambda x: x.expand(3, 3), kael.KaelValueError,
         r"expand: shape \[2, 3\] does not expand to \[3, 3\]"),
        (lambda x: x.select(1, 3), kael.KaelIndexError,
         "select: index 3 is out of range for dim 1 with size 3"),
        (lambda x: x.narrow(1, 2, 2), kael.KaelIndexError,
         "narrow: start 2 and length 2 reach out of dim 1 with size 3"),
        (lambda x: x.slice(0, 0, 2, -1), kael.KaelValueError, "slice: step must be greater than 0"),
        (lambda x: x.unflatten(1, (2, -1)), kael.KaelValueError, "unflatten"),
        (lambda x: x.to("complex64"), kael.KaelTypeError, "complex64"),
        (lambda x: x[0, 0].unfold(0, 1, 1), kael.KaelIndexError, "unfold: a 0-d tensor has no dim"),
        (lambda x: kael.tensor(1.0)[0], kael.KaelIndexError, "1 dims are indexed"),
    ],
)  # fmt: skip
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call(grid())
