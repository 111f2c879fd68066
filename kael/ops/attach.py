"""Gives `Tensor` its operators and methods, from the declarations and the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kael import shapes
from kael.engine import backward as engine
from kael.errors import KaelTypeError, KaelValueError
from kael.ops import inplace
from kael.ops.declare import ALIASES, COMPOSITES, REGISTRY
from kael.ops.index import getitem
from kael.ops.view import transpose
from kael.tensors import Tensor

OPERATORS = {
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__truediv__": "div",
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "__pow__": "pow",
    "__matmul__": "matmul",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
    "__eq__": "eq",
    "__ne__": "ne",
}
REFLECTED = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
)

# What an operator takes on its other side; for anything else Python tries the other operand.
_OPERANDS = (Tensor, int, float, np.ndarray, np.generic, list, tuple)


def _operator(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        if other.__class__ is Tensor or isinstance(other, _OPERANDS):
            return function(self, other)
        return NotImplemented

    method.__name__ = method.__qualname__ = name
    return method


def _reflected(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        return function(other, self) if isinstance(other, _OPERANDS) else NotImplemented

    method.__name__ = method.__qualname__ = name
    return method


def _backward(self: Tensor, gradient: Any = None, retain_graph: bool = False) -> None:
    """Add the gradient of this tensor with respect to every leaf into the leaves' `grad`.

    `gradient` is the upstream gradient; a tensor of one element needs none.
    """
    engine.backward(self, gradient, retain_graph)


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise KaelTypeError("a 0-d tensor cannot be iterated over")
    return (self[i] for i in range(self.shape[0]))


def _transposed(self: Tensor) -> Tensor:
    """A matrix with its dims exchanged; a vector or number as it is."""
    if self.ndim > 2:
        raise KaelValueError(
            f"T is for at most 2 dims, got shape {shapes.text(self.shape)}; use mT or permute()"
        )
    return transpose(self, 0, 1) if self.ndim == 2 else self


def _matrix_transposed(self: Tensor) -> Tensor:
    """The tensor with its last two dims exchanged."""
    if self.ndim < 2:
        raise KaelValueError(f"mT needs at least 2 dims, got shape {shapes.text(self.shape)}")
    return transpose(self, -2, -1)


_ENGINE: dict[str, Any] = {
    "T": property(_transposed),
    "mT": property(_matrix_transposed),
    "__getitem__": getitem,
    "__iter__": _iterate,
    "backward": _backward,
    "retain_grad": engine.retain_grad,
}


def attach() -> None:
    """Attach everything; called once, when `kael.ops` is imported."""
    for method, name in OPERATORS.items():
        setattr(Tensor, method, _operator(REGISTRY[name].function, method))
    for stem in REFLECTED:
        function = REGISTRY[OPERATORS[f"__{stem}__"]].function
        setattr(Tensor, f"__r{stem}__", _reflected(function, f"__r{stem}__"))
    for dunder, name in (("__neg__", "neg"), ("__abs__", "abs"), ("__invert__", "bitwise_not")):
        setattr(Tensor, dunder, REGISTRY[name].function)
    for name, op in REGISTRY.items():
        if op.method:
            setattr(Tensor, name, op.function)
    for name, made in COMPOSITES.items():
        if made.method:
            setattr(Tensor, name, made.function)
    for alias, name in ALIASES.items():
        if hasattr(Tensor, name):
            setattr(Tensor, alias, getattr(Tensor, name))
    for name, attribute in (*inplace.METHODS.items(), *_ENGINE.items()):
        setattr(Tensor, name, attribute)
