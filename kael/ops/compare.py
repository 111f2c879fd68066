"""Operations without a gradient: comparisons, logic, tests for special values, rounding.

Their results are constants to the graph: masks, or values whose slope is 0 wherever it exists.
`argmax`, `all` and `any` are in `reduce.py`; `remainder` has a gradient and is in `math.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kael.errors import KaelTypeError
from kael.ops import declare
from kael.ops.samples import away_from, normal, uniform
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

unary = partial(declare.unary, family="compare", real=False, analytic=False)
binary = partial(declare.binary, family="compare", analytic=False)


def _bits(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.random(shape) < 0.5)


def _whole(inputs: tuple[Tensor, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse floating operands, which have no bits to combine."""
    for tensor in inputs:
        if tensor.dtype.kind == "f":
            raise KaelTypeError(
                f"& | ^ ~ combine booleans or integers, not {tensor.dtype}\n"
                "compare first (x > 0), or use logical_and, logical_or, logical_not"
            )
    return arguments


def _rounded(ufunc: Any, x: Array) -> Array:
    """Integers and booleans are whole already; NumPy would turn some of them into floats."""
    return np.asarray(ufunc(x)) if x.dtype.kind == "f" else x.copy()


def _sign(x: Array) -> Array:
    return x.copy() if x.dtype.kind == "b" else np.asarray(np.sign(x))


def _round(x: Array, decimals: int) -> Array:
    return np.asarray(np.round(x, decimals)) if x.dtype.kind == "f" or decimals < 0 else x.copy()


def _floor_divide(x: Array, other: Array) -> Array:
    if x.dtype.kind in "iub" and bool((other == 0).any()):
        raise ValueError("an integer cannot be divided by 0")
    return np.asarray(np.floor_divide(x, other))


def _difference(x: Array, other: Array) -> tuple[Array, ...]:
    return (np.subtract(x, other, dtype=np.float64),)  # also of booleans


def _to_whole(x: Array) -> tuple[Array, ...]:
    return (x - np.round(x),)


compare = partial(binary, domain=normal, kink=_difference, at_kink="a jump")
bits = partial(binary, domain=_bits, prepare=_whole)
rounding = partial(unary, at_kink="a jump")


# Comparisons.

eq = compare("eq", np.equal, doc="Tell where x == other; NaN equals nothing.")
ne = compare("ne", np.not_equal, aliases=("not_equal",), doc="Tell where x != other.")
lt = compare("lt", np.less, aliases=("less",), doc="Tell where x < other.")
le = compare("le", np.less_equal, aliases=("less_equal",), doc="Tell where x <= other.")
gt = compare("gt", np.greater, aliases=("greater",), doc="Tell where x > other.")
ge = compare("ge", np.greater_equal, aliases=("greater_equal",), doc="Tell where x >= other.")

# Logic: of truth values (anything but 0 is true), and of bits.

logical_and = binary(
    "logical_and", np.logical_and, domain=_bits, doc="Tell where both are true (not 0)."
)
logical_or = binary(
    "logical_or", np.logical_or, domain=_bits, doc="Tell where at least one is true (not 0)."
)
logical_xor = binary(
    "logical_xor", np.logical_xor, domain=_bits, doc="Tell where exactly one is true (not 0)."
)
logical_not = unary("logical_not", np.logical_not, domain=_bits, doc="Tell where x is 0 or False.")
bitwise_and = bits("bitwise_and", np.bitwise_and, doc="Return x & other of booleans or integers.")
bitwise_or = bits("bitwise_or", np.bitwise_or, doc="Return x | other of booleans or integers.")
bitwise_xor = bits("bitwise_xor", np.bitwise_xor, doc="Return x ^ other of booleans or integers.")
bitwise_not = unary(
    "bitwise_not", np.invert, domain=_bits, prepare=_whole,
    doc="Return ~x of booleans or integers.",
)  # fmt: skip

# Special values.

isnan = unary("isnan", np.isnan, domain=normal, doc="Tell where x is NaN.")
isinf = unary("isinf", np.isinf, domain=normal, doc="Tell where x is inf or -inf.")
isfinite = unary("isfinite", np.isfinite, domain=normal, doc="Tell where x is a finite number.")

# Rounding.

sign = rounding(
    "sign", _sign, domain=away_from(0.0), kink=lambda x: (x,),
    doc="Return 1, 0 or -1: the sign of x; NaN of NaN.",
)  # fmt: skip
floor = rounding(
    "floor", partial(_rounded, np.floor), domain=uniform(0.2, 0.8), kink=_to_whole,
    doc="Return the largest whole number not above x.",
)  # fmt: skip
ceil = rounding(
    "ceil", partial(_rounded, np.ceil), domain=uniform(0.2, 0.8), kink=_to_whole,
    doc="Return the smallest whole number not below x.",
)  # fmt: skip
trunc = rounding(
    "trunc", partial(_rounded, np.trunc), domain=uniform(0.2, 0.8), kink=_to_whole,
    aliases=("fix",), doc="Return x without its fraction.",
)  # fmt: skip
round = rounding(
    "round", _round, arguments="decimals=0", domain=uniform(0.61, 0.64),
    settings=({}, {"decimals": 1}),
    kink=lambda x, decimals: (x * 10.0**decimals - np.floor(x * 10.0**decimals) - 0.5,),
    doc="Return x rounded to `decimals` places, halves to the even neighbour.",
)  # fmt: skip
floor_divide = binary(
    "floor_divide", _floor_divide, domain=(uniform(3.2, 3.8), uniform(0.9, 1.05)),
    kink=lambda x, other: (x / other - np.round(x / other),), at_kink="a jump",
    doc="Return the whole number floor(x / other).",
)  # fmt: skip
