"""Elementwise arithmetic and elementary functions: one declaration a formula.

Special functions are in `special.py`, activations in `activation.py`, losses in `loss.py`, what has
no gradient in `compare.py`. Formulas read NumPy arrays and keep float32: their constants are Python
numbers. A mask selects, it never multiplies, since inf * 0 is NaN.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from kael import kernels
from kael.engine.formula import upstream
from kael.errors import KaelValueError
from kael.ops import declare
from kael.ops.declare import Operation, formula
from kael.ops.samples import away_from, broadcast_samples, normal, positive, uniform

Array = np.ndarray[Any, Any]

unary = partial(declare.unary, family="math")
binary = partial(declare.binary, family="math")

# Formulas of large gradients write to memory that is used again.
times = kernels.pooled(np.multiply)

LN2, LN10 = math.log(2), math.log(10)

TIE = "half to each side of a tie"
BELOW, ABOVE = uniform(-2, 0.9), uniform(1.0, 2.0)  # operands that never tie
INSIDE = uniform(-0.9, 0.9)


def _power(x: Array, exponent: Array) -> Array:
    integers = x.dtype.kind in "iub" and exponent.dtype.kind in "iu"
    if integers and bool((exponent < 0).any()):
        raise ValueError("an integer has no integer power below 0; make the base floating point")
    if exponent.ndim == 0 and x.dtype.kind in "fc":
        # NumPy's general power is fifty times slower than a product.
        if exponent == 2:
            return np.asarray(x * x)
        if exponent == 1:
            return np.array(x)
    out = np.asarray(np.power(x, exponent))
    halves = exponent == 0.5
    if halves.any():
        # For some strides NumPy takes the square root, which is NaN at -inf and -0.0 at -0.0.
        np.copyto(out, np.sqrt(np.abs(x)), where=halves & ((x == 0) | (x == -np.inf)))
    return out


def _pow_base(g: Array, x: Array, exponent: Array) -> Array:
    # Where the exponent is 0 the factor p is 0, but 0 ** -1 beside it would make a NaN.
    exponent = exponent.astype(g.dtype, copy=False)  # before 1 is taken off in less precision
    slope = exponent * _power(x, np.asarray(exponent - 1))
    return np.where(exponent == 0, 0.0, g * slope)


def _pow_exponent(g: Array, x: Array, out: Array) -> Array:
    base = np.where(x == 0, 1.0, x).astype(g.dtype, copy=False)
    return np.where(x == 0, 0.0, g * (out * np.log(base)))


def _lerp(x: Array, end: Array, weight: Array) -> Array:
    # From the nearer end, so that a weight of 1 gives `end` itself however far x is.
    step = end - x
    near = np.abs(weight) < 0.5
    return np.asarray(np.where(near, x + weight * step, end - step * (1 - weight)))


def _winner(g: Array, mine: Array, theirs: Array) -> Array:
    return np.where(mine > theirs, g, np.where(mine == theirs, g * 0.5, 0.0))


def _atan2(g: Array, side: Array, x: Array, other: Array) -> Array:
    # Divided twice: the square of the radius would overflow long before the slope vanishes.
    radius = np.hypot(x, other)
    return np.where(radius == 0, 0.0, g * (side / radius / radius))


def _hypot(g: Array, side: Array, out: Array) -> Array:
    return np.where(out == 0, 0.0, g * (side / out))


def _logaddexp(g: Array, x: Array, other: Array) -> Array:
    # Equal operands share evenly, also where their difference is inf - inf.
    share = kernels.sigmoid(np.asarray(np.where(x == other, 0.0, x - other)))
    return np.where(np.maximum(x, other) == -np.inf, 0.0, g * share)


def _remainder(x: Array, other: Array) -> Array:
    if x.dtype.kind in "iub" and bool((other == 0).any()):
        raise ValueError("an integer cannot be divided by 0")
    return np.asarray(np.remainder(x, other))


def _fmod(x: Array, other: Array) -> Array:
    if x.dtype.kind in "iub" and bool((other == 0).any()):
        raise ValueError("an integer cannot be divided by 0")
    return np.asarray(np.fmod(x, other))


def _branch_cut(x: Array, other: Array) -> tuple[Array, ...]:
    return (np.where(other < 0, x, np.hypot(x, other)),)


def _limits(inputs: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    del inputs
    if arguments == (None, None):
        raise KaelValueError("clamp: min, max or both must be given")
    return arguments


def _outside(x: Array, min: float | None, max: float | None) -> tuple[Array, ...]:
    return tuple(x - limit for limit in (min, max) if limit is not None)


# Arithmetic.

add = binary(
    "add", np.add,
    vjp=(upstream, upstream), text=("g", "g"),
    domain=normal,
    doc="Return x + other.",
)  # fmt: skip
sub = binary(
    "sub", np.subtract,
    vjp=(upstream, formula(np.negative)), text=("g", "-g"),
    domain=normal, aliases=("subtract",),
    booleans="use logical_xor, or multiply by 1.0 for numbers",
    doc="Return x - other.",
)  # fmt: skip
mul = binary(
    "mul", np.multiply,
    vjp=(formula(np.multiply, "other"), formula(np.multiply, "x")),
    text=("g * other", "g * x"),
    domain=normal, aliases=("multiply",),
    doc="Return x * other.",
)  # fmt: skip
div = binary(
    "div", np.divide,
    vjp=(
        formula(np.divide, "other"),
        kernels.div_backward_other,
    ),
    text=("g / other", "-g * x / other**2"),
    domain=(normal, away_from(0.0)), real=True, aliases=("divide", "true_divide"),
    doc="Return x / other; integers divide to floating point.",
)  # fmt: skip
pow = binary(
    "pow", _power, second="exponent",
    vjp=(_pow_base, _pow_exponent),
    text=(
        "where(exponent == 0, 0, g * exponent * x**(exponent - 1))",
        "where(x == 0, 0, g * out * log(where(x == 0, 1, x)))",
    ),
    domain=(positive, normal),
    convention="base's gradient 0 where the exponent is 0; exponent's 0 where the base is 0",
    doc="Return x ** exponent; an integer to an integer power below 0 is an error.",
)  # fmt: skip
remainder = binary(
    "remainder", _remainder,
    vjp=(upstream, lambda g, x, other: -g * np.floor_divide(x, other)),
    text=("g", "-g * (x // other)"),
    domain=(uniform(3.2, 3.8), uniform(0.9, 1.05)), analytic=False,
    kink=lambda x, other: (x / other - np.round(x / other),),
    at_kink="as just above the jump",
    doc="Return x - other * floor(x / other), with the sign of other.",
)  # fmt: skip
fmod = binary(
    "fmod", _fmod,
    vjp=(upstream, lambda g, x, other: -g * np.trunc(x / other)),
    text=("g", "-g * trunc(x / other)"),
    domain=(uniform(3.2, 3.8), uniform(0.9, 1.05)), analytic=False,
    kink=lambda x, other: (x / other - np.round(x / other),),
    at_kink="as just beyond the jump, seen from 0",
    doc="Return x - other * trunc(x / other), with the sign of x.",
)  # fmt: skip
neg = unary(
    "neg", np.negative,
    vjp=formula(np.negative), text="-g",
    domain=normal, real=False, aliases=("negative",),
    booleans="use ~ or logical_not, or multiply by 1.0 for numbers",
    doc="Return -x.",
)  # fmt: skip
reciprocal = unary(
    "reciprocal", np.reciprocal,
    vjp=lambda g, out: -g * out * out, text="-g * out**2",
    domain=away_from(0.0), convention="-inf at 0",
    doc="Return 1 / x.",
)  # fmt: skip
square = unary(
    "square", lambda x: np.square(x, dtype=np.int64 if x.dtype.kind == "b" else None),
    vjp=lambda g, x: g * (2 * x), text="g * 2 * x",
    domain=normal, real=False,
    doc="Return x * x.",
)  # fmt: skip
abs = unary(
    "abs", np.abs,
    vjp=kernels.abs_backward, text="g * sign(x)",
    domain=away_from(0.0), real=False, analytic=False,
    kink=lambda x: (x,), at_kink="0", aliases=("absolute",),
    doc="Return the absolute value.",
)  # fmt: skip
maximum = binary(
    "maximum", np.maximum,
    vjp=(lambda g, x, other: _winner(g, x, other), lambda g, x, other: _winner(g, other, x)),
    text=(
        "where(x > other, g, where(x == other, g/2, 0))",
        "where(other > x, g, where(x == other, g/2, 0))",
    ),
    domain=(BELOW, ABOVE), analytic=False,
    kink=lambda x, other: (x - other,), at_kink=TIE,
    convention="maximum(x, 0) gives 1/2 at 0 where relu(x) gives 0",
    doc="Return the larger of x and other; NaN where either is NaN.",
)  # fmt: skip
minimum = binary(
    "minimum", np.minimum,
    vjp=(lambda g, x, other: _winner(g, other, x), lambda g, x, other: _winner(g, x, other)),
    text=(
        "where(x < other, g, where(x == other, g/2, 0))",
        "where(other < x, g, where(x == other, g/2, 0))",
    ),
    domain=(BELOW, ABOVE), analytic=False,
    kink=lambda x, other: (x - other,), at_kink=TIE,
    doc="Return the smaller of x and other; NaN where either is NaN.",
)  # fmt: skip
lerp = Operation(
    "lerp(x, end, weight)", _lerp,
    vjp={
        "x": lambda g, weight: g - g * weight,
        "end": lambda g, weight: g * weight,
        "weight": lambda g, x, end: g * (end - x),
    },
    text={"x": "g * (1 - weight)", "end": "g * weight", "weight": "g * (end - x)"},
    broadcasts=True, promotes=("x", "end", "weight"), real=True, analytic=True,
    batch="elementwise", family="math",
    samples=lambda rng: broadcast_samples(rng, normal, normal, normal),
    doc="Return x + weight * (end - x).",
)  # fmt: skip
addcmul = Operation(
    "addcmul(x, tensor1, tensor2, value=1)",
    lambda x, tensor1, tensor2, value: x + value * tensor1 * tensor2,
    vjp={
        "x": upstream,
        "tensor1": lambda g, tensor2, value: g * (value * tensor2),
        "tensor2": lambda g, tensor1, value: g * (value * tensor1),
    },
    text={"x": "g", "tensor1": "g * value * tensor2", "tensor2": "g * value * tensor1"},
    broadcasts=True, promotes=("x", "tensor1", "tensor2"), analytic=True,
    batch="elementwise", family="math",
    samples=lambda rng: broadcast_samples(
        rng, normal, normal, normal, settings=({}, {"value": -0.5})
    ),
    doc="Return x + value * tensor1 * tensor2.",
)  # fmt: skip
addcdiv = Operation(
    "addcdiv(x, tensor1, tensor2, value=1)",
    lambda x, tensor1, tensor2, value: x + value * (tensor1 / tensor2),
    vjp={
        "x": upstream,
        "tensor1": lambda g, tensor2, value: g * (value / tensor2),
        "tensor2": lambda g, tensor1, tensor2, value: -g * (value / tensor2) * (tensor1 / tensor2),
    },
    text={
        "x": "g",
        "tensor1": "g * value / tensor2",
        "tensor2": "-g * value * tensor1 / tensor2**2",
    },
    broadcasts=True, promotes=("x", "tensor1", "tensor2"), real=True, analytic=True,
    batch="elementwise", family="math",
    samples=lambda rng: broadcast_samples(
        rng, normal, normal, positive, settings=({}, {"value": -0.5})
    ),
    doc="Return x + value * tensor1 / tensor2.",
)  # fmt: skip

# Powers, exponentials and logarithms.

sqrt = unary(
    "sqrt", np.sqrt,
    vjp=lambda g, out: g / (2 * out), text="g / (2 * out)",
    domain=positive, convention="inf at 0",
    doc="Return the square root.",
)  # fmt: skip
rsqrt = unary(
    "rsqrt", lambda x: 1 / np.sqrt(x),
    vjp=lambda g, x, out: g * (out / x * -0.5), text="g * out / x * -0.5",
    domain=positive, convention="-inf at 0",
    doc="Return 1 / sqrt(x).",
)  # fmt: skip
exp = unary(
    "exp", np.exp,
    vjp=formula(np.multiply, "out"), text="g * out",
    domain=normal,
    doc="Return e ** x.",
)  # fmt: skip
exp2 = unary(
    "exp2", np.exp2,
    vjp=lambda g, out: g * (out * LN2), text="g * out * log(2)",
    domain=normal, analytic=False,
    doc="Return 2 ** x.",
)  # fmt: skip
expm1 = unary(
    "expm1", np.expm1,
    vjp=lambda g, out: g * (out + 1), text="g * (out + 1)",
    domain=normal,
    doc="Return e ** x - 1, exact also near 0.",
)  # fmt: skip
log = unary(
    "log", np.log,
    vjp=formula(np.divide, "x"), text="g / x",
    domain=positive, convention="inf at 0",
    doc="Return the natural logarithm.",
)  # fmt: skip
log2 = unary(
    "log2", np.log2,
    vjp=lambda g, x: g / (x * LN2), text="g / (x * log(2))",
    domain=positive, convention="inf at 0",
    doc="Return the logarithm to base 2.",
)  # fmt: skip
log10 = unary(
    "log10", np.log10,
    vjp=lambda g, x: g / (x * LN10), text="g / (x * log(10))",
    domain=positive, convention="inf at 0",
    doc="Return the logarithm to base 10.",
)  # fmt: skip
log1p = unary(
    "log1p", np.log1p,
    vjp=lambda g, x: g / (x + 1), text="g / (x + 1)",
    domain=positive, convention="inf at -1",
    doc="Return log(1 + x), exact also near 0.",
)  # fmt: skip
logaddexp = binary(
    "logaddexp", np.logaddexp,
    vjp=(
        lambda g, x, other: _logaddexp(g, x, other),
        lambda g, x, other: _logaddexp(g, other, x),
    ),
    text=(
        "where(maximum(x, other) == -inf, 0, g * sigmoid(where(x == other, 0, x - other)))",
        "where(maximum(x, other) == -inf, 0, g * sigmoid(where(x == other, 0, other - x)))",
    ),
    domain=normal, real=True, analytic=False,
    convention="gradient 0 where both operands are -inf, half each where both are inf",
    doc="Return log(exp(x) + exp(other)) without overflow.",
)  # fmt: skip
hypot = binary(
    "hypot", np.hypot,
    vjp=(lambda g, x, out: _hypot(g, x, out), lambda g, other, out: _hypot(g, other, out)),
    text=("where(out == 0, 0, g * x / out)", "where(out == 0, 0, g * other / out)"),
    domain=(positive, normal), real=True, analytic=False,
    kink=lambda x, other: (np.hypot(x, other),), at_kink="0 to both at the origin",
    doc="Return sqrt(x**2 + other**2), scaled so that no square overflows or underflows.",
)  # fmt: skip

# Trigonometric and hyperbolic functions.

sin = unary(
    "sin", np.sin,
    vjp=lambda g, x, *, times=times: times(g, np.cos(x)), text="g * cos(x)",
    domain=normal,
    doc="Return the sine of x, in radians.",
)  # fmt: skip
cos = unary(
    "cos", np.cos,
    vjp=lambda g, x, *, times=times: times(np.negative(g), np.sin(x)), text="-g * sin(x)",
    domain=normal,
    doc="Return the cosine of x, in radians.",
)  # fmt: skip
tan = unary(
    "tan", np.tan,
    vjp=lambda g, out: g * (1 + out * out), text="g * (1 + out**2)",
    domain=uniform(-1.2, 1.2),
    doc="Return the tangent of x, in radians.",
)  # fmt: skip
asin = unary(
    "asin", np.arcsin,
    vjp=lambda g, x: g / np.sqrt((1 - x) * (1 + x)), text="g / sqrt(1 - x**2)",
    domain=INSIDE, convention="inf at -1 and 1", aliases=("arcsin",),
    doc="Return the angle whose sine is x; NaN beyond -1 and 1.",
)  # fmt: skip
acos = unary(
    "acos", np.arccos,
    vjp=lambda g, x: -g / np.sqrt((1 - x) * (1 + x)), text="-g / sqrt(1 - x**2)",
    domain=INSIDE, convention="-inf at -1 and 1", aliases=("arccos",),
    doc="Return the angle whose cosine is x; NaN beyond -1 and 1.",
)  # fmt: skip
atan = unary(
    "atan", np.arctan,
    vjp=lambda g, x: g / (1 + x * x), text="g / (1 + x**2)",
    domain=normal, aliases=("arctan",),
    doc="Return the angle whose tangent is x.",
)  # fmt: skip
atan2 = binary(
    "atan2", np.arctan2,
    vjp=(
        lambda g, x, other: _atan2(g, other, x, other),
        lambda g, x, other: _atan2(-g, x, x, other),
    ),
    text=(
        "where(hypot(x, other) == 0, 0, g * other / hypot(x, other)**2)",
        "where(hypot(x, other) == 0, 0, -g * x / hypot(x, other)**2)",
    ),
    domain=(away_from(0.0), positive), real=True, analytic=False, aliases=("arctan2",),
    kink=_branch_cut, at_kink="0 to both at the origin; the cut of the angle has a slope",
    doc="Return the angle of the point (other, x), from -pi to pi.",
)  # fmt: skip
sinh = unary(
    "sinh", np.sinh,
    vjp=lambda g, x: g * np.cosh(x), text="g * cosh(x)",
    domain=normal,
    doc="Return the hyperbolic sine.",
)  # fmt: skip
cosh = unary(
    "cosh", np.cosh,
    vjp=lambda g, x: g * np.sinh(x), text="g * sinh(x)",
    domain=normal,
    doc="Return the hyperbolic cosine.",
)  # fmt: skip
tanh = unary(
    "tanh", np.tanh,
    vjp=kernels.tanh_backward, text="g * (1 - out**2)",
    domain=normal,
    doc="Return the hyperbolic tangent.",
)  # fmt: skip
asinh = unary(
    "asinh", np.arcsinh,
    vjp=lambda g, x: g / np.hypot(x, 1), text="g / sqrt(x**2 + 1)",
    domain=normal, aliases=("arcsinh",),
    doc="Return the inverse hyperbolic sine.",
)  # fmt: skip
acosh = unary(
    "acosh", np.arccosh,
    vjp=lambda g, x: g / (np.sqrt(x - 1) * np.sqrt(x + 1)), text="g / sqrt(x**2 - 1)",
    domain=uniform(1.3, 3.0), convention="inf at 1", aliases=("arccosh",),
    doc="Return the inverse hyperbolic cosine; NaN below 1.",
)  # fmt: skip
atanh = unary(
    "atanh", np.arctanh,
    vjp=lambda g, x: g / ((1 - x) * (1 + x)), text="g / (1 - x**2)",
    domain=INSIDE, convention="inf at -1 and 1", aliases=("arctanh",),
    doc="Return the inverse hyperbolic tangent; NaN beyond -1 and 1.",
)  # fmt: skip

clamp = unary(
    "clamp", np.clip, arguments="min=None, max=None",
    vjp=lambda g, x, min, max: kernels.clamp_backward(g, x, min, max),
    text="where(clamp(x, min, max) == x, g, 0)",
    domain=away_from(-0.5, 1.0),
    settings=({"min": -0.5, "max": 1.0}, {"min": -0.5}, {"max": 1.0}),
    prepare=_limits, real=False, analytic=False, aliases=("clip",),
    kink=_outside, at_kink="1 at both limits",
    doc="Return x limited to [min, max]; a limit of None is open, and max wins over a larger min.",
)  # fmt: skip
