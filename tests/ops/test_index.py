"""Indexing as PyTorch reads it, one node for each item that changes something; where, cat, pad."""

import math

import numpy as np
import pytest

import kael


def leaf(values):
    return kael.tensor(values, requires_grad=True)


def nodes(out):
    """The names from a result down to its leaf."""
    names, node = [], out.grad_fn
    while node is not None and node.name != "AccumulateGrad":
        names.append(node.name)
        node = node.inputs[0]
    return names


def gradient(out, x, upstream=None):
    out.backward(np.ones(out.shape) if upstream is None else upstream)
    return x.grad.tolist()


VALUES = np.arange(24.0).reshape(2, 3, 4)
INDEX = np.array([2, 0, 2])


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ((0,), ["SelectBackward"]),
        ((-1, 2), ["SelectBackward"] * 2),
        ((slice(None), slice(1, 3)), ["SliceBackward"]),
        ((..., None, 2), ["SelectBackward", "UnsqueezeBackward"]),
        ((slice(None), INDEX), ["IndexBackward"]),
        ((slice(1, None), slice(1, None), [3, 0]), ["IndexBackward", *["SliceBackward"] * 2]),
        (([0, 1], slice(None), [3, 0]), ["IndexBackward"]),
        ((VALUES > 5,), ["IndexBackward"]),
        ((slice(None), np.array([True, False, True])), ["IndexBackward"]),
        ((None, ..., slice(0, 4, 2)), ["SliceBackward", "UnsqueezeBackward"]),
        ((slice(0, 2), slice(None), ...), []),
    ],
)
def test_values_and_nodes(items, expected):
    x = leaf(VALUES)
    out = x[items]
    np.testing.assert_array_equal(out.numpy(), VALUES[items])
    assert nodes(out) == expected
    counts = np.zeros(VALUES.shape)
    np.add.at(counts, items, 1.0)
    assert gradient(out, x) == counts.tolist()


def test_an_integer_selects_before_index_arrays_are_read():
    """As in PyTorch; NumPy would read the integer together with the arrays."""
    assert kael.tensor(VALUES)[0, :, [3, 1]].tolist() == VALUES[0][:, [3, 1]].tolist()


def test_a_0_d_index_tensor_selects():
    x = leaf(VALUES)
    assert x[kael.tensor(1)].grad_fn.name == "SelectBackward"
    assert x[kael.tensor(1)].tolist() == VALUES[1].tolist()


def test_repeated_positions_add():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    out = x[[0, 0, 1], [1, 1, 0]]
    assert gradient(out, x, [1.0, 10.0, 100.0]) == [[0, 11], [100, 0]]


def test_negative_positions_count_from_the_end():
    x = leaf([1.0, 2.0, 3.0])
    out = x[[-1, 0]]
    assert out.tolist() == [3, 1]
    assert gradient(out, x) == [1, 0, 1]


def test_a_write_to_the_index_does_not_move_the_gradient():
    x, index = leaf([1.0, 2.0, 3.0]), kael.tensor([0, 0])
    out = x[index]
    index.fill_(2)
    assert gradient(out, x) == [2, 0, 0]


def test_empty_selections():
    x = leaf([1.0, 2.0])
    assert x[[]].shape == (0,)
    assert x[x > 5].shape == (0,)
    assert x[5:].shape == (0,)
    assert gradient(x[[]], x) == [0, 0]


@pytest.mark.parametrize(
    ("items", "kind", "message"),
    [
        (2, kael.KaelIndexError, "select: index 2 is out of range for dim 0 with size 2"),
        ((0, 0, 0, 0), kael.KaelIndexError, r"4 dims are indexed, but shape \[2, 3, 4\] has 3"),
        ((..., ...), kael.KaelIndexError, "only one ellipsis"),
        ([0, 5], kael.KaelIndexError, "getitem: index 5 is out of range for dim 0 with size 2"),
        ((slice(None), [0, -4]), kael.KaelIndexError, "index -4 is out of range for dim 1"),
        ([True, False, True], kael.KaelIndexError, r"a mask of shape \[3\] does not match"),
        (([0, 1], [0, 1, 2]), kael.KaelIndexError, r"\[2\] and \[3\] .* do not broadcast"),
        (1.5, kael.KaelTypeError, "got float"),
        ("a", kael.KaelTypeError, "got str"),
        ([0.5], kael.KaelTypeError, "holds integers or booleans, got float64"),
        (slice(None, None, -1), kael.KaelValueError, "step must be greater than 0, got -1"),
        (slice(0.5, None), kael.KaelTypeError, "slice: start must be an integer, got float"),
    ],
)
def test_errors_of_an_index(items, kind, message):
    with pytest.raises(kind, match=message):
        kael.tensor(VALUES)[items]


def test_all_of_a_tensor_has_no_history_with_grad_mode_off():
    x = kael.tensor([1.0, 2.0], requires_grad=True)
    with kael.no_grad():
        for whole in (x[:], x[...]):
            assert not whole.requires_grad
            assert whole.is_leaf
    assert x[:].requires_grad


