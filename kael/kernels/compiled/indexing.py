"""Gather and scatter: arrays are seen as [before, size, after] around the indexed dim.

Indices are checked before and made unsigned, which spares the test for negative ones (a factor 4).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kael.kernels import buffers
from kael.kernels.axes import Array
from kael.kernels.compiled.jit import FLOATS, contiguous, kernel, spread
from kael.kernels.rows import check_index


@kernel
def _select(x: Any, out: Any, index: Any) -> None:
    for o in range(x.shape[0]):
        for j in range(index.size):
            source = np.uint64(index[j])
            for i in range(x.shape[2]):
                out[o, j, i] = x[o, source, i]


@kernel
def _select_add(out: Any, g: Any, index: Any) -> None:
    for o in range(out.shape[0]):
        for j in range(index.size):
            target = np.uint64(index[j])
            for i in range(out.shape[2]):
                out[o, target, i] += g[o, j, i]


@kernel
def _gather(x: Any, out: Any, index: Any) -> None:
    for o in range(index.shape[0]):
        for j in range(index.shape[1]):
            for i in range(index.shape[2]):
                out[o, j, i] = x[o, np.uint64(index[o, j, i]), i]


@kernel
def _scatter_add(out: Any, g: Any, index: Any) -> None:
    for o in range(index.shape[0]):
        for j in range(index.shape[1]):
            for i in range(index.shape[2]):
                out[o, np.uint64(index[o, j, i]), i] += g[o, j, i]


def index_select(x: Array, dim: int, index: Array) -> Array | None:
    if not _fits(x, x.shape):
        return None
    check_index("index_select", index, x.shape[dim], "index", dim)
    shape = _with_size(x.shape, dim, index.size)
    out = buffers.empty(_around(shape, dim), x.dtype)
    spread(_select, out.size, (contiguous(x).reshape(_around(x.shape, dim)), out), _index(index))
    return out.reshape(shape)


def index_select_backward(g: Array, shape: tuple[int, ...], dim: int, index: Array) -> Array | None:
    if not _fits(g, shape):
        return None
    check_index("index_select", index, shape[dim], "index", dim)
    out = buffers.zeros(_around(shape, dim), g.dtype)
    upstream = contiguous(g).reshape(_around(_with_size(shape, dim, index.size), dim))
    spread(_select_add, g.size, (out, upstream), _index(index))
    return out.reshape(shape)


def index_add(x: Array, dim: int, index: Array, source: Array) -> Array | None:
    shape = _with_size(x.shape, dim, index.size) if x.ndim else ()
    if not _fits(x, x.shape) or source.dtype != x.dtype or source.shape != shape:
        return None
    check_index("index_add", index, x.shape[dim], "index", dim)
    out = buffers.copy(x).reshape(_around(x.shape, dim))
    spread(_select_add, source.size, (out, contiguous(source).reshape(_around(shape, dim))),
           _index(index))  # fmt: skip
    return out.reshape(x.shape)


def gather(x: Array, dim: int, index: Array) -> Array | None:
    if not _fits(x, x.shape) or not _same_around(x.shape, index.shape, dim):
        return None
    check_index("gather", index, x.shape[dim], "index", dim)
    blocks = _around(index.shape, dim)
    out = buffers.empty(blocks, x.dtype)
    rows = contiguous(x).reshape(_around(x.shape, dim))
    spread(_gather, index.size, (rows, out, _index(index).reshape(blocks)))
    return out.reshape(index.shape)


def gather_backward(g: Array, shape: tuple[int, ...], dim: int, index: Array) -> Array | None:
    if not _fits(g, shape) or not _same_around(shape, index.shape, dim):
        return None
    check_index("gather", index, shape[dim], "index", dim)
    return _add_at(buffers.zeros(shape, g.dtype), dim, index, g)


def scatter_add(x: Array, dim: int, index: Array, source: Array) -> Array | None:
    same = _fits(x, x.shape) and source.dtype == x.dtype and source.shape == index.shape
    if not same or not _same_around(x.shape, index.shape, dim):
        return None
    check_index("scatter_add", index, x.shape[dim], "index", dim)
    return _add_at(buffers.copy(x), dim, index, source)


def _add_at(out: Array, dim: int, index: Array, source: Array) -> Array:
    blocks = _around(index.shape, dim)
    arrays = (
        out.reshape(_around(out.shape, dim)),
        contiguous(source).reshape(blocks),
        _index(index).reshape(blocks),
    )
    spread(_scatter_add, index.size, arrays)
    return out


def _fits(x: Array, shape: tuple[int, ...]) -> bool:
    return x.dtype in FLOATS and x.size > 0 and len(shape) > 0


def _same_around(shape: tuple[int, ...], index_shape: tuple[int, ...], dim: int) -> bool:
    return len(shape) == len(index_shape) and _with_size(shape, dim, 1) == _with_size(
        index_shape, dim, 1
    )


def _with_size(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    dim %= len(shape)
    return (*shape[:dim], size, *shape[dim + 1 :])


def _around(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    dim %= len(shape)
    return math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])


def _index(index: Array) -> Array:
    return np.require(index, np.int64, ("C", "W"))
