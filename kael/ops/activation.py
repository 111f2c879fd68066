"""Activation functions, elementwise: one declaration a formula.

`softmax` and what works along a dim are in `nn.py`; `tanh` is in `math.py`. Constants are Python
numbers, so that float32 stays float32, and branches select.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kael import kernels
from kael.errors import KaelValueError
from kael.ops import declare
from kael.ops.samples import away_from, normal, uniform
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

unary = partial(declare.unary, family="activation")
piecewise = partial(unary, analytic=False)

# Klambauer et al., "Self-Normalizing Neural Networks" (2017), section 2.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def _form(inputs: tuple[Tensor, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Write gelu's `approximate` as "none" or "tanh"; False and True are taken too."""
    del inputs
    forms = {"none": "none", "tanh": "tanh", False: "none", True: "tanh"}
    (given,) = arguments
    if not isinstance(given, (str, bool)) or given not in forms:
        raise KaelValueError(f"gelu: approximate is 'none' or 'tanh', got {given!r}")
    return (forms[given],)


def _softplus(x: Array, beta: float = 1, threshold: float = 20) -> Array:
    scaled = beta * x
    soft = np.log1p(np.exp(np.minimum(scaled, threshold))) / beta
    return np.where(scaled > threshold, x, soft)


def _softplus_backward(g: Array, x: Array, beta: float, threshold: float) -> Array:
    scaled = np.asarray(beta * x)
    return np.where(scaled > threshold, g, g * kernels.sigmoid(scaled))


def _logsigmoid(x: Array) -> Array:
    return np.asarray(np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))))


def _silu_backward(g: Array, x: Array) -> Array:
    s = kernels.sigmoid(x)
    return np.asarray(g * (s * (1 + x * (1 - s))))


def _mish_backward(g: Array, x: Array) -> Array:
    t = np.tanh(np.logaddexp(x, 0))
    return np.asarray(g * (t + x * (1 - t * t) * kernels.sigmoid(x)))


def _elu(x: Array, alpha: float = 1) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _leaky_relu_backward(g: Array, x: Array, negative_slope: float) -> Array:
    # A slope of 0 stops the gradient, an infinite one too.
    return np.where(x > 0, g, g * negative_slope if negative_slope else 0.0)


def _elu_backward(g: Array, x: Array, alpha: float) -> Array:
    return np.where(x > 0, g, g * (alpha * np.exp(np.minimum(x, 0))) if alpha else 0.0)


def _celu(x: Array, alpha: float) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


def _between(g: Array, x: Array, low: float, high: float) -> Array:
    return np.where((x > low) & (x < high), g, 0.0)


def _hardswish_backward(g: Array, x: Array) -> Array:
    return np.where(x <= -3, 0.0, np.where(x < 3, g * (x / 3 + 0.5), g))


def _logit(x: Array, eps: float | None) -> Array:
    inside = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.asarray(np.log(inside / (1 - inside)))


def _logit_backward(g: Array, x: Array, eps: float | None) -> Array:
    slope = g / (x * (1 - x))
    if eps is None:
        return np.asarray(slope)
    return np.where((x >= eps) & (x <= 1 - eps), slope, 0.0)


