"""Values of kernels at points where they are known, in both tiers where there are two."""

from __future__ import annotations

from collections.abc import Iterator

import mpmath
import numpy as np
import pytest

from kael import KaelIndexError, kernels

INF = np.inf


@pytest.fixture(params=["numpy", "numba"], autouse=True)
def tier(request: pytest.FixtureRequest) -> Iterator[None]:
    with kernels.only(request.param):
        yield


def test_softmax() -> None:
    x = np.array([1.0, 2.0, 3.0])
    y = kernels.softmax(x, 0)
    np.testing.assert_allclose(y, [0.09003057317038046, 0.24472847105479767, 0.6652409557748219])
    gradient = kernels.softmax_backward(np.array([1.0, 0.0, 0.0]), y, 0)
    np.testing.assert_allclose(gradient.round(4), [0.0819, -0.0220, -0.0599])
    assert np.isnan(kernels.softmax(np.array([-INF, -INF]), 0)).all()
    np.testing.assert_array_equal(kernels.softmax(np.array([1e4, -1e4]), 0), [1, 0])


def test_logsumexp_of_infinities() -> None:
    empty = np.array([-INF, -INF])
    assert kernels.logsumexp(empty, 0) == -INF
    np.testing.assert_array_equal(
        kernels.logsumexp_backward(np.array(1.0), empty, np.array(-INF), 0), [0, 0]
    )
    half = np.array([-INF, 1.0])
    assert kernels.logsumexp(half, 0) == 1
    np.testing.assert_array_equal(
        kernels.logsumexp_backward(np.array(1.0), half, np.array(1.0), 0), [0, 1]
    )
    assert kernels.logsumexp(np.array([INF, 1.0]), 0) == INF
    assert np.isnan(kernels.logsumexp(np.array([np.nan, INF]), 0))
    assert kernels.logsumexp(np.zeros((0,)), 0) == -INF
    np.testing.assert_allclose(kernels.logsumexp(np.array([2000.0, 1999.0]), 0), 2000.3132616875182)


def test_cross_entropy() -> None:
    logits, target = np.array([[2.0, 1.0, 0.1]]), np.array([0])
    np.testing.assert_allclose(kernels.cross_entropy(logits, target), [0.41703001627783354])
    gradient = kernels.cross_entropy_backward(np.array([1.0]), logits, target)
    np.testing.assert_allclose(gradient.round(4), [[-0.3410, 0.2424, 0.0986]])
    for wrong in (-1, 3):
        with pytest.raises(KaelIndexError, match=f"target {wrong} is out of range for 3 classes"):
            kernels.cross_entropy(logits, np.array([wrong]))


def test_standardize_has_mean_0_and_variance_1() -> None:
    y = kernels.standardize(np.random.default_rng(0).standard_normal((3, 4, 5)), 2, 0.0)
    np.testing.assert_allclose(y.mean(axis=(1, 2)), 0, atol=1e-15)
    np.testing.assert_allclose(y.var(axis=(1, 2)), 1)


@pytest.mark.parametrize(
    ("x", "others"),
    [
        ([2.0, 4.0, 3.0], [12, 6, 8]),
        ([2.0, 0.0, 3.0], [0, 6, 0]),
        ([2.0, 0.0, 0.0], [0, 0, 0]),
        ([1e200, 1e200, 1e-200], [1, 1, INF]),
        ([5.0], [1]),
        ([], []),
    ],
)
def test_prod_backward(x: list[float], others: list[float]) -> None:
    np.testing.assert_allclose(kernels.prod_backward(np.array(1.0), np.array(x)), others)


def test_norm_neither_overflows_nor_underflows() -> None:
    for x, value, gradient in (
        ([1e200, 1.0, 1.0], 1e200, [1, 1e-200, 1e-200]),
        ([1e-200, 1e-200], 1.4142135623730951e-200, [0.7071067811865475] * 2),
        ([3e-320, 4e-320], 5e-320, [0.6, 0.8]),
        ([0.0, 0.0], 0, [0, 0]),
        ([INF, 1.0], INF, [np.nan, 0]),
    ):
        out = kernels.norm(np.array(x))
        np.testing.assert_allclose(out, value, rtol=1e-3 if 0 < value < 1e-300 else 1e-15)
        back = kernels.norm_backward(np.array(1.0), np.array(x), out)
        np.testing.assert_allclose(back, gradient, rtol=1e-3 if 0 < value < 1e-300 else 1e-15)


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, INF, -INF])
def test_norm_of_every_order(p: float) -> None:
    x = np.array([[3.0, -4.0, 1.0], [1.0, 1.0, -2.0]])
    want = [np.linalg.norm(row, p) for row in x]
    np.testing.assert_allclose(kernels.norm(x, p, 1), want)


@pytest.mark.parametrize("size", [0, 1, 2, 33, 1000])
def test_trace_norm(size: int) -> None:
    x = np.random.default_rng(size).standard_normal(size)
    for scale in (1.0, 1e200, 1e-200):
        assert kernels.trace_norm(x * scale) == pytest.approx(np.linalg.norm(x) * scale, rel=1e-14)
    assert kernels.trace_norm(x.astype(np.float32)) == pytest.approx(np.linalg.norm(x), rel=1e-6)


def test_cumsum_backward() -> None:
    g = np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_array_equal(kernels.cumsum_backward(g, 0), [1111, 1110, 1100, 1000])


