"""A small call of every kernel that has a compiled twin, and `warmup`, which makes them all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from kael.kernels import elementwise, reductions, rows, tiers
from kael.kernels.axes import Array


def sample_calls(x: Array, g: Array) -> dict[str, tuple[Any, ...]]:
    """Arguments for each kernel by name, from two matrices of one shape and dtype."""
    lines, columns = x.shape
    per_row, targets = g[:, 0].copy(), np.arange(lines) % max(columns, 1)
    places = np.broadcast_to(targets[:, None], x.shape).copy()
    # Moved past 1, so that the same entries serve as divisors.
    other = np.asarray(np.abs(x) + 1)
    return {
        "softmax": (x, 1),
        "softmax_backward": (g, rows.softmax(x, 1), 1),
        "log_softmax": (x, 1),
        "log_softmax_backward": (g, rows.log_softmax(x, 1), 1),
        "logsumexp": (x, 1),
        "logsumexp_backward": (per_row, x, rows.logsumexp(x, 1), 1),
        "cross_entropy": (x, targets),
        "cross_entropy_backward": (per_row, x, targets),
        "standardize": (x, 1, 1e-5),
        "standardize_backward": (g, x, rows.standardize(x, 1, 1e-5), 1, 1e-5),
        "index_select": (x, 0, np.zeros_like(targets)),
        "index_select_backward": (g, x.shape, 0, np.zeros_like(targets)),
        "index_add": (x, 0, np.zeros_like(targets), g),
        "gather": (x, 1, places),
        "gather_backward": (g, x.shape, 1, places),
        "scatter_add": (x, 1, places, g),
        "prod_backward": (per_row, x, 1),
        "extreme_backward": (per_row, x, reductions.amax(x, 1), 1),
        "var": (x, 1),
        "var_backward": (per_row, x, 1),
        "norm_backward": (per_row, x, reductions.norm(x, 2, 1), 2, 1),
        "cumsum_backward": (g, 1),
        "sigmoid": (x,),
        "sigmoid_backward": (g, elementwise.sigmoid(x)),
        "tanh_backward": (g, np.tanh(x)),
        "relu_backward": (g, x),
        "abs_backward": (g, x),
        "clamp_backward": (g, x, -1.0, 1.0),
        "select": (np.asarray(x > 0), g),
        "div_backward_other": (g, x, other),
        "erf": (x,),
        "gelu": (x,),
        "gelu_backward": (g, x),
    }


def warmup() -> Iterator[tuple[str, float]]:
    """Compile and cache every kernel for float64 and float32; gives each name and its seconds.

    Gives nothing more once the compiler turns out not to work; `tiers.failure()` says why.
    """
    for dtype in (np.float64, np.float32):
        x = np.linspace(-2, 2, 24, dtype=dtype).reshape(4, 6)
        for name, arguments in sample_calls(x, x[::-1].copy()).items():
            start = time.perf_counter()
            with tiers.only("numba"):
                getattr(tiers, name)(*arguments)
            if tiers.failure() is not None:
                return
            yield f"{name} {np.dtype(dtype).name}", time.perf_counter() - start
