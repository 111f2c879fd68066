"""Recording: the one step that turns an operation's result into a node of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kael.engine.grad_mode import state
from kael.engine.node import FunctionNode, gradient_edge
from kael.tensors import Tensor

if TYPE_CHECKING:
    from kael.ops.declare import Operation

Array = np.ndarray[Any, Any]


def should_record(output: Array, inputs: Sequence[Tensor]) -> bool:
    """Tell whether a result joins the graph: grad mode on, floating, and an input that asks."""
    return (
        state.grad_enabled
        and output.dtype.kind == "f"
        and any(tensor._requires_grad for tensor in inputs)
    )


def set_history(
    op: Operation, array: Array, inputs: tuple[Tensor, ...], arguments: tuple[Any, ...]
) -> Tensor:
    """Return `array` as a tensor with a new node of `op`.

    Formulas of inputs that need no gradient are left out, and with them what they would save.
    """
    needs = tuple([tensor._requires_grad for tensor in inputs])
    plan = op.plans.get(needs)
    if plan is None:
        plan = op.make_plan(needs)
    edges = tuple([gradient_edge(tensor) for tensor in inputs])
    shape = array.shape
    # A long graph holds one shape, not one a node.
    for edge in edges:
        if edge is not None and edge.shape == shape:
            shape = edge.shape
            break
    out = Tensor(array)
    saved = plan.save(inputs, out, arguments) if plan.saves else ()
    out._grad_fn = FunctionNode(plan, saved, edges, shape, array.dtype)
    out._requires_grad = True
    return out