class TestWhere:
    def test_the_hidden_branch_gets_0_whatever_it_holds(self):
        x = leaf([math.nan, 2.0])
        out = kael.where(kael.tensor([False, True]), x, 7.0)
        assert out.tolist() == [7, 2]
        assert gradient(out, x, [math.inf, 3.0]) == [0, 3]

    def test_nan_behind_the_hidden_branch_is_kept(self):
        """The slope of log at 0 is infinite: 0 * inf is the arithmetic of the formula."""
        x = leaf([0.0, 2.0, 3.0])
        out = kael.where(x > 2, kael.log(x), 2 * x).sum()
        assert out.item() == pytest.approx(5.09861228866811)
        out.backward()
        assert math.isnan(x.grad.tolist()[0])
        assert x.grad.tolist()[1:] == pytest.approx([2, 1 / 3])

    def test_both_sides_broadcast(self):
        x, y = leaf([1.0, 2.0, 3.0]), leaf([[10.0], [20.0]])
        out = kael.where(kael.tensor([[True], [False]]), x, y)
        assert out.tolist() == [[1, 2, 3], [20, 20, 20]]
        out.backward([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        assert (x.grad.tolist(), y.grad.tolist()) == ([1, 2, 3], [[0], [15]])

    def test_the_condition_must_be_a_mask(self):
        with pytest.raises(kael.KaelTypeError, match="where: condition must be boolean"):
            kael.where(kael.tensor([1.0]), 1.0, 2.0)

    def test_float32_stays_beside_a_number(self):
        x = kael.tensor([1.0], dtype="float32")
        assert kael.where(x > 0, x, 0.5).dtype == np.float32


class TestMasks:
    def test_fill_cuts_the_gradient(self):
        x = leaf([1.0, 2.0, 3.0])
        out = x.masked_fill(kael.tensor([True, False, True]), -math.inf)
        assert out.tolist() == [-math.inf, 2, -math.inf]
        assert gradient(out, x, [math.inf, 5.0, 6.0]) == [0, 5, 0]

    def test_select_broadcasts(self):
        x = leaf([1.0, 2.0])
        out = x.masked_select(kael.tensor([[True, False], [True, True]]))
        assert out.tolist() == [1, 1, 2]
        assert gradient(out, x, [1.0, 2.0, 4.0]) == [3, 4]

    def test_a_fill_that_does_not_fit(self):
        with pytest.raises(kael.KaelTypeError, match=r"masked_fill: 0.5 does not fit into int64"):
            kael.tensor([1, 2]).masked_fill(kael.tensor([True, False]), 0.5)


class TestJoining:
    def test_cat_gives_each_its_range(self):
        a, b = leaf([[1.0]]), leaf([[2.0, 3.0]])
        out = kael.cat([a, b], dim=-1)
        assert out.grad_fn.name == "CatBackward"
        out.backward([[10.0, 20.0, 30.0]])
        assert (a.grad.tolist(), b.grad.tolist()) == ([[10]], [[20, 30]])

    def test_one_tensor_twice_adds(self):
        a = leaf([1.0])
        assert gradient(kael.cat([a, a]), a, [1.0, 10.0]) == [11]

    def test_mixed_precision_and_integers(self):
        a = kael.tensor([1.0], dtype="float32", requires_grad=True)
        out = kael.cat([a, kael.tensor([2.0]), kael.tensor([3])])
        assert (out.tolist(), out.dtype) == ([1, 2, 3], np.float64)
        gradient(out, a)
        assert a.grad.dtype == np.float32

    def test_stack_makes_a_dim(self):
        a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        out = kael.stack([a, b], dim=1)
        assert out.tolist() == [[1, 3], [2, 4]]
        out.backward([[1.0, 2.0], [3.0, 4.0]])
        assert (a.grad.tolist(), b.grad.tolist()) == ([1, 3], [2, 4])

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: kael.cat([kael.ones(2, 3), kael.ones(2, 4)]),
             r"cat: shapes \[2, 3\] and \[2, 4\] do not match"),
            (lambda: kael.cat([kael.tensor(1.0)]), "cat: 0-d tensors .* use stack"),
            (lambda: kael.cat([]), "cat needs at least one tensor"),
            (lambda: kael.stack([kael.ones(2), kael.ones(3)]),
             r"stack: shapes \[2\] and \[3\] do not match"),
        ],
    )  # fmt: skip
    def test_errors(self, call, message):
        with pytest.raises(kael.KaelValueError, match=message):
            call()


class TestPad:
    def test_last_dim_first(self):
        x = leaf([[1.0, 2.0]])
        out = kael.pad(x, (1, 0, 0, 1), value=9.0)
        assert out.tolist() == [[9, 1, 2], [9, 9, 9]]
        assert gradient(out, x, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) == [[2, 3]]

    def test_negative_amounts_cut(self):
        x = leaf([1.0, 2.0, 3.0])
        out = kael.pad(x, (-1, 1))
        assert out.tolist() == [2, 3, 0]
        assert gradient(out, x, [1.0, 2.0, 3.0]) == [0, 1, 2]

    @pytest.mark.parametrize(
        ("mode", "value", "slope"),
        [
            ("reflect", [2, 1, 2, 3, 2], [1, 3, 1]),
            ("replicate", [1, 1, 2, 3, 3], [2, 1, 2]),
            ("circular", [3, 1, 2, 3, 1], [2, 1, 2]),
        ],
    )
    def test_repeating_modes_add(self, mode, value, slope):
        x = leaf([1.0, 2.0, 3.0])
        out = kael.pad(x, (1, 1), mode)
        assert out.tolist() == value
        assert gradient(out, x) == slope

    @pytest.mark.parametrize(
        ("amounts", "mode", "message"),
        [
            ((1,), "constant", "two amounts for each padded dim"),
            ((3, 0), "reflect", "3 and 0 do not fit a dim of size 3"),
            ((-2, -2), "constant", "-2 and -2 do not fit"),
            ((1, 1), "mirror", "mode 'mirror' is unknown"),
        ],
    )
    def test_errors(self, amounts, mode, message):
        with pytest.raises(kael.KaelValueError, match=message):
            kael.pad(kael.ones(3), amounts, mode)
