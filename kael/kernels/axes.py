"""Dim arguments as NumPy axes, and a reduction's result put back over them; no kernels here.

`np.sum`, `np.max` and `np.broadcast_to` are Python around C and cost several times what they do
on a small array; what is here calls the C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Dim = int | tuple[int, ...] | list[int] | None

# Typed loosely: NumPy's stubs want to know which overload keepdims picks.
add_reduce: Callable[..., Any] = np.add.reduce
max_reduce: Callable[..., Any] = np.maximum.reduce

SMALL_BYTES = 4096


def broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` over a larger shape: a read-only view with stride 0, or filled memory where small."""
    if math.prod(shape) * x.itemsize > SMALL_BYTES:
        return np.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


def as_axes(dim: Dim, ndim: int) -> tuple[int, ...]:
    """`dim` as a tuple of axes from 0 on; None is all of them, a 0-d array has none."""
    if dim is None or ndim == 0:
        return tuple(range(ndim))
    if isinstance(dim, int):
        return (dim % ndim,)
    if dim.__class__ is tuple and dim and min(dim) >= 0:  # as operations give it
        return dim
    return tuple([d % ndim for d in dim])


def restore_dims(reduced: Any, x: Array, dim: Dim, keepdim: bool) -> Array:
    """A reduction's value or gradient with the dims that `keepdim=False` removed as ones."""
    array: Array = np.asarray(reduced)
    if keepdim or array.ndim == x.ndim:
        return array
    axes = as_axes(dim, x.ndim)
    return array.reshape(tuple(1 if d in axes else n for d, n in enumerate(x.shape)))


def last_rows(x: Array, axes: tuple[int, ...]) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:
    """`x` as a matrix whose rows run over `axes`, with what `from_rows` needs to undo it."""
    order = (*(d for d in range(x.ndim) if d not in axes), *axes)
    moved = x.transpose(order)
    count = 1
    for d in axes:
        count *= x.shape[d]
    lines = 1
    for d in order[: x.ndim - len(axes)]:
        lines *= x.shape[d]
    return moved.reshape(lines, count), moved.shape, order


def from_rows(rows: Array, shape: tuple[int, ...], order: tuple[int, ...]) -> Array:
    """The inverse of `last_rows`, as a view."""
    return rows.reshape(shape).transpose(np.argsort(order) if order else ())
