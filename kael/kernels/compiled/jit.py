"""How kernels are compiled, cached and spread over threads.

`error_model="numpy"` makes a division by zero inf instead of an exception; `fastmath` is never
used, since it lets the compiler assume that no NaN exists. Instead of numba's parallel loops,
which take several times longer to compile and must not run in two threads at once, kernels release
the interpreter's lock and run on slices of their first axis: one compiled version serves both.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba
import numpy as np

from kael.kernels import buffers
from kael.kernels.axes import Array

Function = TypeVar("Function", bound=Callable[..., Any])
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# Entries from which a second thread saves time (benchmarks/crossover.py, "threads").
THREADS_FROM = 1 << 18


def kernel(function: Function) -> Function:
    """Compile on first use, and cache on disk where a folder can be written."""
    return cast(Function, _njit(function))


def inlined(function: Function) -> Function:
    """A part of kernels, compiled into each of them."""
    compiled: Any = numba.njit(error_model="numpy", nogil=True)(function)
    return cast(Function, compiled)


def _njit(function: Any) -> Any:
    try:
        return numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    except RuntimeError:  # numba found no folder that it may write
        return numba.njit(error_model="numpy", nogil=True)(function)


def contiguous(x: Array) -> Array:
    """`x` itself if it is C-contiguous and aligned, else a copy."""
    return x if x.flags.c_contiguous and x.flags.aligned else buffers.copy(x)


def spread(
    function: Callable[..., Any], entries: int, arrays: tuple[Array, ...], *rest: Any
) -> None:
    """Call `function(*arrays, *rest)` on slices of the arrays' first axis, one for each thread."""
    rows = len(arrays[0])
    threads = min(_threads(), rows, max(entries // (THREADS_FROM // 2), 1))
    if threads < 2:
        function(*arrays, *rest)
        return
    cuts = [rows * k // threads for k in range(threads + 1)]
    jobs = [
        _executor().submit(function, *(a[cuts[k] : cuts[k + 1]] for a in arrays), *rest)
        for k in range(1, threads)
    ]
    function(*(a[: cuts[1]] for a in arrays), *rest)
    for job in jobs:
        job.result()


def _threads() -> int:
    config: Any = numba.config
    return int(config.NUMBA_NUM_THREADS)


_pool: ThreadPoolExecutor | None = None


def _executor() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(_threads() - 1, 1), thread_name_prefix="kael-kernel")
    return _pool


def _forget_executor() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):  # a child has no threads, only the parent's object
    os.register_at_fork(after_in_child=_forget_executor)
