"""Automatic differentiation: the engine's names, and `gradcheck`."""

from __future__ import annotations

from typing import Any

from kael import shapes
from kael.engine.backward import backward
from kael.engine.function import Function
from kael.engine.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from kael.engine.node import AccumulateGrad, FunctionNode, Node
from kael.errors import KaelTypeError, KaelValueError
from kael.tensors import Tensor

__all__ = [
    "AccumulateGrad",
    "Function",
    "FunctionNode",
    "GradcheckOptions",
    "GradcheckResult",
    "Node",
    "backward",
    "enable_grad",
    "gradcheck",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
    "sum_to_shape",
]

_CHECKER = {"gradcheck", "GradcheckOptions", "GradcheckResult"}


def __getattr__(name: str) -> Any:
    # The checker is loaded by those who check; a training loop never needs it.
    if name in _CHECKER:
        from kael import checker

        return getattr(checker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def sum_to_shape(gradient: Tensor, target: Any) -> Tensor:
    """Reduce a gradient to the shape that was broadcast: sum over what broadcasting repeated.

    Leading dims are summed away, stretched size-1 dims are summed and kept. Where nothing was
    broadcast, the result is `gradient` itself. Raises `KaelValueError` where `target` does
    not broadcast to the gradient's shape.

    >>> import kael
    >>> sum_to_shape(kael.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), (2, 1))
    tensor([[ 6.],
            [15.]])
    """
    if not isinstance(gradient, Tensor):
        raise KaelTypeError(f"sum_to_shape takes a tensor, got {type(gradient).__name__}")
    wanted = shapes.as_sizes((target,), "sum_to_shape")
    given = gradient.shape
    fits = len(given) >= len(wanted) and all(
        size in (1, given[len(given) - len(wanted) + dim]) for dim, size in enumerate(wanted)
    )
    if not fits:
        raise KaelValueError(
            f"cannot reduce gradient of shape {shapes.text(given)} to {shapes.text(wanted)}"
        )
    extra = len(given) - len(wanted)
    leading = tuple(range(extra))
    stretched = tuple(
        extra + dim for dim, size in enumerate(wanted) if size == 1 != given[extra + dim]
    )
    reduced = gradient.sum(dim=stretched, keepdim=True) if stretched else gradient
    return reduced.sum(dim=leading) if leading else reduced