sigmoid = unary(
    "sigmoid", kernels.sigmoid,
    vjp=kernels.sigmoid_backward, text="g * out * (1 - out)",
    domain=normal,
    doc="Return 1 / (1 + exp(-x)).",
)  # fmt: skip
logsigmoid = piecewise(
    "logsigmoid", _logsigmoid,
    vjp=lambda g, x: g * kernels.sigmoid(np.asarray(-x)), text="g * sigmoid(-x)",
    domain=normal,
    doc="Return log(sigmoid(x)) without overflow.",
)  # fmt: skip
logit = piecewise(
    "logit", _logit, arguments="eps=None",
    vjp=_logit_backward, text="g / (x * (1 - x))",
    domain=uniform(0.2, 0.8), settings=({}, {"eps": 1e-3}),
    convention="inf at 0 and 1; 0 beyond [eps, 1 - eps], to which x is limited",
    doc="Return log(x / (1 - x)), the inverse of sigmoid.",
)  # fmt: skip
relu = piecewise(
    "relu", kernels.relu, real=False,
    vjp=kernels.relu_backward, text="where(x > 0, g, 0)",
    domain=away_from(0.0), kink=lambda x: (x,), at_kink="0",
    convention="relu(x) gives 0 at 0 where maximum(x, 0) gives 1/2",
    doc="Return x where it is positive, else 0.",
)  # fmt: skip
leaky_relu = piecewise(
    "leaky_relu", lambda x, negative_slope: np.where(x > 0, x, negative_slope * x),
    arguments="negative_slope=0.01",
    vjp=_leaky_relu_backward,
    text="where(x > 0, g, g * negative_slope)",
    domain=away_from(0.0), settings=({}, {"negative_slope": 0.3}),
    kink=lambda x, negative_slope: () if negative_slope == 1 else (x,), at_kink="negative_slope",
    doc="Return x where it is positive, else negative_slope * x.",
)  # fmt: skip
relu6 = piecewise(
    "relu6", lambda x: np.clip(x, 0, 6), real=False,
    vjp=lambda g, x: _between(g, x, 0, 6), text="where((x > 0) & (x < 6), g, 0)",
    domain=away_from(0.0, 6.0, spread=8.0), kink=lambda x: (x, x - 6), at_kink="0 at both limits",
    doc="Return x limited to [0, 6].",
)  # fmt: skip
hardtanh = piecewise(
    "hardtanh", lambda x, min_val, max_val: np.clip(x, min_val, max_val), real=False,
    arguments="min_val=-1.0, max_val=1.0",
    vjp=lambda g, x, min_val, max_val: _between(g, x, min_val, max_val),
    text="where((x > min_val) & (x < max_val), g, 0)",
    domain=away_from(-1.0, 1.0, -0.3), settings=({}, {"min_val": -0.3, "max_val": 1.0}),
    kink=lambda x, min_val, max_val: (x - min_val, x - max_val), at_kink="0 at both limits",
    convention="0 at the limits, where clamp gives 1",
    doc="Return x limited to [min_val, max_val].",
)  # fmt: skip
hardsigmoid = piecewise(
    "hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6,
    vjp=lambda g, x: _between(g / 6, x, -3, 3), text="where((x > -3) & (x < 3), g / 6, 0)",
    domain=away_from(-3.0, 3.0, spread=4.0), kink=lambda x: (x + 3, x - 3),
    at_kink="0 at both limits",
    doc="Return x / 6 + 1 / 2 limited to [0, 1].",
)  # fmt: skip
hardswish = piecewise(
    "hardswish", lambda x: x * (np.clip(x + 3, 0, 6) / 6),
    vjp=_hardswish_backward, text="where(x <= -3, 0, where(x < 3, g * (x / 3 + 0.5), g))",
    domain=away_from(-3.0, 3.0, spread=4.0), kink=lambda x: (x + 3, x - 3),
    at_kink="0 at -3, 1 at 3",
    doc="Return x * hardsigmoid(x).",
)  # fmt: skip
softplus = piecewise(
    "softplus", _softplus, arguments="beta=1.0, threshold=20.0",
    vjp=_softplus_backward, text="where(beta * x > threshold, g, g * sigmoid(beta * x))",
    domain=away_from(0.5), settings=({}, {"beta": 2.0, "threshold": 1.0}),
    kink=lambda x, beta, threshold: (beta * x - threshold,), at_kink="sigmoid(threshold)",
    convention="linear where beta * x exceeds the threshold",
    doc="Return log(1 + exp(beta * x)) / beta.",
)  # fmt: skip
silu = unary(
    "silu", lambda x: x * kernels.sigmoid(x),
    vjp=_silu_backward, text="g * sigmoid(x) * (1 + x * (1 - sigmoid(x)))",
    domain=normal,
    doc="Return x * sigmoid(x).",
)  # fmt: skip
mish = piecewise(
    "mish", lambda x: x * np.tanh(np.logaddexp(x, 0)),
    vjp=_mish_backward,
    text="g * (tanh(softplus(x)) + x * (1 - tanh(softplus(x))**2) * sigmoid(x))",
    domain=normal,
    doc="Return x * tanh(softplus(x)).",
)  # fmt: skip
gelu = piecewise(
    "gelu", lambda x, approximate: kernels.gelu(x, approximate == "tanh"),
    arguments="approximate='none'", strings=("approximate",), prepare=_form,
    vjp=lambda g, x, approximate: kernels.gelu_backward(g, x, approximate == "tanh"),
    text="g * (cdf(x) + x * density(x)) of the standard normal; g * slope of the tanh form",
    prose=True,
    domain=normal, settings=({}, {"approximate": "tanh"}, {"approximate": True}),
    doc="Return x times the standard normal distribution at x, or its approximation by tanh.",
)  # fmt: skip
elu = piecewise(
    "elu", _elu, arguments="alpha=1.0",
    vjp=_elu_backward, text="where(x > 0, g, g * alpha * exp(x))",
    domain=away_from(0.0), settings=({}, {"alpha": 0.4}),
    kink=lambda x, alpha: () if alpha == 1 else (x,), at_kink="alpha",
    doc="Return x where it is positive, else alpha * (exp(x) - 1).",
)  # fmt: skip
celu = piecewise(
    "celu", _celu, arguments="alpha=1.0",
    vjp=lambda g, x, alpha: np.where(x > 0, g, g * np.exp(np.minimum(x, 0) / alpha)),
    text="where(x > 0, g, g * exp(x / alpha))",
    domain=away_from(0.0), settings=({}, {"alpha": 0.4}),
    doc="Return x where it is positive, else alpha * (exp(x / alpha) - 1).",
)  # fmt: skip
selu = piecewise(
    "selu", lambda x: SELU_SCALE * _elu(x, SELU_ALPHA),
    vjp=lambda g, x: SELU_SCALE * _elu_backward(g, x, SELU_ALPHA),
    text="g * where(x > 0, 1.0507009873554805, 1.7580993408473766 * exp(x))",
    domain=away_from(0.0), kink=lambda x: (x,), at_kink="1.7580993408473766, the slope below 0",
    doc="Return 1.0507 * elu(x, 1.6733), whose fixed point is mean 0 and variance 1.",
)  # fmt: skip
softsign = piecewise(
    "softsign", lambda x: x / (1 + np.abs(x)),
    vjp=lambda g, x: g / np.square(1 + np.abs(x)), text="g / (1 + abs(x))**2",
    domain=normal,
    doc="Return x / (1 + abs(x)).",
)  # fmt: skip
