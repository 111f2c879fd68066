"""Recording: the one step that turns an operation's result into a node of the graph.

A result joins the graph when grad mode is on, its dtype is floating, and an input requires a
gradient. `record` is the general way; elementwise operations of one and two operands, the bulk of
any graph, have their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kael.engine.node import FunctionNode, gradient_edge
from kael.tensors import Tensor

if TYPE_CHECKING:
    from kael.engine.formula import Recordable
    from kael.engine.node import Node

_ONE = (True,)

Array = np.ndarray[Any, Any]


def record(
    op: Recordable, array: Array, inputs: tuple[Tensor, ...], arguments: tuple[Any, ...]
) -> Tensor:
    """Return `array` as a tensor with a new node of `op`.

    Formulas of inputs that need no gradient are left out, and with them what they would save.
    """
    needs = tuple([tensor._requires_grad for tensor in inputs])
    plan = op.plans.get(needs) or op.make_plan(needs)
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


def record_unary(op: Recordable, array: Array, x: Tensor) -> Tensor:
    """Return the result of an elementwise operation of one operand that requires a gradient."""
    plan = op.plans.get(_ONE) or op.make_plan(_ONE)
    edge = x._grad_fn or gradient_edge(x)
    assert edge is not None
    out = Tensor(array)
    saved = plan.save((x,), out, ()) if plan.saves else ()
    # Elementwise: shape and dtype are the operand's.
    out._grad_fn = FunctionNode(plan, saved, edge, edge.shape, edge.dtype)
    out._requires_grad = True
    return out


def record_binary(op: Recordable, array: Array, x: Tensor, other: Tensor) -> Tensor:
    """Return the result of an operation of two operands, one of which requires a gradient."""
    needs = (x._requires_grad, other._requires_grad)
    plan = op.plans.get(needs) or op.make_plan(needs)
    shape = array.shape
    edges: Node | tuple[Node | None, ...]
    if needs[0]:
        first = x._grad_fn or gradient_edge(x)
        edges = first if not needs[1] else (first, other._grad_fn or gradient_edge(other))  # type: ignore[assignment]
        if shape == first.shape:  # type: ignore[union-attr]
            shape = first.shape  # type: ignore[union-attr]
    else:
        edges = (None, other._grad_fn or gradient_edge(other))
    out = Tensor(array)
    saved = plan.save((x, other), out, ()) if plan.saves else ()
    out._grad_fn = FunctionNode(plan, saved, edges, shape, array.dtype)
    out._requires_grad = True
    return out
