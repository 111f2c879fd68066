"""Reductions at ties, zeros, infinities and empty slices, and on integers; the usual errors."""

import math

import numpy as np
import pytest

import kael

INF, NAN = math.inf, math.nan


def leaf(values, dtype=None):
    return kael.tensor(values, dtype=dtype, requires_grad=True)


def gradient(out, x, upstream=None):
    """The gradient in x under ones, or under the given upstream gradient."""
    out.backward(np.ones(out.shape, out.dtype) if upstream is None else upstream)
    return x.grad.tolist()


class TestMeanExampleFromHand:
    def test_the_upstream_gradient_is_spread_and_divided(self):
        x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        out = x.mean(dim=1)
        assert out.tolist() == [2, 5]
        assert gradient(out, x, [3.0, 6.0]) == [[1, 1, 1], [2, 2, 2]]

    def test_nothing_is_saved(self):
        x = leaf([1.0, 2.0])
        out = x.mean()
        with kael.no_grad():
            x.add_(1.0)
        assert gradient(out, x) == [0.5, 0.5]


class TestMaxSplitsTiesEvenly:
    def test_over_all(self):
        x = leaf([3.0, 3.0, 1.0, 3.0])
        assert gradient(x.max(), x) == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])

    @pytest.mark.parametrize("name", ["max", "amax"])
    def test_over_a_dim(self, name):
        x = leaf([[1.0, 1.0], [2.0, 1.0]])
        assert gradient(getattr(kael, name)(x, dim=1), x, [4.0, 6.0]) == [[2, 2], [6, 0]]

    @pytest.mark.parametrize("name", ["min", "amin"])
    def test_of_the_smallest(self, name):
        x = leaf([[1.0, 1.0], [2.0, 1.0]])
        assert gradient(getattr(kael, name)(x, 0), x) == [[1, 0.5], [0, 0.5]]

    def test_float32_counts_ties_in_full(self):
        x = leaf(np.ones(3), "float32")
        gradient(x.max(), x)
        assert x.grad.numpy() == pytest.approx(np.full(3, 1 / 3), rel=1e-6)
        assert x.grad.dtype == np.float32

    def test_infinities_tie_too(self):
        x = leaf([-INF, -INF])
        assert gradient(x.max(), x) == [0.5, 0.5]

    def test_nan_is_the_result_and_gets_the_gradient(self):
        x = leaf([1.0, NAN, 2.0])
        out = x.max()
        assert math.isnan(out.item())
        assert gradient(out, x) == [0, 1, 0]


class TestProdWithZeros:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([2.0, 4.0, 3.0], [12, 6, 8]),
            ([2.0, 0.0, 3.0], [0, 6, 0]),
            ([2.0, 0.0, 0.0], [0, 0, 0]),
            ([0.0], [1]),
        ],
    )
    def test_three_cases(self, values, expected):
        x = leaf(values)
        assert gradient(x.prod(), x) == expected

    def test_each_slice_has_its_own_case(self):
        x = leaf([[2.0, 4.0], [0.0, 3.0], [0.0, 0.0]])
        assert gradient(x.prod(dim=1), x) == [[4, 2], [3, 0], [0, 0]]

    def test_entries_are_right_where_the_product_overflows(self):
        x = leaf([1e200, 1e200, 1e-200])
        assert gradient(x.prod(), x) == pytest.approx([1, 1, INF])


class TestNorm:
    def test_zero_gives_zero(self):
        x = leaf([0.0, 0.0, 0.0])
        assert gradient(kael.norm(x), x) == [0, 0, 0]
        x.zero_grad()
        assert gradient(kael.norm(x) ** 2, x) == [0, 0, 0]

    def test_large_and_small_values_are_scaled(self):
        x = leaf([1e200, 1.0, 1.0])
        out = kael.norm(x)
        assert out.item() == 1e200
        assert gradient(out, x) == pytest.approx([1, 1e-200, 1e-200], rel=1e-14)
        x = leaf([1e-200, 1e-200])
        out = kael.norm(x)
        assert out.item() == pytest.approx(1.4142135623730951e-200, rel=1e-15)
        assert gradient(out, x) == pytest.approx([math.sqrt(0.5)] * 2, rel=1e-14)

    @pytest.mark.parametrize(
        ("p", "value", "expected"),
        [
            (1, 7.0, [1, -1, 0]),
            (INF, 4.0, [0, -1, 0]),
            (3, 91 ** (1 / 3), [9 / 91 ** (2 / 3), -16 / 91 ** (2 / 3), 0]),
            (0, 2.0, [0, 0, 0]),
        ],
    )
    def test_other_exponents(self, p, value, expected):
        x = leaf([3.0, -4.0, 0.0])
        out = kael.norm(x, p)
        assert out.item() == pytest.approx(value)
        assert gradient(out, x) == pytest.approx(expected)


class TestMoments:
    def test_var_and_its_gradient(self):
        x = leaf([1.0, 2.0, 6.0])
        out = x.var(correction=0)
        assert out.item() == pytest.approx(14 / 3)
        assert gradient(out, x) == pytest.approx([-4 / 3, -2 / 3, 2])
        assert x.detach().var().item() == pytest.approx(7)

    def test_too_few_entries_are_nan(self):
        assert math.isnan(kael.tensor([1.0]).var().item())

    def test_std_of_equal_entries_has_no_slope(self):
        x = leaf([2.0, 2.0])
        out = x.std()
        assert out.item() == 0
        assert gradient(out, x) == [0, 0]


