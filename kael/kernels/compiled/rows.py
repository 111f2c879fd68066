"""Row kernels: one pass over memory for each row, which stays in cache between its loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kael.kernels import buffers
from kael.kernels.axes import Array, Dim, as_axes
from kael.kernels.compiled.jit import FLOATS, contiguous, kernel, spread
from kael.kernels.compiled.scalar import (
    exp,
    exp_sum,
    row_dot,
    row_max,
    row_moments,
    row_squares,
    row_sum,
    row_unit,
)
from kael.kernels.rows import check_index

SCRATCH = 512
# Below this sum of squares, terms that matter may be among those that underflowed.
LOW = float(np.finfo(np.float64).tiny) / float(np.finfo(np.float64).eps) ** 2


@kernel
def _softmax(x: Any, out: Any) -> None:
    for row in range(x.shape[0]):
        a, o = x[row], out[row]
        top = row_max(a)
        for i in range(a.size):
            o[i] = exp(np.float64(a[i]) - top)
        total = row_sum(o)
        for i in range(a.size):
            o[i] = o[i] / total


@kernel
def _softmax_backward(g: Any, y: Any, out: Any) -> None:
    for row in range(g.shape[0]):
        a, b, o = g[row], y[row], out[row]
        total = row_dot(a, b)
        for i in range(a.size):
            o[i] = b[i] * (a[i] - total)


@kernel
def _log_softmax(x: Any, out: Any) -> None:
    scratch = np.empty(SCRATCH)
    for row in range(x.shape[0]):
        a, o = x[row], out[row]
        top = np.float64(row_max(a))
        log_total = math.log(exp_sum(a, top, scratch))
        for i in range(a.size):
            o[i] = (a[i] - top) - log_total


@kernel
def _log_softmax_backward(g: Any, y: Any, out: Any) -> None:
    for row in range(g.shape[0]):
        a, b, o = g[row], y[row], out[row]
        total = row_sum(a)
        for i in range(a.size):
            o[i] = a[i] - exp(np.float64(b[i])) * total


@kernel
def _logsumexp(x: Any, out: Any) -> None:
    scratch = np.empty(SCRATCH)
    for row in range(x.shape[0]):
        top = np.float64(row_max(x[row]))
        shift = top if np.isfinite(top) else 0.0
        out[row] = shift + math.log(exp_sum(x[row], shift, scratch))


@kernel
def _logsumexp_backward(g: Any, x: Any, y: Any, out: Any) -> None:
    for row in range(x.shape[0]):
        a, o = x[row], out[row]
        upstream, shift = np.float64(g[row]), np.float64(y[row])
        if shift == -np.inf:
            o[:] = 0
            continue
        for i in range(a.size):
            o[i] = upstream * exp(a[i] - shift)


@kernel
def _cross_entropy(x: Any, targets: Any, out: Any) -> None:
    scratch = np.empty(SCRATCH)
    for row in range(x.shape[0]):
        a = x[row]
        top = np.float64(row_max(a))
        out[row] = math.log(exp_sum(a, top, scratch)) - (a[targets[row]] - top)


@kernel
def _cross_entropy_backward(g: Any, x: Any, targets: Any, out: Any) -> None:
    for row in range(x.shape[0]):
        a, o = x[row], out[row]
        top = row_max(a)
        for i in range(a.size):
            o[i] = exp(np.float64(a[i]) - top)
        weight = g[row] / row_sum(o)
        for i in range(a.size):
            o[i] = o[i] * weight
        o[targets[row]] -= g[row]


@kernel
def _standardize(x: Any, out: Any, eps: Any) -> None:
    for row in range(x.shape[0]):
        a, o = x[row], out[row]
        mean = row_sum(a) / a.size
        total = row_squares(a, mean) / a.size + eps
        if LOW < total < np.inf:
            scale = math.sqrt(total)
            for i in range(a.size):
                o[i] = (a[i] - mean) / scale
            continue
        unit = row_unit(a, eps)
        mean, scale = row_moments(a, unit, eps)
        for i in range(a.size):
            o[i] = (a[i] / unit - mean) / scale


@kernel
def _standardize_backward(g: Any, x: Any, y: Any, out: Any, eps: Any) -> None:
    for row in range(x.shape[0]):
        a, b, u, o = x[row], y[row], g[row], out[row]
        mean = row_sum(a) / a.size
        total = row_squares(a, mean) / a.size + eps
        scale = math.sqrt(total)
        if not LOW < total < np.inf:
            unit = row_unit(a, eps)
            scale = row_moments(a, unit, eps)[1] * unit
        mean_g = row_sum(u) / a.size
        mean_gy = row_dot(u, b) / a.size
        for i in range(a.size):
            o[i] = (u[i] - mean_g - b[i] * mean_gy) / scale


def softmax(x: Array, dim: int) -> Array | None:
    return _rows_to_rows(_softmax, dim, x)


def softmax_backward(g: Array, out: Array, dim: int) -> Array | None:
    return _rows_to_rows(_softmax_backward, dim, g, out)


def log_softmax(x: Array, dim: int) -> Array | None:
    return _rows_to_rows(_log_softmax, dim, x)


def log_softmax_backward(g: Array, out: Array, dim: int) -> Array | None:
    return _rows_to_rows(_log_softmax_backward, dim, g, out)


def logsumexp(x: Array, dim: Dim = None, keepdim: bool = False) -> Array | None:
    lines = trailing(x, dim, x)
    if lines is None:
        return None
    (rows,) = lines
    out = np.empty(len(rows), x.dtype)
    spread(_logsumexp, x.size, (rows, out))
    return reduced(out, x, dim, keepdim)


def logsumexp_backward(
    g: Array, x: Array, out: Array, dim: Dim = None, keepdim: bool = False
) -> Array | None:
    lines = trailing(x, dim, x)
    if lines is None:
        return None
    (rows,) = lines
    result = buffers.empty(rows.shape, x.dtype)
    per_row = (flat(g, x, len(rows)), rows, flat(out, x, len(rows)))
    spread(_logsumexp_backward, x.size, (*per_row, result))
    return result.reshape(x.shape)


def cross_entropy(logits: Array, targets: Array) -> Array | None:
    lines = trailing(logits, -1, logits)
    if lines is None:
        return None
    picked = _targets(targets, logits)
    out = np.empty(picked.size, logits.dtype)
    spread(_cross_entropy, logits.size, (*lines, picked, out))
    return out.reshape(targets.shape)


def cross_entropy_backward(g: Array, logits: Array, targets: Array) -> Array | None:
    lines = trailing(logits, -1, logits)
    if lines is None:
        return None
    picked = _targets(targets, logits)
    out = buffers.empty((picked.size, logits.shape[-1]), logits.dtype)
    per_row = (flat(g, logits, picked.size), *lines, picked, out)
    spread(_cross_entropy_backward, logits.size, per_row)
    return out.reshape(logits.shape)


def standardize(x: Array, normalized_dims: int, eps: float) -> Array | None:
    dims = tuple(range(x.ndim - normalized_dims, x.ndim))
    return _rows_to_rows(_standardize, dims, x, rest=(float(eps),))


def standardize_backward(
    g: Array, x: Array, out: Array, normalized_dims: int, eps: float
) -> Array | None:
    dims = tuple(range(x.ndim - normalized_dims, x.ndim))
    return _rows_to_rows(_standardize_backward, dims, g, x, out, rest=(float(eps),))


def trailing(x: Array, dim: Dim, *arrays: Array) -> list[Array] | None:
    """`arrays`, all of x's shape and dtype, as matrices with rows over `dim`; None if not last."""
    axes = as_axes(dim, x.ndim)
    count = math.prod(x.shape[d] for d in axes)
    is_last = tuple(sorted(axes)) == tuple(range(x.ndim - len(axes), x.ndim))
    fits = all(a.dtype == x.dtype and a.shape == x.shape for a in arrays)
    if not is_last or not fits or x.dtype not in FLOATS or x.size == 0:
        return None
    return [contiguous(a).reshape(-1, count) for a in arrays]


