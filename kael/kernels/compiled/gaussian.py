"""erf and the exact gelu: each entry needs one of the four rational functions that NumPy forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kael.kernels.axes import Array
from kael.kernels.compiled.elementwise import elementwise
from kael.kernels.compiled.jit import inlined, kernel
from kael.kernels.compiled.scalar import exp
from kael.kernels.gaussian import (
    ERX,
    HUGE_P,
    HUGE_Q,
    INV_SQRT_2PI,
    LARGE_P,
    LARGE_Q,
    LARGE_TO,
    MIDDLE_P,
    MIDDLE_Q,
    MIDDLE_TO,
    SMALL_P,
    SMALL_Q,
    SMALL_TO,
    SQRT_HALF,
)


@inlined
def _polynomial(coefficients: Any, x: Any) -> Any:
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


@inlined
def _tail(size: Any) -> Any:
    s = 1 / (size * size)
    if size < LARGE_TO:
        ratio = _polynomial(LARGE_P, s) / _polynomial(LARGE_Q, s)
    else:
        ratio = _polynomial(HUGE_P, s) / _polynomial(HUGE_Q, s)
    head = np.float64(np.float32(size))
    return exp(-head * head - 0.5625) * exp((head - size) * (head + size) + ratio) / size


@inlined
def _erf_scalar(x: Any) -> Any:
    size = abs(x)
    if size < SMALL_TO:
        z = x * x
        return x + x * (_polynomial(SMALL_P, z) / _polynomial(SMALL_Q, z))
    if size < MIDDLE_TO:
        s = size - 1
        value = ERX + _polynomial(MIDDLE_P, s) / _polynomial(MIDDLE_Q, s)
    elif size < 6:
        value = 1 - _tail(size)
    else:
        value = 1.0 if size == size else size
    return math.copysign(value, x)


@inlined
def _normal_cdf(x: Any) -> Any:
    scaled = x * SQRT_HALF
    if scaled <= -28:
        return 0.0
    if scaled <= -MIDDLE_TO:
        return 0.5 * _tail(-scaled)
    return 0.5 + 0.5 * _erf_scalar(scaled)


@kernel
def _erf(x: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = _erf_scalar(np.float64(x[i]))


@kernel
def _gelu(x: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = x[i] * _normal_cdf(np.float64(x[i]))


@kernel
def _gelu_backward(g: Any, x: Any, out: Any) -> None:
    for i in range(x.size):
        wide = np.float64(x[i])
        near = min(max(wide, -40.0), 40.0) if wide == wide else wide
        density = INV_SQRT_2PI * exp(-0.5 * near * near)
        out[i] = g[i] * (_normal_cdf(wide) + near * density)


def erf(x: Array) -> Array | None:
    return elementwise(_erf, x)


def gelu(x: Array, approximate: bool = False) -> Array | None:
    return None if approximate else elementwise(_gelu, x)


def gelu_backward(g: Array, x: Array, approximate: bool = False) -> Array | None:
    return None if approximate else elementwise(_gelu_backward, g, x)
