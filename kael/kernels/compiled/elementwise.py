"""Elementwise formulas in one pass: what NumPy does in several, each through memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kael.kernels import buffers
from kael.kernels.axes import Array
from kael.kernels.compiled.jit import FLOATS, contiguous, kernel, spread
from kael.kernels.compiled.scalar import exp


@kernel
def _sigmoid(x: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = 1 / (1 + exp(-np.float64(x[i])))


@kernel
def _sigmoid_backward(g: Any, y: Any, out: Any) -> None:
    for i in range(g.size):
        out[i] = g[i] * (y[i] * (1 - y[i]))


@kernel
def _tanh_backward(g: Any, y: Any, out: Any) -> None:
    for i in range(g.size):
        out[i] = g[i] * (1 - y[i] * y[i])


@kernel
def _relu_backward(g: Any, x: Any, out: Any) -> None:
    for i in range(g.size):
        out[i] = g[i] if x[i] > 0 else 0


@kernel
def _abs_backward(g: Any, x: Any, out: Any) -> None:
    for i in range(g.size):
        rest = 0 if x[i] == 0 else x[i]
        out[i] = g[i] if x[i] > 0 else (-g[i] if x[i] < 0 else rest)


@kernel
def _clamp_backward(g: Any, x: Any, out: Any, low: Any, high: Any) -> None:
    for i in range(g.size):
        out[i] = g[i] if low <= x[i] <= high else 0


@kernel
def _select(mask: Any, g: Any, out: Any) -> None:
    for i in range(g.size):
        out[i] = g[i] if mask[i] else 0


@kernel
def _div_backward_other(g: Any, x: Any, other: Any, out: Any) -> None:
    for i in range(g.size):
        out[i] = -(g[i] / other[i]) * (x[i] / other[i])


def sigmoid(x: Array) -> Array | None:
    return elementwise(_sigmoid, x)


def sigmoid_backward(g: Array, out: Array) -> Array | None:
    return elementwise(_sigmoid_backward, g, out)


def tanh_backward(g: Array, out: Array) -> Array | None:
    return elementwise(_tanh_backward, g, out)


def relu_backward(g: Array, x: Array) -> Array | None:
    return elementwise(_relu_backward, g, x)


def abs_backward(g: Array, x: Array) -> Array | None:
    return elementwise(_abs_backward, g, x)


def clamp_backward(g: Array, x: Array, low: float | None, high: float | None) -> Array | None:
    if low is None or high is None:  # an open side lets NaN through, a comparison would not
        return None
    return elementwise(_clamp_backward, g, x, rest=(float(low), float(high)))


def select(mask: Array, g: Array) -> Array | None:
    return elementwise(_select, mask, g) if mask.dtype == bool else None


def div_backward_other(g: Array, x: Array, other: Array) -> Array | None:
    return elementwise(_div_backward_other, g, x, other)


def elementwise(
    function: Callable[..., Any], *arrays: Array, rest: tuple[float, ...] = ()
) -> Array | None:
    """`function(*arrays, out, *rest)` on flat arrays of one shape and dtype; None for others.

    Masks may be among them: booleans count as any dtype.
    """
    x = arrays[-1]
    if x.dtype not in FLOATS or x.size == 0:
        return None
    if any(a.shape != x.shape or a.dtype not in (x.dtype, np.bool_) for a in arrays):
        return None
    out = buffers.empty(x.shape, x.dtype)
    flat = [contiguous(a).reshape(-1) for a in (*arrays, out)]
    spread(function, x.size, tuple(flat), *rest)
    return out
