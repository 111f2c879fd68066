"""Special functions, elementwise: one declaration a formula.

`erf` is kael's own; the others come from `scipy.special`, which is imported when the first of them
runs, since its import costs three times NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kael import kernels, shapes
from kael.errors import KaelValueError
from kael.ops import declare
from kael.ops.declare import Operation
from kael.ops.samples import away_from, normal, positive, unary_samples, uniform
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

unary = partial(declare.unary, family="special", analytic=False)
binary = partial(declare.binary, family="special", analytic=False)

TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)


def _scipy(name: str) -> Callable[..., Any]:
    """Return the function of that name from `scipy.special`, imported at the first call."""

    def call(*operands: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*operands)

    return call


digamma_of = _scipy("digamma")


def _polygamma(n: int, x: Array) -> Array:
    if n == 0:
        return np.asarray(digamma_of(x))
    if n == 1:
        return _trigamma(x)
    return _by_zeta(n, x)


def _by_zeta(n: int, x: Array) -> Array:
    """(-1)**(n + 1) * n! * zeta(n + 1, x), Abramowitz and Stegun 6.4.10; x positive."""
    sign = 1 if n % 2 else -1
    return np.asarray(sign * math.factorial(n) * _scipy("zeta")(float(n + 1), x)).astype(
        x.dtype, copy=False
    )


def _trigamma(x: Array) -> Array:
    """polygamma(1, x) on both sides of 0, by reflection: pi**2 / sin(pi x)**2 - f(1 - x)."""
    left = x < 0.5
    value = _by_zeta(1, np.where(left, 1 - x, x))
    # The sine is periodic: reduce first, since sin(pi * x) loses the digits of a large x.
    slope = math.pi / np.sin(math.pi * (x - np.round(x)))
    return np.where(left, slope * slope - value, value)


def _order(inputs: tuple[Tensor, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    del inputs
    n = shapes.as_index(arguments[0], "polygamma", "n")
    if n < 0:
        raise KaelValueError(f"polygamma: n must not be negative, got {n}")
    return (n,)


def _xlogy(x: Array, other: Array) -> Array:
    # NaN in other is not hidden by x = 0; log(0) and log of a negative number are.
    return np.where((x == 0) & ~np.isnan(other), 0.0, x * np.log(other))


def _xlogy_factor(g: Array, x: Array, other: Array) -> Array:
    logs = np.log(other.astype(g.dtype, copy=False))
    return np.where((x == 0) & (other <= 0), 0.0, g * logs)


erf = unary(
    "erf", kernels.erf,
    vjp=kernels.erf_backward, text="g * 2 / sqrt(pi) * exp(-x**2)",
    domain=normal,
    doc="Return the error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.",
)  # fmt: skip
erfc = unary(
    "erfc", _scipy("erfc"),
    vjp=lambda g, x: -g * (TWO_OVER_SQRT_PI * np.exp(-(x * x))),
    text="-g * 2 / sqrt(pi) * exp(-x**2)",
    domain=normal,
    doc="Return 1 - erf(x), exact also where that is tiny.",
)  # fmt: skip
erfinv = unary(
    "erfinv", _scipy("erfinv"),
    vjp=lambda g, out: g * (np.exp(out * out) / TWO_OVER_SQRT_PI),
    text="g * sqrt(pi) / 2 * exp(out**2)",
    domain=uniform(-0.9, 0.9), convention="inf at -1 and 1",
    doc="Return the inverse of erf; NaN beyond -1 and 1.",
)  # fmt: skip


def _lgamma(x: Array) -> Array:
    out = _scipy("gammaln")(x)
    # SciPy overflows near 0, where gamma(x) is 1 / x, and gives -inf at -inf.
    size = np.abs(x)
    out = np.where(size < 1e-300, -np.log(size), out)
    return np.where(np.isinf(x), size, out).astype(x.dtype, copy=False)


lgamma = unary(
    "lgamma", _lgamma,
    vjp=lambda g, x: g * digamma_of(x), text="g * digamma(x)",
    domain=positive,
    doc="Return the logarithm of abs(gamma(x)).",
)  # fmt: skip
digamma = unary(
    "digamma", digamma_of,
    vjp=lambda g, x: g * _trigamma(x), text="g * polygamma(1, x)",
    domain=positive,
    doc="Return the derivative of lgamma.",
)  # fmt: skip
polygamma = Operation(
    "polygamma(n, x)", lambda x, n: _polygamma(n, x),
    vjp={"x": lambda g, x, n: g * _polygamma(n + 1, x)}, text={"x": "g * polygamma(n + 1, x)"},
    real=True, prepare=_order, batch="elementwise", method=False, family="special",
    samples=lambda rng: unary_samples(rng, positive, ({"n": 0}, {"n": 1}, {"n": 2})),
    doc="Return the n-th derivative of digamma; positive x only where n > 1.",
)  # fmt: skip
xlogy = binary(
    "xlogy", _xlogy,
    vjp=(
        _xlogy_factor,
        lambda g, x, other: np.where(x == 0, 0.0, g * (x / other)),
    ),
    text=(
        "where((x == 0) & (other <= 0), 0, g * log(other))",
        "where(x == 0, 0, g * x / other)",
    ),
    domain=(away_from(0.0), positive), real=True,
    convention="value 0 and both gradients 0 at xlogy(0, 0)",
    doc="Return x * log(other), and 0 where x is 0.",
)  # fmt: skip
