"""Large result arrays whose memory is used again; small ones are NumPy's own.

A fresh page costs more than the arithmetic on it. An array from `empty` is a view on a lease;
when the last array that shares its memory is gone, and not before, the lease hands the block back.
Nothing else about such an array is special: it is writable, and a user may keep it for ever.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from kael.kernels.axes import Array

# Below this NumPy's allocator mostly has warm pages, and the bookkeeping here, 10 microseconds,
# is more than a tenth of an addition (benchmarks/crossover.py prints both).
POOL_FROM_BYTES = 1 << 22
# How much idle memory is kept for the next result; the oldest sizes go first.
IDLE_LIMIT_BYTES = 1 << 30
_ALIGNMENT = 64

_idle: dict[int, list[Array]] = {}
# Reentrant, since a lease may die in the middle of `_take` when the garbage collector runs.
_lock = threading.RLock()


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of arbitrary values, like `np.empty`."""
    size = math.prod(shape) * dtype.itemsize
    if size < POOL_FROM_BYTES:
        return np.empty(shape, dtype)
    return np.asarray(_Lease(_take(size), shape, dtype))


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of zeros, like `np.zeros`."""
    out = empty(shape, dtype)
    out.fill(0)
    return out


def copy(x: Array) -> Array:
    """A C-contiguous copy of `x`."""
    if x.nbytes < POOL_FROM_BYTES:
        return x.copy()
    out = empty(x.shape, x.dtype)
    np.copyto(out, x)
    return out


def apply(ufunc: np.ufunc, *operands: Any) -> Array:
    """`ufunc(*operands)` with one output, written to reused memory when it is large.

    >>> apply(np.add, np.array([1.0, 2.0]), 3)
    array([4., 5.])
    """
    if max(getattr(x, "nbytes", 0) for x in operands) < POOL_FROM_BYTES:
        return np.asarray(ufunc(*operands))
    shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
    dtypes = ufunc.resolve_dtypes((*(_weak_dtype(x) for x in operands), None))
    out = empty(shape, dtypes[-1])
    ufunc(*operands, out=out)
    return out


def pooled(ufunc: np.ufunc) -> Callable[..., Array]:
    """Return the ufunc of one or two arrays as a kernel: `apply`, at no cost to small arrays.

    Its `plain` is the ufunc, for who knows that the arrays are small.

    >>> pooled(np.negative)(np.array([1.0, -2.0]))
    array([-1.,  2.])
    """

    def unary(x: Array) -> Any:
        return ufunc(x) if x.nbytes < POOL_FROM_BYTES else apply(ufunc, x)

    def binary(x: Array, other: Array) -> Any:
        if x.nbytes < POOL_FROM_BYTES and other.nbytes < POOL_FROM_BYTES:
            return ufunc(x, other)
        return apply(ufunc, x, other)

    kernel: Callable[..., Array] = unary if ufunc.nin == 1 else binary
    marked: Any = kernel
    marked.plain = ufunc
    return kernel


def clear() -> None:
    """Give all idle memory back to the system."""
    with _lock:
        _idle.clear()


def idle_bytes() -> int:
    """How much memory is kept for the next results."""
    return sum(size * len(blocks) for size, blocks in list(_idle.items()))


def _weak_dtype(operand: Any) -> Any:
    """A Python number never decides the dtype; `resolve_dtypes` knows it by its type."""
    is_number = isinstance(operand, (int, float)) and not isinstance(operand, (bool, np.generic))
    return type(operand) if is_number else np.asarray(operand).dtype


class _Lease:
    """Owns a block while any array looks at it; NumPy keeps it as those arrays' base."""

    __slots__ = ("__array_interface__", "_block")

    def __init__(self, block: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._block = block
        address = block.__array_interface__["data"][0]
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (address + -address % _ALIGNMENT, False),
        }

    def __del__(self) -> None:
        _give_back(self._block)


def _take(size: int) -> Array:
    with _lock:
        blocks = _idle.get(size)
        if blocks:
            return blocks.pop()
    return np.empty(size + _ALIGNMENT, np.uint8)


def _give_back(block: Array) -> None:
    size = block.nbytes - _ALIGNMENT
    with _lock:
        _idle[size] = [*_idle.pop(size, ()), block]  # now the newest size
        for oldest in list(_idle):
            if idle_bytes() <= IDLE_LIMIT_BYTES:
                break
            del _idle[oldest]
