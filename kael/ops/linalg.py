"""Linear algebra: matrix products in every rank, factorizations and solutions of systems."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kael import dtypes, kernels, shapes
from kael.engine.node import sum_to_shape
from kael.errors import KaelValueError
from kael.kernels import small
from kael.ops.arguments import Arguments, Prepare, Shapes, require_floating, require_ndim
from kael.ops.declare import Operation
from kael.ops.samples import Sample, normal
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]


def _product(x: Array, other: Array) -> Any:
    """np.matmul; for two matrices the method, which is there sooner and can reuse memory."""
    if not x.ndim == 2 == other.ndim:
        return np.matmul(x, other)
    if x.nbytes < kernels.POOL_FROM_BYTES or x.dtype is not other.dtype:
        return x.dot(other)
    return x.dot(other, kernels.empty((x.shape[0], other.shape[1]), x.dtype))


def _matmul(x: Array, other: Array) -> Array:
    try:
        return np.asarray(_product(x, other))
    except ValueError:
        raise _mismatch("matmul", x.shape, other.shape) from None


def _mismatch(name: str, left: tuple[int, ...], right: tuple[int, ...]) -> KaelValueError:
    start = f"{name}: shapes {shapes.text(left)} and {shapes.text(right)} do not match"
    if not left or not right:
        return KaelValueError(f"{start}: both operands need at least 1 dim; use * for numbers")
    inner = (left[-1], right[-2] if len(right) > 1 else right[0])
    if inner[0] != inner[1]:
        return KaelValueError(f"{start}: inner sizes {inner[0]} and {inner[1]}")
    return KaelValueError(
        f"{start}: batch dims {shapes.text(left[:-2])} and {shapes.text(right[:-2])} "
        "do not broadcast"
    )


def _as_matrices(g: Array, x: Array, other: Array) -> tuple[Array, Array, Array]:
    """Return g, x and other with a vector as a row on the left, as a column on the right."""
    if other.ndim == 1:
        other, g = other[:, None], g[..., None]
    if x.ndim == 1:
        x, g = x[None, :], g[..., None, :]
    return g, x, other


def _matmul_left(g: Array, x_shape: tuple[int, ...], other: Array) -> Array:
    if other.ndim == 2 == len(x_shape):
        product: Array = _product(g, other.T)
        return product
    g, x, other = _as_matrices(g, np.empty(x_shape, bool), other)
    return sum_to_shape(np.matmul(g, other.mT), x.shape).reshape(x_shape)


def _matmul_right(g: Array, x: Array, other_shape: tuple[int, ...]) -> Array:
    if x.ndim == 2 == len(other_shape):
        product: Array = _product(x.T, g)
        return product
    g, x, other = _as_matrices(g, x, np.empty(other_shape, bool))
    if other.ndim == 2 and x.ndim > 2:
        # One product over all rows of the batch instead of a sum of many.
        k, n = other.shape
        rows = math.prod(g.shape[:-1])
        product = np.matmul(x.reshape(rows, k).T, g.reshape(rows, n))
        return product.reshape(other_shape)
    return sum_to_shape(np.matmul(x.mT, g), other.shape).reshape(other_shape)


def _matmul_batch(arguments: Arguments, given: Shapes) -> Arguments | None:
    left, right = given
    return arguments if len(left) == len(right) >= 2 else None


matmul = Operation(
    "matmul(x, other)", _matmul,
    vjp={"x": _matmul_left, "other": _matmul_right}, small=small.matmul,
    text={"x": "g @ other.mT", "other": "x.mT @ g"}, prose=True,
    broadcasts=True, promotes=("x", "other"), batch=_matmul_batch, analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, left), normal(rng, right)))
        for left, right in (
            ((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)),
            ((2, 2, 3), (3, 2)), ((2, 3), (4, 3, 2)), ((2, 1, 2, 3), (2, 3, 2)),
            ((3,), (2, 3, 2)), ((2, 2, 3), (3,)), ((2, 0), (0, 3)),
        )
    ],
    family="linalg",
    convention="a vector is a row on the left and a column on the right; that dim is then removed",
    doc="Return the matrix product; leading dims are batch dims and broadcast.",
)  # fmt: skip


def _prepare_product(name: str, left: int, right: int) -> Prepare:
    """Check the ranks and the inner sizes of a product of fixed ranks."""

    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        x, other = inputs
        require_ndim(name, x, left)
        require_ndim(name, other, right, "other")
        if left == 3 and x.shape[0] != other.shape[0]:
            raise KaelValueError(
                f"{name}: shapes {shapes.text(x.shape)} and {shapes.text(other.shape)} do not "
                f"match: batch sizes {x.shape[0]} and {other.shape[0]}"
            )
        if x.shape[-1] != other.shape[0 if right == 1 else -2]:
            raise _mismatch(name, x.shape, other.shape)
        return arguments

    return prepare


def _prepare_outer(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    require_ndim("outer", inputs[0], 1)
    require_ndim("outer", inputs[1], 1, "other")
    return arguments


def _prepare_trace(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    require_ndim("trace", inputs[0], 2)
    return arguments


def _same(arguments: Arguments, _: Shapes) -> Arguments:
    return arguments


def _dot(x: Array, other: Array) -> Array:
    terms = x * other
    return np.asarray(np.sum(terms, axis=-1, dtype=terms.dtype))


def _trace(x: Array) -> Array:
    # Integers and booleans sum to int64, as in sum.
    dtype = dtypes.int64 if x.dtype.kind in "biu" else x.dtype
    return np.asarray(np.trace(x, axis1=-2, axis2=-1, dtype=dtype))


def _require_square(name: str, x: Tensor) -> None:
    require_floating(name, x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise KaelValueError(
            f"{name}: square matrices are needed, got shape {shapes.text(x.shape)}"
        )


def _square(name: str) -> Prepare:
    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        _require_square(name, inputs[0])
        return arguments

    return prepare


def _prepare_solve(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x, other = inputs
    _require_square("solve", x)
    size = x.shape[-1]
    if other.ndim == 0 or other.shape[-min(other.ndim, 2)] != size:
        raise KaelValueError(
            f"solve: shapes {shapes.text(x.shape)} and {shapes.text(other.shape)} do not match: "
            f"the right side needs {size} rows"
        )
    shapes.broadcast("solve", x.shape[:-2], other.shape[:-2])
    return arguments


def _regular(name: str, kernel: Callable[..., Any], *arrays: Array) -> Array:
    """Call NumPy's routine, and say what a failure means."""
    try:
        return np.asarray(kernel(*arrays))
    except np.linalg.LinAlgError:
        reason = "positive definite" if name == "cholesky" else "regular (its determinant is 0)"
        raise KaelValueError(f"{name}: a matrix is not {reason}") from None


