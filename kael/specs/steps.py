"""What the steps of an expression do to the stack of values; which steps there are, and when.

A step takes the stack and the limit on a result's elements. Which syntax becomes which step is
`language.py`'s; running the steps, `expression.py`'s.
"""

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kael.ops.arguments import NotIntegers
from kael.specs import arithmetic
from kael.specs.arithmetic import MAX_BITS, describe, is_plain
from kael.specs.growth import (
    Refused,
    broadcast,
    check_elements,
    index_shape,
    operation_shape,
)
from kael.tensors import Tensor

if TYPE_CHECKING:
    from kael.ops.declare import Composite, Operation
    from kael.specs.creation import Creator

__all__ = ["MAX_BITS", "Apply", "Stack"]

Stack = list[Any]
Apply = Callable[["Stack", "Scope"], None]


class Scope:
    """What one evaluation knows: the values of names, the limit, and the step it is at."""

    __slots__ = ("at", "limit", "names")

    def __init__(self, names: Any, limit: int) -> None:
        self.names = names
        self.limit = limit
        self.at = 0


def push(value: Any) -> Apply:
    """Return the step that pushes a constant."""

    def apply(stack: Stack, scope: Scope) -> None:
        stack.append(value)

    return apply


def load(name: str, constant: float | None) -> Apply:
    """Return the step that pushes the value of a name, or of the constant of that name."""

    def apply(stack: Stack, scope: Scope) -> None:
        value = scope.names.get(name, constant)
        if value is None and name not in scope.names:
            raise Refused(f"'{name}' has no value")
        stack.append(value)

    return apply


def binary(symbol: str) -> Apply:
    """Return the step of an operator between two operands."""
    operate = arithmetic.TENSOR[symbol]
    quick = symbol not in ("@", "&", "|")

    def apply(stack: Stack, scope: Scope) -> None:
        right = stack.pop()
        left = stack[-1]
        if quick and type(left) is Tensor and type(right) is Tensor and left.shape == right.shape:
            stack[-1] = operate(left, right)
        else:
            stack[-1] = arithmetic.binary(symbol, left, right, scope.limit)

    return apply


def negative(stack: Stack, scope: Scope) -> None:
    """Replace the top of the stack by its negative."""
    stack[-1] = arithmetic.negative(stack[-1])


def inverted(stack: Stack, scope: Scope) -> None:
    """Replace the boolean on top of the stack by its opposite."""
    stack[-1] = arithmetic.inverted(stack[-1])


def build(kind: type[list[Any]] | type[tuple[Any, ...]], count: int) -> Apply:
    """Return the step that makes a list or a tuple of the topmost values."""

    def apply(stack: Stack, scope: Scope) -> None:
        at = len(stack) - count
        values = kind(stack[at:])
        del stack[at:]
        stack.append(values)

    return apply


def slicing(given: tuple[bool, ...]) -> Apply:
    """Return the step that makes a slice of the bounds that are given."""

    def apply(stack: Stack, scope: Scope) -> None:
        at = len(stack) - sum(given)
        values = iter(stack[at:])
        bounds = [whole(next(values)) if there else None for there in given]
        del stack[at:]
        stack.append(builtins.slice(*bounds))

    return apply


def whole(bound: Any) -> int | None:
    """Return a bound of a slice, refused unless it is an integer or None."""
    if bound is None or (isinstance(bound, int) and not isinstance(bound, bool)):
        return bound
    raise Refused(f"a slice takes integers, not {describe(bound)} ({bound!r})"[:200])


def attribute(name: str) -> Apply:
    """Return the step that reads an attribute of a tensor."""

    def apply(stack: Stack, scope: Scope) -> None:
        value = stack[-1]
        if not isinstance(value, Tensor):
            raise Refused(f".{name} is an attribute of a tensor, not of {describe(value)}")
        stack[-1] = getattr(value, name)

    return apply


