"""Gives `Tensor` its operators and methods, from the declarations and the engine.

Nothing is imported before it is used: an operator looks its operation up at its first call, any
other method when it is first read, and puts the real one in its own place. (`Tensor.__getattr__`
could find methods too, but a class that has one pays ten times more for reading any attribute.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kael import shapes
from kael.engine import backward as engine
from kael.errors import KaelError, KaelTypeError, KaelValueError
from kael.ops.calling import OPERANDS
from kael.ops.declare import Operation
from kael.ops.names import FAMILIES, IN_PLACE
from kael.ops.registry import lookup
from kael.tensors import Tensor

OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
SIGNS = {"__neg__": "neg", "__abs__": "abs", "__invert__": "bitwise_not"}
IN_PLACE_OPERATORS = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__setitem__": "__setitem__",
}


def _function(name: str) -> Callable[..., Any]:
    op = lookup(name)
    assert op is not None, name
    return op.function


def _binary(name: str) -> Callable[[], Callable[..., Any]]:
    def resolve() -> Callable[..., Any]:
        op = lookup(name)
        assert isinstance(op, Operation), name
        return op.make_operator()

    return resolve


def _reflected(name: str) -> Callable[[], Callable[..., Any]]:
    def resolve() -> Callable[..., Any]:
        function = _function(name)

        def method(self: Tensor, other: Any) -> Any:
            return function(other, self) if isinstance(other, OPERANDS) else NotImplemented

        return method

    return resolve


def _in_place(name: str) -> Callable[..., Any]:
    from kael.ops.inplace import METHODS

    return METHODS[name]


def _attach_late(dunder: str, resolve: Callable[[], Callable[..., Any]]) -> None:
    """Attach a method that, when first called, puts what `resolve` returns in its place."""

    def first_call(self: Tensor, *args: Any) -> Any:
        method = resolve()
        method.__name__ = method.__qualname__ = dunder
        setattr(Tensor, dunder, method)
        return method(self, *args)

    setattr(Tensor, dunder, first_call)


class _Late:
    """Stands for a method that no one has used yet, until it is read: on a tensor or the class."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Tensor | None, kind: type[Tensor]) -> Any:
        setattr(Tensor, self.name, _method(self.name))
        return getattr(kind if tensor is None else tensor, self.name)


def _method(name: str) -> Callable[..., Any]:
    if name in IN_PLACE:
        return _in_place(name)
    op = lookup(name)
    if op is None or not op.method:
        raise AttributeError(f"'Tensor' object has no attribute {name!r}")
    return op.function


def _getitem(self: Tensor, items: Any) -> Tensor:
    from kael.ops.index import getitem

    return getitem(self, items)


def _backward(
    self: Tensor, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False
) -> None:
    """Add the gradient of this tensor with respect to every leaf into the leaves' `grad`.

    `gradient` is the upstream gradient; a tensor of one element needs none. Gradients are first
    order: `create_graph=True` is refused.
    """
    if create_graph:
        raise KaelError(
            "create_graph is not supported: gradients are first order, a backward records nothing"
        )
    engine.backward(self, gradient, retain_graph)


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise KaelTypeError("a 0-d tensor cannot be iterated over")
    return (self[i] for i in range(self.shape[0]))


def _itself(self: Tensor) -> Tensor:
    return self


def _transposed(self: Tensor) -> Any:
    """A matrix with its dims exchanged; a vector or number as it is."""
    if self.ndim > 2:
        raise KaelValueError(
            f"T is for at most 2 dims, got shape {shapes.text(self.shape)}; use mT or permute()"
        )
    return _function("transpose")(self, 0, 1) if self.ndim == 2 else self


def _matrix_transposed(self: Tensor) -> Any:
    """The tensor with its last two dims exchanged."""
    if self.ndim < 2:
        raise KaelValueError(f"mT needs at least 2 dims, got shape {shapes.text(self.shape)}")
    return _function("transpose")(self, -2, -1)


_OWN: dict[str, Any] = {
    "T": property(_transposed),
    "mT": property(_matrix_transposed),
    "__pos__": _itself,
    "__getitem__": _getitem,
    "__iter__": _iterate,
    "backward": _backward,
    "retain_grad": engine.retain_grad,
}


def attach() -> None:
    """Attach everything; called once, when `kael.ops` is imported."""
    for stem, name in OPERATORS.items():
        _attach_late(f"__{stem}__", _binary(name))
        _attach_late(f"__r{stem}__", _reflected(name))
    for name in COMPARISONS:
        _attach_late(f"__{name}__", _binary(name))
    for dunder, name in SIGNS.items():
        _attach_late(dunder, lambda name=name: _function(name))  # type: ignore[misc]
    for dunder, name in IN_PLACE_OPERATORS.items():
        _attach_late(dunder, lambda name=name: _in_place(name))  # type: ignore[misc]
    for name, attribute in _OWN.items():
        setattr(Tensor, name, attribute)
    for name in (*FAMILIES, *IN_PLACE):
        if name not in Tensor.__dict__:
            setattr(Tensor, name, _Late(name))
