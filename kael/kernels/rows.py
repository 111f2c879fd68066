"""Row kernels in NumPy: softmax, log_softmax, logsumexp, cross entropy, standardize, and backward.

The compiled versions are in `compiled_rows.py`; `tiers.py` decides which runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kael.errors import KaelIndexError
from kael.kernels.axes import Array, Dim, add_reduce, as_axes, max_reduce, restore_dims
from kael.kernels.reductions import is_safe


def softmax(x: Array, dim: int) -> Array:
    """exp(x) / sum(exp(x)) along `dim`, shifted by the maximum.

    A slice that is all -inf, or holds +inf or NaN, is NaN.
    """
    if x.size == 0:
        return np.empty_like(x)
    out = np.asarray(x - max_reduce(x, dim, None, None, True))
    np.exp(out, out)
    out /= add_reduce(out, dim, None, None, True)
    return out


def softmax_backward(g: Array, out: Array, dim: int) -> Array:
    """out * (g - sum(g * out))."""
    weighted: Array = np.multiply(g, out)
    return np.asarray(weighted - out * add_reduce(weighted, dim, None, None, True))


def log_softmax(x: Array, dim: int) -> Array:
    """x - log(sum(exp(x))) along `dim`, shifted by the maximum."""
    if x.size == 0:
        return np.empty_like(x)
    out = np.asarray(x - max_reduce(x, dim, None, None, True))
    out -= np.log(add_reduce(np.exp(out), dim, None, None, True))
    return out


def log_softmax_backward(g: Array, out: Array, dim: int) -> Array:
    """g - exp(out) * sum(g)."""
    slope = np.asarray(np.exp(out))
    slope *= add_reduce(g, dim, None, None, True)
    difference: Array = np.subtract(g, slope, slope)
    return difference


def logsumexp(x: Array, dim: Dim = None, keepdim: bool = False) -> Array:
    """log(sum(exp(x))) over `dim`, shifted by the maximum.

    A slice that is empty or all -inf gives -inf, one with +inf gives +inf, one with NaN gives NaN.
    """
    axes = as_axes(dim, x.ndim)
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    # An infinite maximum would make inf - inf; the shift only guards finite values.
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    out = top + np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True))
    return np.asarray(out if keepdim else out.reshape(_without(x.shape, axes)))


def logsumexp_backward(
    g: Array, x: Array, out: Array, dim: Dim = None, keepdim: bool = False
) -> Array:
    """g * exp(x - out), and 0 over a slice that is all -inf."""
    g, out = restore_dims(g, x, dim, keepdim), restore_dims(out, x, dim, keepdim)
    return np.asarray(np.where(out == -np.inf, x.dtype.type(0), g * np.exp(x - out)))


def cross_entropy(logits: Array, targets: Array) -> Array:
    """-log_softmax(logits)[target], one loss for each row; `logits` [..., C], `targets` [...]."""
    rows, picked = _rows_and_targets(logits, targets)
    top = np.max(rows, axis=1, initial=-np.inf)
    total = np.sum(np.exp(rows - top[:, None]), axis=1)
    losses = np.log(total) - (rows[np.arange(len(rows)), picked] - top)
    return np.asarray(losses.reshape(targets.shape))


def cross_entropy_backward(g: Array, logits: Array, targets: Array) -> Array:
    """g * (softmax(logits) - [j == target]), without a one-hot matrix."""
    rows, picked = _rows_and_targets(logits, targets)
    weight = np.asarray(g).reshape(-1)
    out = softmax(rows, 1)
    out *= weight[:, None]
    out[np.arange(len(rows)), picked] -= weight
    return out.reshape(logits.shape)


def _rows_and_targets(logits: Array, targets: Array) -> tuple[Array, Array]:
    classes = logits.shape[-1]
    picked = np.asarray(targets).reshape(-1)
    check_index("cross_entropy_losses", picked, classes, "target", "classes")
    return logits.reshape(picked.size, classes), picked


def check_index(name: str, index: Array, size: int, what: str, of: str | int) -> None:
    """Raise KaelIndexError unless every entry of `index` is in [0, size), the entries of a dim."""
    if index.size == 0:
        return
    if index.size <= 32:  # Python sorts a few numbers in a fifth of what NumPy's extremes take
        entries = index.ravel().tolist()
        entries.sort()
        low, high = entries[0], entries[-1]
    else:
        low, high = int(index.min()), int(index.max())
    if low < 0 or high >= size:
        bad = low if low < 0 else high
        room = of if isinstance(of, str) else f"entries of dim {of}"
        raise KaelIndexError(f"{name}: {what} {bad} is out of range for {size} {room}")


def standardize(x: Array, normalized_dims: int, eps: float) -> Array:
    """(x - mean) / sqrt(var + eps) over the last `normalized_dims` dims, variance uncorrected."""
    axes = tuple(range(x.ndim - normalized_dims, x.ndim))
    if x.size == 0:
        return np.empty_like(x)
    out, scale, _ = _deviations(x, axes, eps)
    out /= scale
    return out


def standardize_backward(g: Array, x: Array, out: Array, normalized_dims: int, eps: float) -> Array:
    """(g - mean(g) - out * mean(g * out)) / sqrt(var(x) + eps)."""
    axes = tuple(range(x.ndim - normalized_dims, x.ndim))
    if x.size == 0:
        return np.empty_like(x)
    _, scale, unit = _deviations(x, axes, eps)
    return np.asarray(_centred(g, out, axes) / (scale * unit))


def _deviations(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Any]:
    """x - mean and sqrt(var + eps), in a unit of each row, and that unit.

    The unit is 1 unless a square would over- or underflow, then a power of two as large as the row.
    """
    centred, total = _squares(x, axes, eps)
    if is_safe(total, x.dtype):
        return centred, np.sqrt(total), 1
    top = np.max(np.abs(x), axis=axes, keepdims=True, initial=x.dtype.type(np.sqrt(eps)))
    exponent = np.where(np.isfinite(top) & (top > 0), np.frexp(top)[1] - 1, 0)
    unit = np.ldexp(x.dtype.type(1), exponent)
    centred, total = _squares(np.asarray(x / unit), axes, x.dtype.type(eps) / unit / unit)
    return centred, np.sqrt(total), unit


def _squares(x: Array, axes: tuple[int, ...], eps: Any) -> tuple[Array, Array]:
    """x - mean and var + eps."""
    centred = np.asarray(x - np.mean(x, axis=axes, keepdims=True))
    return centred, np.asarray(np.mean(centred * centred, axis=axes, keepdims=True) + eps)


def _centred(g: Array, out: Array, axes: tuple[int, ...]) -> Any:
    return (
        g
        - np.mean(g, axis=axes, keepdims=True)
        - out * np.mean(np.multiply(g, out), axis=axes, keepdims=True)
    )


def _without(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for d, n in enumerate(shape) if d not in axes)