def flat(value: Array, x: Array, count: int) -> Array:
    """A reduction's value or gradient as one number for each row."""
    wide = np.broadcast_to(np.asarray(value).reshape(-1), (count,))
    return np.require(wide, x.dtype, ("C", "W"))


def reduced(out: Array, x: Array, dim: Dim, keepdim: bool) -> Array:
    """One number for each row in the shape of a reduction over `dim`."""
    axes = as_axes(dim, x.ndim)
    ones = 1 if keepdim else None
    sizes = (ones if d in axes else n for d, n in enumerate(x.shape))
    return out.reshape(tuple(n for n in sizes if n is not None))


def _targets(targets: Array, logits: Array) -> Array:
    picked = np.asarray(targets).reshape(-1)
    check_index("cross_entropy_losses", picked, logits.shape[-1], "target", "classes")
    return np.require(picked, np.int64, ("C", "W"))


def _rows_to_rows(
    function: Callable[..., Any], dim: Dim, *arrays: Array, rest: tuple[float, ...] = ()
) -> Array | None:
    x = arrays[-1]
    lines = trailing(x, dim, *arrays)
    if lines is None:
        return None
    out = buffers.empty(lines[0].shape, x.dtype)
    spread(function, x.size, (*lines, out), *rest)
    return out.reshape(x.shape)
