"""Kernels made for a few entries of one form give what the general ones give."""

import numpy as np
import pytest

from kael import kernels
from kael.engine.node import sum_to_shape
from kael.forms import form_of
from kael.kernels import small, tiers

INF, NAN = np.inf, np.nan
DTYPES = ("float64", "float32")
MATRICES = [(2, 3), (1, 5), (6, 1), (3, 2, 4), (1, 1), (16, 32)]


def drawn(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def same(found, expected):
    found = np.asarray(found)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    eps = np.finfo(expected.dtype).eps
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1)
    np.testing.assert_allclose(found, expected, rtol=20 * eps, atol=20 * eps * scale)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", MATRICES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows(name, shape, dtype):
    x, g = drawn(shape, dtype), drawn(shape, dtype, 1)
    dim = len(shape) - 1
    forward, (backward,) = getattr(small, name)(form_of(x), dim)
    general = getattr(kernels, name)
    for values in (x, x * 300, np.asfortranarray(x)):
        out = general(values, dim)
        same(forward(values, dim), out)
        same(backward(g, out, dim), getattr(kernels, f"{name}_backward")(g, out, dim))


@pytest.mark.parametrize("row", [[INF, 1.0], [-INF, -INF], [NAN, 1.0], [1.0, NAN], [-INF, 2.0]])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_that_are_not_finite(name, row):
    x = np.array([row, [1.0, 2.0]])
    forward, _ = getattr(small, name)(form_of(x), 1)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(forward(x, 1), getattr(kernels, name)(x, 1), rtol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((4,), (0,)),
        ((2, 3), (0,)),
        ((2, 3), (1,)),
        ((2, 3), (0, 1)),
        ((3, 1), (1,)),
        ((2, 3, 4), (2,)),
        ((2, 3, 4), (0, 1, 2)),
    ],
)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_reductions(name, shape, dim, keepdim, dtype):
    x = drawn(shape, dtype)
    forward, (backward,) = getattr(small, name)(form_of(x), dim, keepdim)
    out = getattr(kernels, name)(x, dim, keepdim)
    for values in (x, np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]):
        same(forward(values, dim, keepdim), out)
    g = drawn(out.shape, dtype, 1)
    same(
        backward(g, shape, dim, keepdim),
        np.ascontiguousarray(getattr(kernels, f"{name}_backward")(g, x, dim, keepdim)),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), [((3, 4), 1), ((3, 4), 0), ((2, 3, 4), 1), ((5,), 0)])
def test_gather(shape, dim, dtype):
    x = drawn(shape, dtype)
    index = np.random.default_rng(2).integers(
        0, shape[dim], [1 if d == dim else n for d, n in enumerate(shape)]
    )
    forward, (backward, _) = small.gather(form_of(x), form_of(index), dim)
    np.testing.assert_array_equal(forward(x, index, dim), kernels.gather(x, dim, index))
    g = drawn(index.shape, dtype, 1)
    np.testing.assert_array_equal(
        backward(g, shape, dim, index), kernels.gather_backward(g, shape, dim, index)
    )
    for bad in (-1, shape[dim]):
        with pytest.raises(IndexError, match=f"gather: index {bad} is out of range"):
            forward(x, np.full_like(index, bad), dim)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_places_beyond_what_a_narrow_index_holds(dtype):
    x = np.arange(400.0).reshape(4, 100)
    index = np.full((1, 100), 3, dtype)
    forward, (backward, _) = small.gather(form_of(x), form_of(index), 0)
    np.testing.assert_array_equal(forward(x, index, 0), x[3:])
    np.testing.assert_array_equal(
        backward(np.ones((1, 100)), x.shape, 0, index).sum(1), [0, 0, 0, 100]
    )


def test_an_index_that_may_repeat_is_left_to_the_general_gather():
    x = form_of(np.ones((3, 4)))
    assert small.gather(x, form_of(np.zeros((3, 2), int)), 1) is None
    assert small.gather(x, form_of(np.zeros((3, 1))), 1) is None  # no integers
    assert small.gather(x, form_of(np.zeros(3, int)), 1) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((2, 3), (2, 1)), ((4, 3, 2), (3, 1))],
)
def test_broadcast_operands_give_the_same_bits(one, other):
    x, y = drawn(one, "float64"), drawn(other, "float64", 1)
    at = small.spreads(form_of(x), form_of(y))
    spread = [a if i is None else a.take(i) for a, i in zip((x, y), at, strict=True)]
    assert {a.shape for a in spread} == {np.broadcast_shapes(one, other)}
    np.testing.assert_array_equal(np.multiply(*spread), x * y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "target"),
    [((2, 3), (3,)), ((2, 3), ()), ((5,), ()), ((2, 3), (2, 1)), ((4, 2, 3), (4, 2, 1))],
)
def test_gradients_are_summed_to_the_shape_that_was_broadcast(shape, target, dtype):
    g = drawn(shape, dtype)
    summing = small.summing(shape, target, g.dtype)
    same(summing(g), np.asarray(sum_to_shape(g, target)))
    other = np.ones((7, 7), dtype)
    assert summing(other) is other  # the engine refuses it, with the node's name


def test_what_is_large_or_empty_or_whole_is_left_to_numpy():
    large = np.ones((small.ENTRIES, 2))
    empty = np.ones((0, 3))
    whole = np.ones((2, 3), "int64")
    for x in (large, empty, whole, np.ones(())):
        form = form_of(x)
        assert small.sum(form, tuple(range(x.ndim)), False) is None
        assert small.log_softmax(form, x.ndim - 1) is None
        assert small.spreads(form, form_of(np.ones((1, x.shape[-1] if x.ndim else 1)))) == (
            None,
            None,
        )
    assert small.spreads(form_of(np.ones((2, 3))), form_of(np.ones((4, 3)))) == (None, None)
    # Whose own order in memory could be the result's.
    assert small.spreads(form_of(np.ones((4, 1, 2))), form_of(np.ones((3, 1)))) == (None, None)
    assert small.matmul(form_of(np.ones((2, 3))), form_of(np.ones((2, 3)))) is None


def test_no_kernel_is_compiled_for_as_few():
    made = [f for f in vars(tiers).values() if hasattr(f, "plain")]
    assert len(made) > 30
    for kernel in made:
        closure = dict(
            zip(
                kernel.__code__.co_freevars,
                (cell.cell_contents for cell in kernel.__closure__),
                strict=True,
            )
        )
        assert closure["entries"] > small.ENTRIES
