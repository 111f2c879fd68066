"""Reductions over the last dims whose NumPy versions need several passes or temporaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kael.kernels import buffers
from kael.kernels.axes import Array, Dim
from kael.kernels.compiled.jit import kernel, spread
from kael.kernels.compiled.rows import flat, reduced, trailing
from kael.kernels.compiled.scalar import row_squares, row_sum


@kernel
def _prod_backward(g: Any, x: Any, out: Any) -> None:
    for row in range(x.shape[0]):
        a, o = x[row], out[row]
        before = np.float64(1)
        for i in range(a.size):
            o[i] = before
            before *= a[i]
        after = np.float64(g[row])
        for i in range(a.size - 1, -1, -1):
            o[i] = o[i] * after
            after *= a[i]


@kernel
def _extreme_backward(g: Any, x: Any, y: Any, out: Any) -> None:
    for row in range(x.shape[0]):
        a, o, best = x[row], out[row], y[row]
        ties = 0
        for i in range(a.size):
            ties += 1 if a[i] == best or (a[i] != a[i] and best != best) else 0
        share = g[row] / ties
        for i in range(a.size):
            o[i] = share if a[i] == best or (a[i] != a[i] and best != best) else 0


@kernel
def _var(x: Any, out: Any, degrees: Any) -> None:
    for row in range(x.shape[0]):
        out[row] = row_squares(x[row], row_sum(x[row]) / x.shape[1]) / degrees


@kernel
def _var_backward(g: Any, x: Any, out: Any, degrees: Any) -> None:
    for row in range(x.shape[0]):
        a, o = x[row], out[row]
        mean = row_sum(a) / a.size
        factor = 2 * np.float64(g[row]) / degrees
        for i in range(a.size):
            o[i] = (a[i] - mean) * factor


@kernel
def _norm_backward(g: Any, x: Any, y: Any, out: Any) -> None:
    for row in range(x.shape[0]):
        a, o = x[row], out[row]
        upstream, length = np.float64(g[row]), np.float64(y[row])
        if length == 0:
            o[:] = 0
            continue
        for i in range(a.size):
            o[i] = upstream * (a[i] / length)


@kernel
def _cumsum_backward(g: Any, out: Any) -> None:
    for row in range(g.shape[0]):
        total = np.float64(0)
        for i in range(g.shape[1] - 1, -1, -1):
            total += g[row, i]
            out[row, i] = total


def prod_backward(g: Array, x: Array, dim: Dim = None, keepdim: bool = False) -> Array | None:
    return _per_row(_prod_backward, x, dim, g)


def extreme_backward(
    g: Array, x: Array, out: Array, dim: Dim = None, keepdim: bool = False
) -> Array | None:
    return _per_row(_extreme_backward, x, dim, g, out)


def var(x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False) -> Array | None:
    lines = trailing(x, dim, x)
    if lines is None:
        return None
    (rows,) = lines
    out = np.empty(len(rows), x.dtype)
    spread(_var, x.size, (rows, out), float(max(rows.shape[1] - correction, 0)))
    return reduced(out, x, dim, keepdim)


def var_backward(
    g: Array, x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False
) -> Array | None:
    count = x.size // max(np.asarray(g).size, 1)
    return _per_row(_var_backward, x, dim, g, rest=(float(max(count - correction, 0)),))


def norm_backward(
    g: Array, x: Array, out: Array, p: float = 2, dim: Dim = None, keepdim: bool = False
) -> Array | None:
    return _per_row(_norm_backward, x, dim, g, out) if p == 2 else None


def cumsum_backward(g: Array, dim: int) -> Array | None:
    lines = trailing(g, dim, g)
    if lines is None:
        return None
    out = buffers.empty(lines[0].shape, g.dtype)
    spread(_cumsum_backward, g.size, (*lines, out))
    return out.reshape(g.shape)


def _per_row(
    function: Callable[..., Any],
    x: Array,
    dim: Dim,
    g: Array,
    *values: Array,
    rest: tuple[float, ...] = (),
) -> Array | None:
    """`function(g, x, *values, out, *rest)` with one number of g and of each value for a row."""
    lines = trailing(x, dim, x)
    if lines is None:
        return None
    (rows,) = lines
    out = buffers.empty(rows.shape, x.dtype)
    numbers = [flat(v, x, len(rows)) for v in (g, *values)]
    arrays = (numbers[0], rows, *numbers[1:], out)
    spread(function, x.size, arrays, *rest)
    return out.reshape(x.shape)