class TestLogsumexp:
    def test_of_log_zeros(self):
        x = leaf([-INF, -INF])
        out = kael.logsumexp(x, dim=0)
        assert out.item() == -INF
        assert gradient(out, x) == [0, 0]

    def test_one_finite_entry(self):
        x = leaf([-INF, 1.0])
        out = kael.logsumexp(x, dim=0)
        assert out.item() == 1
        assert gradient(out, x) == [0, 1]

    def test_huge_entries(self):
        x = leaf([1e4, 1e4])
        out = kael.logsumexp(x, dim=0)
        assert out.item() == pytest.approx(1e4 + math.log(2))
        assert gradient(out, x) == pytest.approx([0.5, 0.5])


class TestIntegersAndEmpty:
    @pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
    def test_integers_sum_to_int64(self, dtype):
        x = kael.tensor([1, 1, 1], dtype=dtype)
        for name, expected in (("sum", 3), ("prod", 1)):
            out = getattr(kael, name)(x)
            assert (out.item(), out.dtype) == (expected, np.int64)
        assert kael.cumsum(x, 0).dtype == np.int64

    def test_narrow_integers_do_not_wrap(self):
        assert kael.tensor([200, 200], dtype="uint8").sum().item() == 400

    @pytest.mark.parametrize("name", ["mean", "var", "std", "norm"])
    def test_what_integers_do_not_have_says_what_to_do(self, name):
        with pytest.raises(
            kael.KaelTypeError, match=rf"{name}: a floating tensor .* int64.*to\(kael.float64\)"
        ):
            getattr(kael, name)(kael.tensor([1, 2]))

    def test_nothing_sums_to_0_and_multiplies_to_1(self):
        empty = kael.zeros(2, 0)
        assert empty.sum(dim=1).tolist() == [0, 0]
        assert empty.prod(dim=1).tolist() == [1, 1]
        assert math.isnan(empty.mean().item())
        assert empty.logsumexp(dim=1).tolist() == [-INF, -INF]

    @pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "median"])
    def test_nothing_has_no_extreme(self, name):
        reduce = getattr(kael, name)
        with pytest.raises(
            kael.KaelValueError, match=rf"{name}: nothing .* shape \[2, 0\] is empty along dim 1"
        ):
            reduce(kael.zeros(2, 0), dim=1)
        assert reduce(kael.zeros(0, 2), dim=1).shape == (0,)

    def test_size_1_and_0_d(self):
        assert kael.tensor(3.0).sum(dim=0).item() == 3
        assert kael.tensor([[3.0]]).max(dim=-1, keepdim=True).tolist() == [[3]]

    def test_masks_have_no_history(self):
        x = leaf([1.0, 0.0])
        for name, expected in (("all", False), ("any", True), ("count_nonzero", 1)):
            out = getattr(kael, name)(x)
            assert out.item() == expected
            assert not out.requires_grad


class TestArguments:
    def test_max_of_two_tensors_is_maximum(self):
        a, b = leaf([1.0, 5.0]), leaf([2.0, 5.0])
        out = kael.max(a, b)
        assert out.tolist() == [2, 5]
        assert out.grad_fn.name == "MaximumBackward"
        assert gradient(out, a) == [0, 0.5]
        assert kael.min(a, other=b).tolist() == [1, 5]

    def test_several_dims(self):
        x = kael.ones(2, 3, 4)
        assert x.sum(dim=(0, -1)).tolist() == [8, 8, 8]
        assert x.sum(dim=[0, 1], keepdim=True).shape == (1, 1, 4)

    @pytest.mark.parametrize(
        ("call", "kind", "message"),
        [
            (
                lambda x: x.sum(2),
                kael.KaelIndexError,
                "sum: dim 2 is out of range for a 2-d tensor",
            ),
            (lambda x: x.sum((0, 0)), kael.KaelValueError, "sum: dim 0 appears twice"),
            (lambda x: x.sum(0.5), kael.KaelTypeError, "sum: dim must be an integer, got float"),
            (lambda x: x.sum(0, 1), kael.KaelTypeError, "sum: keepdim must be True or False"),
            (lambda x: x.sum(axis=0), kael.KaelTypeError, "sum has no argument 'axis'"),
        ],
    )
    def test_bad_arguments(self, call, kind, message):
        with pytest.raises(kind, match=message):
            call(kael.ones(2, 3))

    def test_strides_do_not_matter(self):
        values = np.arange(12.0).reshape(3, 4)
        x = leaf(values)
        out = (x.T[::2] * 1.0).max(dim=0)
        assert out.tolist() == values.T[::2].max(0).tolist()
        assert gradient(out, x) == [[0, 0, 1, 0]] * 3


@pytest.mark.parametrize("scale", [1e200, 1.0, 1e-200])
def test_std_neither_overflows_nor_underflows(scale):
    x = kael.tensor([[scale, 3 * scale], [5.0, 5.0]], requires_grad=True)
    out = x.std(dim=1)
    assert out.tolist() == pytest.approx([math.sqrt(2) * scale, 0], rel=1e-12, abs=0)
    out.backward([1.0, 1.0])
    half = math.sqrt(0.5)
    assert x.grad.tolist() == [pytest.approx([-half, half]), [0, 0]]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "var", "std", "norm", "logsumexp"])
@pytest.mark.parametrize("dim", [None, 0, -1])
def test_the_gradient_of_nothing_is_empty(name, shape, dim):
    x = kael.tensor(np.zeros(shape), requires_grad=True)
    getattr(kael, name)(x, dim=dim).sum().backward()
    assert x.grad.shape == shape