def index(count: int, many: bool) -> Apply:
    """Return the step that indexes a value with the topmost items."""

    def apply(stack: Stack, scope: Scope) -> None:
        at = len(stack) - count
        items = stack[at:]
        del stack[at:]
        value = stack[-1]
        if isinstance(value, Tensor):
            check_items(items)
            check_elements(index_shape(value.shape, tuple(items)), scope.limit, "the index")
            stack[-1] = value[tuple(items) if many else items[0]]
        else:
            stack[-1] = pick(value, items)

    return apply


def check_items(items: list[Any]) -> None:
    """Refuse what is no index of a tensor."""
    for item in items:
        if isinstance(item, Tensor) and item.dtype.kind not in "iub":
            raise NotIntegers(f"an index tensor must hold integers or booleans, got {item.dtype}")
        if isinstance(item, (float, str, tuple)):
            raise Refused(f"{describe(item)} ({item!r}) is no index"[:200])


def pick(value: Any, items: list[Any]) -> Any:
    """Return an element of a list of tensors, or of a shape."""
    if not isinstance(value, (list, tuple)):
        raise Refused(f"{describe(value)} cannot be indexed")
    item = items[0]
    sliced = isinstance(item, builtins.slice) and isinstance(value, tuple)
    if len(items) != 1 or not (sliced or type(item) is int):
        raise Refused(f"{describe(value)} is indexed by one integer")
    if not sliced and not -len(value) <= item < len(value):
        raise Refused(f"index {item} is out of range for {describe(value)} of {len(value)}")
    return value[item]


def call(operation: "Operation | Composite", count: int, keywords: tuple[str, ...]) -> Apply:
    """Return the step that calls an operation with the topmost values."""
    total = count + len(keywords)
    function = operation.function
    if operation.name == "pow" and total == 2 and not keywords:
        return binary("**")
    elementwise = getattr(operation, "batch", None) == "elementwise"
    lone = elementwise and total == 1

    def apply(stack: Stack, scope: Scope) -> None:
        at = len(stack) - total
        values = stack[at:]
        del stack[at:]
        named = dict(zip(keywords, values[count:], strict=True))
        shape: tuple[int, ...] | None = None
        if lone:
            pass
        elif elementwise:
            shapes = [value.shape for value in values if isinstance(value, Tensor)]
            shape = broadcast(*shapes) if len(shapes) > 1 else None
        else:
            shape = operation_shape(operation.name, in_order(operation, values[:count], named))
        if shape is not None:
            check_elements(shape, scope.limit, operation.name)
        result = function(*values[:count], **named)
        check_result(result, scope.limit, operation.name)
        stack.append(weak(result, values))

    return apply


def create(creator: "Creator", count: int, keywords: tuple[str, ...]) -> Apply:
    """Return the step that makes a constant from the topmost values."""
    total = count + len(keywords)

    def apply(stack: Stack, scope: Scope) -> None:
        at = len(stack) - total
        values = stack[at:]
        del stack[at:]
        named = dict(zip(keywords, values[count:], strict=True))
        stack.append(weak(creator(values[:count], named, scope.limit), values))

    return apply


def in_order(
    operation: "Operation | Composite", values: list[Any], named: dict[str, Any]
) -> list[Any]:
    """Return the arguments of a call in the declared order, as far as they are known."""
    ordered = list(values)
    for name in operation.parameters[len(values) :]:
        if name not in named and name not in operation.defaults:
            break
        ordered.append(named.get(name, operation.defaults.get(name)))
    return ordered


def check_result(result: Any, limit: int, name: str) -> None:
    """Refuse a result over the limit that could not be told before."""
    parts = result if isinstance(result, (list, tuple)) else (result,)
    for part in parts:
        if isinstance(part, Tensor) and part.numel() > limit:
            check_elements(part.shape, limit, name)


def weak(result: Any, values: list[Any]) -> Any:
    """Return what was computed from plain numbers alone as a plain number."""
    if isinstance(result, Tensor) and not result.shape and all(map(without_tensor, values)):
        return result.item()
    return result


def without_tensor(value: Any) -> bool:
    """Tell whether a value holds no tensor."""
    if isinstance(value, (list, tuple)):
        return all(map(without_tensor, value))
    return is_plain(value) or value is None or isinstance(value, str)
