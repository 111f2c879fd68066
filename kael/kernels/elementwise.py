"""Elementwise kernels in NumPy: sigmoid and the backward formulas of math operations.

Masks select, they never multiply: inf * 0 must not make a NaN. erf and gelu are in `gaussian.py`.
The compiled versions are in `compiled_elementwise.py`; `tiers.py` decides which runs.
"""

from __future__ import annotations

import numpy as np

from kael.kernels.axes import Array

# NumPy takes longer to read a Python number than to subtract a small array.
_ONE = {dtype: np.ones((), dtype) for dtype in map(np.dtype, ("float64", "float32"))}


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow: exp(-709) is the smallest that matters."""
    out = np.asarray(np.negative(x))
    np.exp(out, out=out)
    out += 1
    return np.asarray(np.reciprocal(out, out=out))


def sigmoid_backward(g: Array, out: Array) -> Array:
    """g * out * (1 - out)."""
    return np.asarray(g * (out * (_ONE.get(out.dtype, 1) - out)))


def tanh_backward(g: Array, out: Array) -> Array:
    """g * (1 - out * out)."""
    return np.asarray(g * (_ONE.get(out.dtype, 1) - out * out))


def relu(x: Array) -> Array:
    """max(x, 0), NaN where x is."""
    return np.asarray(np.maximum(x, x.dtype.type(0)))


def relu_backward(g: Array, x: Array) -> Array:
    """g where x > 0, else 0."""
    return np.where(x > 0, g, x.dtype.type(0))


def abs_backward(g: Array, x: Array) -> Array:
    """g where x > 0, -g where x < 0, 0 at 0, NaN where x is."""
    rest = np.where(x == 0, x.dtype.type(0), x)
    return np.where(x > 0, g, np.where(x < 0, -g, rest))


def clamp_backward(g: Array, x: Array, low: float | None, high: float | None) -> Array:
    """g where low <= x <= high, else 0; a limit of None is open."""
    inside = np.ones(x.shape, bool) if low is None else np.asarray(x >= low)
    if high is not None:
        inside &= x <= high
    return np.where(inside, g, x.dtype.type(0))


def select(mask: Array, g: Array) -> Array:
    """g where the mask is true, else 0: the backward of `where` and of every branch."""
    return np.where(mask, g, g.dtype.type(0))


def div_backward_other(g: Array, x: Array, other: Array) -> Array:
    """-g * x / other**2, the gradient of x / other in `other`, as -(g / other) * (x / other)."""
    return np.asarray(-(g / other) * (x / other))
