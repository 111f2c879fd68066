"""Elementwise arithmetic and elementary functions: one declaration a formula."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kael.ops.declare import Operation, binary, unary
from kael.ops.samples import away_from, normal, positive, uniform

Array = np.ndarray[Any, Any]


def _pow_base(g: Array, x: Array, other: Array) -> Array:
    # Where the exponent is 0 the factor p is 0, but 0 ** -1 beside it would make a NaN.
    return np.where(other == 0, 0.0, g * (other * np.power(x, other - 1)))


def _pow_exponent(g: Array, x: Array, out: Array) -> Array:
    return np.where(x == 0, 0.0, g * (out * np.log(np.where(x == 0, 1.0, x))))


def _winner(g: Array, mine: Array, theirs: Array) -> Array:
    return np.where(mine > theirs, g, np.where(mine == theirs, g * 0.5, 0.0))


add = binary(
    "add", np.add,
    vjp=(lambda g: g, lambda g: g), text=("g", "g"),
    domain=normal,
    doc="Return x + other.",
)  # fmt: skip
sub = binary(
    "sub", np.subtract,
    vjp=(lambda g: g, lambda g: -g), text=("g", "-g"),
    domain=normal,
    doc="Return x - other.",
)  # fmt: skip
mul = binary(
    "mul", np.multiply,
    vjp=(lambda g, other: g * other, lambda g, x: g * x), text=("g * other", "g * x"),
    domain=normal,
    doc="Return x * other.",
)  # fmt: skip
div = binary(
    "div", np.divide,
    vjp=(lambda g, other: g / other, lambda g, x, other: -g * x / (other * other)),
    text=("g / other", "-g * x / other**2"),
    domain=(normal, away_from(0.0)), real=True,
    doc="Return x / other; integers divide to floating point.",
)  # fmt: skip
pow = binary(
    "pow", np.power,
    vjp=(_pow_base, _pow_exponent),
    text=(
        "where(other == 0, 0, g * other * x**(other - 1))",
        "where(x == 0, 0, g * out * log(where(x == 0, 1, x)))",
    ),
    domain=(positive, normal),
    convention="base's gradient 0 where the exponent is 0; exponent's 0 where the base is 0",
    doc="Return x ** other.",
)  # fmt: skip
maximum = binary(
    "maximum", np.maximum,
    vjp=(lambda g, x, other: _winner(g, x, other), lambda g, x, other: _winner(g, other, x)),
    text=(
        "where(x > other, g, where(x == other, g/2, 0))",
        "where(other > x, g, where(x == other, g/2, 0))",
    ),
    domain=(uniform(-2, 0.9), uniform(1.0, 2.0)), analytic=False,
    kink=lambda x, other: (x - other,), at_kink="half to each side of a tie",
    doc="Return the larger of x and other; NaN where either is NaN.",
)  # fmt: skip
minimum = binary(
    "minimum", np.minimum,
    vjp=(lambda g, x, other: _winner(g, other, x), lambda g, x, other: _winner(g, x, other)),
    text=(
        "where(x < other, g, where(x == other, g/2, 0))",
        "where(other < x, g, where(x == other, g/2, 0))",
    ),
    domain=(uniform(-2, 0.9), uniform(1.0, 2.0)), analytic=False,
    kink=lambda x, other: (x - other,), at_kink="half to each side of a tie",
    doc="Return the smaller of x and other; NaN where either is NaN.",
)  # fmt: skip
neg = unary(
    "neg", np.negative,
    vjp=lambda g: -g, text="-g",
    domain=normal, real=False,
    doc="Return -x.",
)  # fmt: skip
abs = unary(
    "abs", np.abs,
    vjp=lambda g, x: g * np.sign(x), text="g * sign(x)",
    domain=away_from(0.0), real=False, analytic=False,
    kink=lambda x: (x,), at_kink="0", aliases=("absolute",),
    doc="Return the absolute value.",
)  # fmt: skip
exp = unary(
    "exp", np.exp,
    vjp=lambda g, out: g * out, text="g * out",
    domain=normal,
    doc="Return e ** x.",
)  # fmt: skip
log = unary(
    "log", np.log,
    vjp=lambda g, x: g / x, text="g / x",
    domain=positive,
    doc="Return the natural logarithm.",
)  # fmt: skip
sqrt = unary(
    "sqrt", np.sqrt,
    vjp=lambda g, out: g / (2 * out), text="g / (2 * out)",
    domain=positive, convention="inf at 0",
    doc="Return the square root.",
)  # fmt: skip
sin = unary(
    "sin", np.sin,
    vjp=lambda g, x: g * np.cos(x), text="g * cos(x)",
    domain=normal,
    doc="Return the sine of x, in radians.",
)  # fmt: skip
cos = unary(
    "cos", np.cos,
    vjp=lambda g, x: -g * np.sin(x), text="-g * sin(x)",
    domain=normal,
    doc="Return the cosine of x, in radians.",
)  # fmt: skip
tanh = unary(
    "tanh", np.tanh,
    vjp=lambda g, out: g - g * out * out, text="g * (1 - out**2)",
    domain=normal,
    doc="Return the hyperbolic tangent.",
)  # fmt: skip
