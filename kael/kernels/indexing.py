"""Gather and scatter in NumPy: index_select, gather, scatter, scatter_add, index_add, backward.

Indices are checked here, since compiled code would read outside the array. A repeated index adds.
The compiled versions are in `compiled_indexing.py`; `tiers.py` decides which runs.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from kael.kernels.axes import Array
from kael.kernels.rows import check_index


def index_select(x: Array, dim: int, index: Array) -> Array:
    """The slices of `x` along `dim` at the 1-D `index`."""
    if x.ndim == 0:
        x = x.reshape(1)
        check_index("index_select", index, 1, "index", 0)
        return x[index].reshape(())
    check_index("index_select", index, x.shape[dim], "index", dim)
    return np.take(x, index, axis=dim)


def index_select_backward(g: Array, shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """Zeros of `shape` with each slice of `g` added at its index."""
    if not shape:
        return np.asarray(g).reshape(()).copy()
    check_index("index_select", index, shape[dim], "index", dim)
    out = np.zeros(shape, g.dtype)
    np.add.at(out, _along(len(shape), dim, index), g)
    return out


def index_add(x: Array, dim: int, index: Array, source: Array) -> Array:
    """A copy of `x` with each slice of `source` added at its index along `dim`."""
    check_index("index_add", index, x.shape[dim], "index", dim)
    out = x.copy()
    np.add.at(out, _along(x.ndim, dim, index), source)
    return out


def gather(x: Array, dim: int, index: Array) -> Array:
    """out[i][j] = x[index[i][j]][j] for dim 0; `index` may be smaller than `x` in other dims."""
    check_index("gather", index, _size(x.shape, dim), "index", dim)
    return np.asarray(x[_points(x.shape, dim, index)])


def gather_backward(g: Array, shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """Zeros of `shape` with each entry of `g` added where it was read."""
    check_index("gather", index, _size(shape, dim), "index", dim)
    out = np.zeros(shape, g.dtype)
    np.add.at(out, _points(shape, dim, index), g)
    return out


def scatter(x: Array, dim: int, index: Array, source: Array) -> Array:
    """A copy of `x` with source[i][j] written at [index[i][j]][j] (dim 0); the last one stays."""
    check_index("scatter", index, _size(x.shape, dim), "index", dim)
    out = x.copy()
    out[_points(x.shape, dim, index)] = _corner(source, index.shape)
    return out


def scatter_add(x: Array, dim: int, index: Array, source: Array) -> Array:
    """A copy of `x` with source[i][j] added at [index[i][j]][j] (dim 0)."""
    check_index("scatter_add", index, _size(x.shape, dim), "index", dim)
    out = x.copy()
    np.add.at(out, _points(x.shape, dim, index), _corner(source, index.shape))
    return out


def _size(shape: tuple[int, ...], dim: int) -> int:
    return shape[dim] if shape else 1


def _along(ndim: int, dim: int, index: Array) -> tuple[Any, ...]:
    return (*(slice(None) for _ in range(dim % ndim)), index)


def _points(shape: tuple[int, ...], dim: int, index: Array) -> tuple[Any, ...]:
    if not shape:
        return ()
    # An open grid takes several times longer to make than a small array to read.
    make = _known_grid if index.size <= 1024 else _open_grid
    before, after = make(index.shape, dim)
    return (*before, index, *after)


def _open_grid(shape: tuple[int, ...], dim: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The open grid of the dims before `dim`, and of those after it."""
    grid = np.ix_(*(np.arange(n) for n in shape))
    dim %= len(shape)
    return grid[:dim], grid[dim + 1 :]


_known_grid = functools.lru_cache(maxsize=64)(_open_grid)


def _corner(source: Array, shape: tuple[int, ...]) -> Array:
    """The leading part of `source` that the index covers; a number is written everywhere."""
    return source[tuple(slice(n) for n in shape)] if source.ndim else source
