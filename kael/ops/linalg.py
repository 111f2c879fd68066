"""Linear algebra: matrix products in every rank, factorizations and solutions of systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from kael import shapes
from kael.engine.node import sum_to_shape
from kael.errors import KaelValueError
from kael.ops.arguments import Arguments, Shapes
from kael.ops.declare import Operation
from kael.ops.samples import Sample, normal

Array = np.ndarray[Any, Any]


def _matmul(x: Array, other: Array) -> Array:
    try:
        return np.asarray(np.matmul(x, other))
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
    g, x, other = _as_matrices(g, np.empty(x_shape, bool), other)
    return sum_to_shape(np.matmul(g, other.mT), x.shape).reshape(x_shape)


def _matmul_right(g: Array, x: Array, other_shape: tuple[int, ...]) -> Array:
    g, x, other = _as_matrices(g, x, np.empty(other_shape, bool))
    if other.ndim == 2 and x.ndim > 2:
        # One product over all rows of the batch instead of a sum of many.
        k, n = other.shape
        return np.matmul(x.reshape(-1, k).T, g.reshape(-1, n)).reshape(other_shape)
    return sum_to_shape(np.matmul(x.mT, g), other.shape).reshape(other_shape)


def _matmul_batch(arguments: Arguments, given: Shapes) -> Arguments | None:
    left, right = given
    return arguments if len(left) == len(right) >= 2 else None


matmul = Operation(
    "matmul(x, other)", _matmul,
    vjp={"x": _matmul_left, "other": _matmul_right},
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
