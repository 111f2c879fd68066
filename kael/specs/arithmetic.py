"""What the operators of an expression do: on tensors, and on plain numbers alone.

Plain numbers stay Python numbers (they are weak: they never change a tensor's dtype), and an
integer that outgrows a float becomes an error instead of a minute of arithmetic.
"""

import operator
from collections.abc import Callable
from typing import Any

from kael.specs.growth import Refused, check_elements, operand_shape
from kael.tensors import Tensor

MAX_BITS = 1_024  # beyond them an integer has no float


def describe(value: object) -> str:
    """Return what a value is, in the language's words.

    >>> describe(2.0), describe([1]), describe(None)
    ('a number', 'a list', 'None')
    """
    if isinstance(value, Tensor):
        return f"a tensor of shape {list(value.shape)}"
    if value is None or value is ...:
        return "None" if value is None else "..."
    kinds = {list: "a list", tuple: "a tuple", str: "a string", slice: "a slice"}
    return kinds.get(type(value), "a number")


def is_plain(value: object) -> bool:
    """Tell whether a value is a plain number or a truth value."""
    return isinstance(value, (int, float))


def number(value: Any) -> Any:
    """Return a plain result, refused where it is complex or beyond the range of a float."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise Refused("an integer beyond the range of a float")
    if isinstance(value, complex):
        raise Refused("a negative number has no real power with a fraction as its exponent")
    return value


def plain_power(base: float, exponent: float) -> Any:
    """Return a power of plain numbers; integers that would outgrow a float are not computed."""
    if isinstance(base, int) and isinstance(exponent, int):
        if exponent < 0:
            return float(base) ** exponent
        if base.bit_length() * exponent > 2 * MAX_BITS and abs(base) > 1:
            raise OverflowError
    return base**exponent


def plain_matmul(_left: float, _right: float) -> Any:
    """Refuse `@` between numbers."""
    raise Refused("@ takes tensors, not numbers")


def plain_or(left: float, right: float) -> bool:
    """Return `|` of two truth values."""
    return bool(truth("|", left)) or bool(truth("|", right))


def plain_and(left: float, right: float) -> bool:
    """Return `&` of two truth values."""
    return bool(truth("&", left)) and bool(truth("&", right))


def truth(symbol: str, value: Any) -> Any:
    """Return an operand of `& | ~`, refused unless it is boolean."""
    if isinstance(value, Tensor) and value.dtype.kind == "b":
        return value
    if isinstance(value, bool):
        return value
    of = f" of dtype {value.dtype}" if isinstance(value, Tensor) else ""
    raise Refused(
        f"{symbol} takes booleans (the result of a comparison), not {describe(value)}{of}"
    )


PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": plain_power,
    "@": plain_matmul,
    "&": plain_and,
    "|": plain_or,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
TENSOR = PLAIN | {
    "**": operator.pow,
    "@": operator.matmul,
    "&": operator.and_,
    "|": operator.or_,
}


def binary(symbol: str, left: Any, right: Any, limit: int) -> Any:
    """Return `left symbol right`."""
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        if symbol in "&|":
            truth(symbol, left)
            truth(symbol, right)
        for operand in (left, right):
            if not isinstance(operand, (Tensor, int, float)):
                raise Refused(f"{symbol} takes tensors and numbers, not {describe(operand)}")
        check_elements(operand_shape(symbol, left, right), limit, symbol)
        return TENSOR[symbol](left, right)
    for operand in (left, right):
        if not is_plain(operand):
            raise Refused(f"{symbol} takes tensors and numbers, not {describe(operand)}")
    try:
        return number(PLAIN[symbol](left, right))
    except ZeroDivisionError:
        raise Refused("division by zero") from None
    except OverflowError:
        raise Refused("the result is beyond the range of a float") from None


def negative(value: Any) -> Any:
    """Return `-value`."""
    if not isinstance(value, (Tensor, int, float)):
        raise Refused(f"- takes tensors and numbers, not {describe(value)}")
    return -value


def inverted(value: Any) -> Any:
    """Return `~value` of a boolean."""
    value = truth("~", value)
    return ~value if isinstance(value, Tensor) else not value