def _inverse(x: Array) -> Array:
    return _regular("inverse", np.linalg.inv, x)


def _solve(x: Array, other: Array) -> Array:
    if other.ndim == 1:
        return _regular("solve", np.linalg.solve, x, other[:, None])[..., 0]
    return _regular("solve", np.linalg.solve, x, other)


def _solve_other(g: Array, x: Array, other_shape: tuple[int, ...]) -> Array:
    if len(other_shape) == 1:
        return sum_to_shape(np.linalg.solve(x.mT, g[..., None])[..., 0], other_shape)
    return sum_to_shape(np.linalg.solve(x.mT, g), other_shape)


def _solve_x(g: Array, x: Array, out: Array, other_shape: tuple[int, ...]) -> Array:
    if len(other_shape) == 1:
        g, out = g[..., None], out[..., None]
    return sum_to_shape(-np.linalg.solve(x.mT, g) @ out.mT, x.shape)


def _cofactors(x: Array) -> Array:
    """Return the matrix of cofactors, the gradient of the determinant, of any rank.

    With x = U S V', the cofactors are det(U) det(V) U D V', where D holds the products of the
    other singular values: nothing is divided by a determinant that may be 0.
    """
    if x.shape[-1] < 2:
        return np.ones_like(x)
    if x.shape[-1] == 2:
        return np.stack([x[..., ::-1, 1] * [1, -1], x[..., ::-1, 0] * [-1, 1]], -1).astype(x.dtype)
    finite = np.isfinite(x).all(axis=(-2, -1), keepdims=True)
    u, s, vh = np.linalg.svd(np.where(finite, x, 0))
    others = kernels.prod_backward(np.ones_like(s[..., 0]), s, s.ndim - 1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    cofactors = sign[..., None, None] * ((u * others[..., None, :]) @ vh)
    return np.where(finite, cofactors, np.nan).astype(x.dtype, copy=False)


def _det_backward(g: Array, x: Array) -> Array:
    return np.asarray(g[..., None, None] * _cofactors(x))


def _log_det(x: Array) -> Array:
    return np.asarray(np.linalg.slogdet(x)[1])


def _log_det_backward(g: Array, x: Array) -> Array:
    """Return g times the transposed inverse; at a singular matrix the cofactors over 0."""
    try:
        return np.asarray(g[..., None, None] * np.linalg.inv(x).mT)
    except np.linalg.LinAlgError:
        return np.asarray(g[..., None, None] * (_cofactors(x) / np.linalg.det(x)[..., None, None]))


def _cholesky(x: Array) -> Array:
    # The factor of the symmetric part: the gradient is then symmetric, and holds entry by entry.
    return _regular("cholesky", np.linalg.cholesky, (x + x.mT) / 2)


def _cholesky_backward(g: Array, out: Array) -> Array:
    """Return the symmetric part of L^-T P L^-1, with P the lower half of L^T g.

    I. Murray, Differentiation of the Cholesky decomposition (2016), eq. 10.
    """
    lower = np.tril(out.mT @ g)
    lower -= np.eye(out.shape[-1], dtype=out.dtype) * lower / 2
    half = np.linalg.solve(out.mT, lower)
    full = np.linalg.solve(out.mT, half.mT).mT
    return np.asarray((full + full.mT) / 2)


def _definite(rng: np.random.Generator, *shape: int) -> Array:
    x = normal(rng, shape)
    return np.asarray(x @ x.mT + shape[-1] * np.eye(shape[-1]))


def _regular_matrix(rng: np.random.Generator, *shape: int) -> Array:
    return np.asarray(normal(rng, shape) / 2 + 2 * np.eye(shape[-1]))


dot = Operation(
    "dot(x, other)", _dot,
    vjp={"x": lambda g, other: g * other, "other": lambda g, x: g * x},
    text={"x": "g * other", "other": "g * x"},
    prepare=_prepare_product("dot", 1, 1), broadcasts=True, promotes=("x", "other"),
    batch=_same, analytic=True,
    samples=lambda rng: [Sample((normal(rng, (3,)), normal(rng, (3,))))], family="linalg",
    doc="Return the inner product of two vectors.",
)  # fmt: skip
outer = Operation(
    "outer(x, other)", lambda x, other: x[..., :, None] * other[..., None, :],
    vjp={"x": lambda g, other: g @ other, "other": lambda g, x: x @ g},
    text={"x": "g @ other", "other": "x @ g"},
    prepare=_prepare_outer, broadcasts=True, promotes=("x", "other"), batch=_same, analytic=True,
    samples=lambda rng: [Sample((normal(rng, (3,)), normal(rng, (2,))))], family="linalg",
    doc="Return the products of every entry of one vector with every entry of another.",
)  # fmt: skip
mv = Operation(
    "mv(x, other)", lambda x, other: np.matmul(x, other[..., None])[..., 0],
    vjp={"x": lambda g, other: np.multiply.outer(g, other), "other": lambda g, x: x.T @ g},
    text={"x": "outer(g, other)", "other": "x.T @ g"},
    prepare=_prepare_product("mv", 2, 1), broadcasts=True, promotes=("x", "other"),
    batch=_same, analytic=True,
    samples=lambda rng: [Sample((normal(rng, (2, 3)), normal(rng, (3,))))], family="linalg",
    doc="Return the product of a matrix and a vector.",
)  # fmt: skip
mm = Operation(
    "mm(x, other)", np.matmul,
    vjp={"x": lambda g, other: g @ other.T, "other": lambda g, x: x.T @ g},
    text={"x": "g @ other.T", "other": "x.T @ g"},
    prepare=_prepare_product("mm", 2, 2), broadcasts=True, promotes=("x", "other"),
    batch=_same, analytic=True,
    samples=lambda rng: [Sample((normal(rng, (2, 3)), normal(rng, (3, 4))))], family="linalg",
    doc="Return the product of two matrices.",
)  # fmt: skip
bmm = Operation(
    "bmm(x, other)", np.matmul,
    vjp={"x": lambda g, other: g @ other.mT, "other": lambda g, x: x.mT @ g},
    text={"x": "g @ other.mT", "other": "x.mT @ g"},
    prepare=_prepare_product("bmm", 3, 3), broadcasts=True, promotes=("x", "other"),
    batch=_same, analytic=True,
    samples=lambda rng: [Sample((normal(rng, (2, 2, 3)), normal(rng, (2, 3, 2))))],
    family="linalg",
    doc="Return the products of two batches of matrices.",
)  # fmt: skip
trace = Operation(
    "trace(x)", _trace,
    vjp={"x": lambda g, x_shape: g * np.eye(*x_shape, dtype=g.dtype)},
    text={"x": "g on the diagonal, 0 elsewhere"}, prose=True,
    prepare=_prepare_trace,
    batch=_same, analytic=True,
    samples=lambda rng: [Sample((normal(rng, (3, 3)),)), Sample((normal(rng, (2, 4)),))],
    family="linalg",
    doc="Return the sum of the diagonal of a matrix.",
)  # fmt: skip
inverse = Operation(
    "inverse(x)", _inverse,
    vjp={"x": lambda g, out: -(out.mT @ g @ out.mT)}, text={"x": "-(out.mT @ g @ out.mT)"},
    prepare=_square("inverse"), batch=_same, analytic=True, aliases=("inv",),
    samples=lambda rng: [
        Sample((_regular_matrix(rng, 3, 3),)), Sample((_regular_matrix(rng, 2, 2, 2),)),
    ],
    family="linalg",
    doc="Return the inverse of square matrices; a singular one is an error.",
)  # fmt: skip
det = Operation(
    "det(x)", np.linalg.det,
    vjp={"x": _det_backward},
    text={"x": "g[..., None, None] * out[..., None, None] * inverse(x).mT"},
    prepare=_square("det"), batch=_same, analytic=True,
    samples=lambda rng: [
        Sample((_regular_matrix(rng, 3, 3),)), Sample((_regular_matrix(rng, 2, 2, 2),)),
        Sample((normal(rng, (4, 4)),)), Sample((normal(rng, (1, 1)),)),
    ],
    family="linalg",
    convention="the matrix of cofactors, which a singular matrix has too",
    doc="Return the determinant of square matrices.",
)  # fmt: skip
slogdet = Operation(
    "slogdet(x)", _log_det,
    vjp={"x": _log_det_backward}, text={"x": "g[..., None, None] * inverse(x).mT"},
    prepare=_square("slogdet"), batch=_same, aliases=("logabsdet",),
    samples=lambda rng: [
        Sample((_regular_matrix(rng, 3, 3),)), Sample((normal(rng, (2, 2, 2)),)),
    ],
    family="linalg", convention="a singular matrix has value -inf and an infinite gradient",
    doc="Return log(abs(det(x))) of square matrices, the logarithm alone.",
)  # fmt: skip
solve = Operation(
    "solve(x, other)", _solve,
    vjp={"x": _solve_x, "other": _solve_other},
    text={"x": "-solve(x.mT, g) @ out.mT", "other": "solve(x.mT, g)"}, prose=True,
    prepare=_prepare_solve, broadcasts=True, promotes=("x", "other"), analytic=True,
    batch=lambda arguments, given: arguments if len(given[0]) == len(given[1]) else None,
    samples=lambda rng: [
        Sample((_regular_matrix(rng, 3, 3), normal(rng, (3, 2)))),
        Sample((_regular_matrix(rng, 3, 3), normal(rng, (3,)))),
        Sample((_regular_matrix(rng, 2, 2, 2), normal(rng, (2, 1)))),
    ],
    family="linalg", convention="a right side of 1 dim is one column",
    doc="Return the solution of x @ result = other; a singular matrix is an error.",
)  # fmt: skip
cholesky = Operation(
    "cholesky(x)", _cholesky,
    vjp={"x": _cholesky_backward},
    text={
        "x": "the symmetric part of inverse(out).mT @ P @ inverse(out), "
        "where P is tril(out.mT @ g) with half of its diagonal"
    },
    prose=True, prepare=_square("cholesky"), batch=_same,
    samples=lambda rng: [
        Sample((_definite(rng, 3, 3),)), Sample((_definite(rng, 2, 2, 2),)),
    ],
    family="linalg", convention="the symmetric part of x is factored; the gradient is symmetric",
    doc="Return the lower triangular L with L @ L.mT = x, for positive definite x.",
)  # fmt: skip