def test_ties_share() -> None:
    x = np.array([3.0, 3.0, 1.0, 3.0])
    back = kernels.extreme_backward(np.array(1.0), x, np.array(3.0))
    np.testing.assert_array_equal(back, [1 / 3, 1 / 3, 0, 1 / 3])


def test_repeated_indices_add() -> None:
    g = np.array([1.0, 10.0, 100.0])
    index = np.array([2, 0, 2])
    np.testing.assert_array_equal(kernels.index_select_backward(g, (3,), 0, index), [10, 0, 101])
    np.testing.assert_array_equal(
        kernels.gather_backward(np.array([0.2, 0.3]), (1,), 0, np.array([0, 0])), [0.5]
    )
    np.testing.assert_array_equal(kernels.index_add(np.ones(3), 0, index, g), [11, 1, 102])
    np.testing.assert_array_equal(kernels.scatter_add(np.ones(3), 0, index, g), [11, 1, 102])


def test_a_smaller_index_reads_a_corner() -> None:
    x = np.arange(12.0).reshape(3, 4)
    index = np.array([[2, 0]])
    np.testing.assert_array_equal(kernels.gather(x, 0, index), [[8, 1]])
    back = kernels.gather_backward(np.array([[5.0, 7.0]]), (3, 4), 0, index)
    assert back[2, 0] == 5
    assert back[0, 1] == 7
    assert back.sum() == 12


@pytest.mark.parametrize("bad", [-1, 3])
def test_an_index_out_of_range_is_refused(bad: int) -> None:
    x, index = np.ones(3), np.array([0, bad])
    for call in (
        lambda: kernels.index_select(x, 0, index),
        lambda: kernels.index_select_backward(np.ones(2), (3,), 0, index),
        lambda: kernels.index_add(x, 0, index, np.ones(2)),
        lambda: kernels.gather(x, 0, index),
        lambda: kernels.gather_backward(np.ones(2), (3,), 0, index),
        lambda: kernels.scatter_add(x, 0, index, np.ones(2)),
        lambda: kernels.scatter(x, 0, index, np.ones(2)),
    ):
        with pytest.raises(KaelIndexError, match=f"index {bad} is out of range for 3 entries"):
            call()


def test_masks_select() -> None:
    g, x = np.array([INF, INF, np.nan]), np.array([-1.0, 0.0, -2.0])
    np.testing.assert_array_equal(kernels.relu_backward(g, x), [0, 0, 0])
    np.testing.assert_array_equal(kernels.clamp_backward(g, x - 5, -1.0, 1.0), [0, 0, 0])
    np.testing.assert_array_equal(kernels.select(x > 0, g), [0, 0, 0])


def test_a_division_by_zero_is_an_infinity() -> None:
    ones = np.ones(2)
    back = kernels.div_backward_other(ones, ones, np.array([2.0, 0.0]))
    np.testing.assert_array_equal(back, [-0.25, -INF])


def test_nan_is_seen() -> None:
    x = np.array([np.nan, 1.0, INF])
    for kernel in (kernels.sigmoid, kernels.erf, kernels.gelu):
        assert np.isnan(kernel(x)).tolist() == [True, False, False], kernel


def test_erf_is_within_an_ulp() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-6.5, 6.5, 1500), 10 ** rng.uniform(-300, 0, 300)])
    want = np.array([float(mpmath.erf(float(v))) for v in x])
    assert np.max(np.abs(kernels.erf(x) - want) / np.spacing(np.abs(want))) <= 1
    np.testing.assert_array_equal(kernels.erf(np.array([-INF, -0.0, 0.0, INF])), [-1, 0, 0, 1])


def test_gelu_keeps_its_digits_in_the_tail() -> None:
    x = np.linspace(-37, 9, 301)
    with mpmath.workdps(40):
        want = [float(mpmath.mpf(float(v)) * mpmath.ncdf(float(v))) for v in x]
        slope = [float(mpmath.ncdf(float(v)) + float(v) * mpmath.npdf(float(v))) for v in x]
    # The argument x / sqrt(2) is rounded, and the tail magnifies that by x squared.
    np.testing.assert_allclose(kernels.gelu(x), want, rtol=5e-13)
    back = kernels.gelu_backward(np.ones_like(x), x)
    np.testing.assert_allclose(back, slope, rtol=1e-10, atol=1e-300)
    for approximate in (False, True):
        far = kernels.gelu_backward(np.ones(2), np.array([-1e200, 1e200]), approximate)
        np.testing.assert_array_equal(far, [0, 1])


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    for out in (
        kernels.softmax(x, -1),
        kernels.log_softmax(x, -1),
        kernels.standardize(x, 1, 1e-5),
        kernels.cumsum_backward(x, 0),
        kernels.sigmoid(x),
        kernels.erf(x),
    ):
        assert out.shape == shape


def test_0d_arrays() -> None:
    x = np.array(2.0)
    assert kernels.softmax(x, 0) == 1
    assert kernels.log_softmax(x, -1) == 0
    assert kernels.logsumexp(x, 0) == 2
    assert kernels.cumsum_backward(x, 0) == 2
    assert kernels.prod_backward(np.array(3.0), x) == 3
    assert kernels.erf(x) == pytest.approx(0.9953222650189527)
