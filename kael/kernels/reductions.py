"""Reductions and scans in NumPy: sum, mean, extremes, prod, var, norm, cumsum, and backward.

The compiled versions are in `compiled_reductions.py`; `tiers.py` decides which runs.
"""

from __future__ import annotations

import math

import numpy as np

from kael.kernels.axes import (
    Array,
    Dim,
    add_reduce,
    as_axes,
    broadcast,
    from_rows,
    last_rows,
    restore_dims,
)
from kael.kernels.elementwise import abs_backward


def sum(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """The sum over `dim`, in the array's own dtype."""
    return np.asarray(add_reduce(x, as_axes(dim, x.ndim), x.dtype, None, keepdim))


def sum_backward(g: Array, x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """`g` over the reduced dims: a read-only view with stride 0, nothing is copied."""
    return broadcast(restore_dims(g, x, dim, keepdim), x.shape)


def mean(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """The mean over `dim`; NaN over nothing."""
    total = add_reduce(x, as_axes(dim, x.ndim), x.dtype, None, keepdim)
    # A full reduction is a NumPy scalar here, which divides by a number at once.
    return np.asarray(total / (x.size // (total.size or 1)))


def mean_backward(g: Array, x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """g / count over the reduced dims: a read-only view with stride 0."""
    return sum_backward(g / max(_count(x, dim), 1), x, dim, keepdim)


def amax(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """The largest entry over `dim`; NaN where there is one."""
    return np.asarray(np.max(x, axis=as_axes(dim, x.ndim), keepdims=keepdim))


def amin(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """The smallest entry over `dim`; NaN where there is one."""
    return np.asarray(np.min(x, axis=as_axes(dim, x.ndim), keepdims=keepdim))


def extreme_backward(
    g: Array, x: Array, out: Array, dim: Dim = None, keepdim: bool = False
) -> Array:
    """The gradient of `amax` and `amin`: g / ties at the entries equal to `out`, 0 elsewhere.

    A slice whose result is NaN passes the gradient to its NaN entries.
    """
    g, out = restore_dims(g, x, dim, keepdim), restore_dims(out, x, dim, keepdim)
    chosen = x == out
    if np.isnan(out).any():
        chosen |= np.isnan(x) & np.isnan(out)
    ties = np.count_nonzero(chosen, axis=as_axes(dim, x.ndim), keepdims=True)
    share = np.true_divide(g, np.maximum(ties, 1), dtype=x.dtype)
    return np.asarray(np.where(chosen, share, x.dtype.type(0)))


def prod(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """The product over `dim`, in the array's own dtype."""
    return np.asarray(np.prod(x, axis=as_axes(dim, x.ndim), keepdims=keepdim, dtype=x.dtype))


def prod_backward(g: Array, x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """g times the product of the other entries, made from the products before and after each.

    No division, so the three cases (no zero, one, several) need no branches, and an entry whose
    others fit is right even where the whole product overflows.
    """
    rows, shape, order = last_rows(x, as_axes(dim, x.ndim))
    others = np.ones(rows.shape, x.dtype)
    np.cumprod(rows[:, :-1], axis=1, out=others[:, 1:])
    after = np.cumprod(rows[:, :0:-1], axis=1)[:, ::-1]
    others[:, :-1] *= after
    return np.asarray(from_rows(others, shape, order) * restore_dims(g, x, dim, keepdim))


def var(x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False) -> Array:
    """sum((x - mean)**2) / (count - correction) over `dim`; NaN or inf for count <= correction."""
    axes = as_axes(dim, x.ndim)
    centred = x - mean(x, axes, True)
    total = np.asarray(np.sum(centred * centred, axis=axes, keepdims=keepdim))
    return np.asarray(np.true_divide(total, max(_count(x, dim) - correction, 0), dtype=x.dtype))


def var_backward(
    g: Array, x: Array, dim: Dim = None, correction: float = 1, keepdim: bool = False
) -> Array:
    """g * 2 * (x - mean) / (count - correction)."""
    axes = as_axes(dim, x.ndim)
    g = restore_dims(g, x, dim, keepdim)
    degrees = x.dtype.type(max(_count(x, dim) - correction, 0))
    return np.asarray((x - mean(x, axes, True)) * (2 * g / degrees))


def norm(x: Array, p: float = 2, dim: Dim = None, keepdim: bool = False) -> Array:
    """The p-norm over `dim`, scaled by a power of two where the powers would overflow or underflow.

    p may be any real number: inf and -inf are the extremes of abs(x), 0 counts the non-zeros.
    """
    axes = as_axes(dim, x.ndim)
    if p == 0:
        return np.asarray(np.sum(x != 0, axis=axes, keepdims=keepdim, dtype=x.dtype))
    if p == np.inf:
        return np.asarray(np.max(np.abs(x), axis=axes, keepdims=keepdim, initial=0))
    if p == -np.inf:
        return np.asarray(np.min(np.abs(x), axis=axes, keepdims=keepdim, initial=np.inf))
    if p == 1:
        return np.asarray(np.sum(np.abs(x), axis=axes, keepdims=keepdim))
    total = np.asarray(_powers(x, p, axes, keepdim))
    if is_safe(total, x.dtype):
        return np.asarray(_root(total, p))
    top = np.max(np.abs(x), axis=axes, keepdims=True, initial=0)
    exponent = np.where(np.isfinite(top) & (top > 0), np.frexp(top)[1], 0)
    total = np.asarray(_powers(np.ldexp(x, -exponent), p, axes, True))
    out = np.ldexp(_root(total, p), exponent)
    return np.asarray(out if keepdim else np.squeeze(out, axis=axes))


def is_safe(total: Array, dtype: np.dtype[np.floating]) -> bool:
    """Whether sums of powers are far from the ends of the floating range (or there are none)."""
    limits = np.finfo(dtype)
    # Terms below the smallest normal are lost; they matter unless the sum is this much larger.
    low = float(limits.tiny) / float(limits.eps) ** 2
    return bool(np.all((total > low) & (total < float(limits.max))))


def _powers(x: Array, p: float, axes: tuple[int, ...], keepdim: bool) -> Array:
    terms = x * x if p == 2 else np.abs(x) ** p
    return np.asarray(np.sum(terms, axis=axes, keepdims=keepdim))


def _root(total: Array, p: float) -> Array:
    return np.asarray(np.sqrt(total) if p == 2 else total ** (1 / p))


def norm_backward(
    g: Array, x: Array, out: Array, p: float = 2, dim: Dim = None, keepdim: bool = False
) -> Array:
    """g * sign(x) * (abs(x) / norm)**(p-1), that is g * x / norm for p = 2; 0 where norm is 0."""
    g, out = restore_dims(g, x, dim, keepdim), restore_dims(out, x, dim, keepdim)
    zero = x.dtype.type(0)
    if p == 0:
        return np.zeros_like(x)
    if p == 1:
        return abs_backward(g, x)
    if p in (np.inf, -np.inf):
        magnitude = np.abs(x)
        share = extreme_backward(g, magnitude, out, dim, True)
        return np.asarray(np.where(share == 0, zero, share * np.sign(x)))
    if p == 2:
        return np.asarray(np.where(out == 0, zero, g * (x / out)))
    slope = np.sign(x) * np.where(x == 0, zero, (np.abs(x) / out) ** (p - 1))
    return np.asarray(np.where(out == 0, zero, g * slope))


def trace_norm(array: Array) -> float:
    """The L2 norm of all entries as a float: a line of the backward trace.

    >>> trace_norm(np.array([3.0, 4.0]))
    5.0
    """
    if array.size <= 32:
        return math.hypot(*array.ravel().tolist())
    flat = array.ravel(order="K")
    if array.dtype == np.float64:
        with np.errstate(all="ignore"):
            total = float(np.dot(flat, flat))
        if 1e-260 < total < math.inf:
            return math.sqrt(total)
    return float(norm(flat.astype(np.float64)))


def cumsum(x: Array, dim: int) -> Array:
    """The running sum along `dim`."""
    if x.ndim == 0:
        return x.copy()
    return np.asarray(np.cumsum(x, axis=dim, dtype=x.dtype))


def cumsum_backward(g: Array, dim: int) -> Array:
    """The running sum from the end: entry i is the sum of g from i on."""
    if g.ndim == 0:
        return g.copy()
    return np.flip(np.cumsum(np.flip(g, dim), axis=dim, dtype=g.dtype), dim)


def _count(x: Array, dim: Dim) -> int:
    return math.prod(x.shape[d] for d in as_axes(dim, x.ndim))
