"""Why a value is not finite, in words, and the usual remedy: one rule an operation.

A rule sees the operands at one element. Finding the element is `anomaly.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Cause = tuple[str, str]

SCALE = "scale the inputs, or work with logarithms"
DENOMINATOR = (
    "keep the denominator away from 0: add a small constant, or guard it, x / where(y != 0, y, 1)"
)
LOGARITHM = (
    "keep the argument positive: log(x + eps) or log(clamp(x, min=eps)); for probabilities use "
    "log_softmax or logsumexp, for x*log(y) xlogy"
)
EXPONENTIAL = (
    "subtract the maximum first, or use softmax, log_softmax, logsumexp, sigmoid or softplus, "
    "which do"
)
EARLIER = "mend the infinity where it is born; this follows from it"
DOMAIN = "check the sign and range of the argument, or clamp it into the domain"
ROOT = (
    "add a small constant under the root, sqrt(x + eps); for a length use norm, whose gradient at "
    "0 is 0"
)
NO_ELEMENTS = "skip empty slices, or give them a value with where"
ALL_MASKED = "leave at least one entry of every slice unmasked, or mask with a large finite number"

_LOGS = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0}
_DOMAINS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "asin": ("[-1, 1]", lambda x: abs(x) <= 1),
    "acos": ("[-1, 1]", lambda x: abs(x) <= 1),
    "acosh": ("[1, inf)", lambda x: x >= 1),
    "atanh": ("(-1, 1)", lambda x: abs(x) < 1),
    "erfinv": ("(-1, 1)", lambda x: abs(x) < 1),
    "logit": ("(0, 1)", lambda x: 0 < x < 1),
}
_EXPONENTIALS = ("exp", "exp2", "expm1", "sinh", "cosh", "softplus")
_POLES = ("lgamma", "digamma", "polygamma", "tan")


def forward_cause(
    name: str, values: Sequence[float] | None, operands: Sequence[Array], result: float, limit: str
) -> Cause:
    """Return reason and remedy for a result that is not finite.

    `values` are the operands at the element, None for an operation that is not elementwise;
    `operands` are the whole arrays; `limit` is the largest number of the dtype.
    """
    if values is None:
        return _reduction(name, operands, result, limit)
    rule = _RULES.get(name, _other)
    return rule(name, list(values), result, limit)


def _overflow(name: str, limit: str, remedy: str = SCALE) -> Cause:
    return f"overflow in {name}: the result exceeds {limit}", remedy


def _division(name: str, values: list[float], result: float, limit: str) -> Cause:
    x, y = values if len(values) == 2 else (1.0, values[0])  # reciprocal has the one operand
    if y == 0:
        return ("0 / 0" if x == 0 else "division by 0"), DENOMINATOR
    if math.isinf(x) and math.isinf(y):
        return "inf / inf", EARLIER
    del result
    return _overflow(name, limit)


def _logarithm(name: str, values: list[float], result: float, limit: str) -> Cause:
    del result
    x, edge = values[0], _LOGS[name]
    if x == edge:
        return (
            f"{name} of {edge:g}" if edge == 0 else f"{name} of {edge:g}, the log of 0",
            LOGARITHM,
        )
    if x < edge:
        return (
            f"{name} of a number below {edge:g}" if edge else f"{name} of a negative number",
            DOMAIN,
        )
    return _overflow(name, limit)


def _root(name: str, values: list[float], result: float, limit: str) -> Cause:
    del result
    if values[0] < 0:
        return f"{name} of a negative number", DOMAIN
    if name == "rsqrt" and values[0] == 0:
        return "rsqrt of 0: division by 0", ROOT
    return _overflow(name, limit)


def _exponential(name: str, values: list[float], result: float, limit: str) -> Cause:
    del result
    return f"overflow in {name}: {name}({values[0]:g}) exceeds {limit}", EXPONENTIAL


def _power(name: str, values: list[float], result: float, limit: str) -> Cause:
    base, exponent = values[0], values[1] if len(values) > 1 else math.nan
    if base == 0 and exponent < 0:
        return "0 to a negative power: division by 0", DENOMINATOR
    if base < 0 and math.isnan(result):
        return "a negative number to a fractional power", DOMAIN
    return _overflow(name, limit, "take logarithms, or scale the base")


def _product(name: str, values: list[float], result: float, limit: str) -> Cause:
    if math.isnan(result) and any(map(math.isinf, values)):
        return "0 * inf", (
            "select instead of multiplying by 0, where(mask, x, 0), or mend the infinity where it "
            "is born"
        )
    return _overflow(name, limit)


def _sum(name: str, values: list[float], result: float, limit: str) -> Cause:
    del values
    return ("inf - inf", EARLIER) if math.isnan(result) else _overflow(name, limit)


def _domain(name: str, values: list[float], result: float, limit: str) -> Cause:
    text, inside = _DOMAINS[name]
    if not inside(values[0]):
        return f"{name} of {values[0]:g}, outside {text}", DOMAIN
    return _other(name, values, result, limit)


def _pole(name: str, values: list[float], result: float, limit: str) -> Cause:
    x = values[-1]
    if x <= 0 and x == math.floor(x):
        return f"{name} has a pole at {x:g}", "keep the argument off the poles 0, -1, -2, …"
    return _other(name, values, result, limit)


def _fill(name: str, values: list[float], result: float, limit: str) -> Cause:
    del values, limit
    return f"{name} writes {result:g}", "leave it where it is meant; else write a finite number"


def _modulo(name: str, values: list[float], result: float, limit: str) -> Cause:
    if values[1] == 0:
        return "division by 0", DENOMINATOR
    return _other(name, values, result, limit)


def _other(name: str, values: list[float], result: float, limit: str) -> Cause:
    if math.isnan(result) and any(map(math.isinf, values)):
        return f"{name} of an infinity is not a number", EARLIER
    if math.isnan(result):
        return f"{name} is not defined there", DOMAIN
    return _overflow(name, limit)


Rule = Callable[[str, list[float], float, str], Cause]

_RULES: dict[str, Rule] = {
    **dict.fromkeys(("div", "reciprocal"), _division),
    **dict.fromkeys(_LOGS, _logarithm),
    **dict.fromkeys(("sqrt", "rsqrt"), _root),
    **dict.fromkeys(_EXPONENTIALS, _exponential),
    **dict.fromkeys(("mul", "square", "xlogy"), _product),
    **dict.fromkeys(("add", "sub"), _sum),
    **dict.fromkeys(_DOMAINS, _domain),
    **dict.fromkeys(_POLES, _pole),
    **dict.fromkeys(("remainder", "fmod", "floor_divide"), _modulo),
    "pow": _power,
    "masked_fill": _fill,
}


def _reduction(name: str, operands: Sequence[Array], result: float, limit: str) -> Cause:
    values = [a.astype(np.float64, copy=False) for a in operands if a.dtype.kind == "f"]
    infinite = any(np.isinf(a).any() for a in values)
    if any(a.size == 0 for a in operands) or (math.isnan(result) and name in ("mean", "var", "std")
                                              and not infinite):  # fmt: skip
        kind = "too few elements for the correction" if name in ("var", "std") else "no elements"
        return f"{name} of {kind}: 0 / 0", NO_ELEMENTS
    if math.isnan(result) and infinite:
        if name in ("softmax", "log_softmax"):
            positive = any(np.isposinf(a).any() for a in values)
            if not positive:
                return f"{name} of a slice that is all -inf: 0 / 0", ALL_MASKED
            return f"{name} of a slice with inf: inf - inf", EARLIER
        if name in ("matmul", "prod", "cumprod"):
            return f"0 * inf or inf - inf in {name}", EARLIER
        return f"inf - inf in {name}", EARLIER
    if math.isnan(result):
        return f"{name} is not defined there", DOMAIN
    return _overflow(name, limit)


def backward_cause(
    name: str,
    upstream: float | None,
    slope: float | None,
    at: str,
    result: float,
    read_infinite: bool,
) -> Cause:
    """Return reason and remedy for a gradient that is not finite.

    `upstream`, `slope` and `result` are the numbers at the element, the slope that for an upstream
    of 1; None where the operation is not elementwise. `at` is the operand there, as text.
    """
    remedy = _SLOPE_REMEDIES.get(name, SCALE)
    if upstream is None:
        if math.isnan(result) and read_infinite:
            return f"an infinity becomes NaN in the gradient of {name}", EARLIER
        return f"the gradient of {name} is not finite at this point", remedy
    if upstream == 0 and math.isnan(result):
        return trapped(name), remedy
    if math.isinf(upstream) and math.isnan(result):
        return f"inf * 0: an infinite upstream gradient meets a slope of 0 in {name}", EARLIER
    if slope is not None and math.isinf(slope):
        return f"the slope of {name} is infinite at {at}", remedy
    if slope is None or math.isnan(slope):
        return f"the slope of {name} is not defined at {at}", remedy
    return f"overflow in the gradient of {name}", SCALE


def trapped(name: str) -> str:
    """Return the reason of a gradient that was stopped, and came back as 0 * inf."""
    return (
        f"{name} received an upstream gradient of exactly 0 where its own slope is infinite: "
        "0 * inf"
    )


_SLOPE_REMEDIES = {
    "sqrt": ROOT,
    "rsqrt": ROOT,
    "pow": "keep the base away from 0, (x + eps)**p, or use an exponent of at least 1",
    **dict.fromkeys(("div", "reciprocal"), DENOMINATOR),
    **dict.fromkeys(_LOGS, LOGARITHM),
    **dict.fromkeys(_EXPONENTIALS, EXPONENTIAL),
    **dict.fromkeys(_DOMAINS, "keep the argument inside the domain: clamp it a little short of it"),
}
