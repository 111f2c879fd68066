"""From an operation's formulas to the two functions that make and run its nodes.

A result joins the graph when grad mode is on, its dtype is floating, and an input requires a
gradient: `record` then wraps it with a new node, which saves what the formulas of those inputs
read. `apply` evaluates them when the walk comes to the node.

What a formula needs is read from its parameter names, so nothing lists it twice:

    g             the upstream gradient, with the output's shape and dtype
    out           the output (saved)
    x             an input of the operation (saved), under the operation's own parameter name
    dim           a plain argument of the operation (kept, no version check)
    x_shape       metadata of an input (nothing saved); also x_dtype
    needs         which inputs need a gradient (joint formulas only)

A formula gives one input's gradient; a joint formula gives all of them as a tuple. For every set
of inputs that need a gradient there is one plan, made when first used. Its two functions are
written out as source and compiled, as `dataclasses` does: a loop over names would cost more than
the arithmetic of a small tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from kael.engine.node import (
    FunctionNode,
    Gradients,
    Node,
    gradient_edge,
    raise_released,
    raise_stale,
)
from kael.tensors import Storage, Tensor

Array = np.ndarray[Any, Any]
Formula = Callable[..., Any]


class Recordable(Protocol):
    """What the engine asks of an operation."""

    name: str
    node_name: str
    inputs: tuple[str, ...]
    arguments: tuple[str, ...]
    variadic: bool
    broadcasts: bool
    vjps: tuple[Formula | None, ...]
    joint: Formula | None
    plans: dict[tuple[bool, ...], Plan]

    def make_plan(self, needs: tuple[bool, ...]) -> Plan:
        """Return the plan for a set of inputs that need a gradient, made once."""


class Plan:
    """What a node of one operation saves, and how it computes, for one set of inputs."""

    __slots__ = ("apply", "op", "record", "saves")

    def __init__(self, op: Recordable, needs: tuple[bool, ...]) -> None:
        self.op = op
        formulas = formulas_of(op, needs)
        self.saves = _names_read(formulas)
        self.record: Callable[..., Tensor]
        self.apply: Callable[[Node, Array], Gradients]
        self.record, self.apply = _compile(self, needs, formulas)

    @property
    def saved_tensors(self) -> tuple[str, ...]:
        """The names of the tensors whose values a node keeps (`out` for the output)."""
        tensors = {"out", *self.op.inputs}
        return tuple(name for name in self.saves if name in tensors)


def formula_parameters(formula: Formula) -> tuple[str, ...]:
    """Return the parameter names of a formula, `g` first."""
    code = formula.__code__
    return tuple(code.co_varnames[: code.co_argcount])


def readable_names(op: Recordable) -> set[str]:
    """Return the names that a formula of `op` may read besides `g`."""
    metadata = {f"{name}_{kind}" for name in op.inputs for kind in ("shape", "dtype")}
    names = {"out", *op.inputs, *op.arguments, *metadata}
    return names | {"needs"} if op.joint is not None else names


def formulas_of(op: Recordable, needs: tuple[bool, ...]) -> tuple[Formula | None, ...]:
    """Return the formulas that run when the inputs flagged in `needs` need a gradient."""
    if op.joint is not None:
        return (op.joint,)
    return tuple(vjp if needed else None for vjp, needed in zip(op.vjps, needs, strict=True))


def _names_read(formulas: tuple[Formula | None, ...]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for formula in formulas:
        if formula is not None:
            names.update(dict.fromkeys(formula_parameters(formula)[1:]))
    names.pop("needs", None)
    return tuple(names)


def _compile(
    plan: Plan, needs: tuple[bool, ...], formulas: tuple[Formula | None, ...]
) -> tuple[Any, Any]:
    """Return `record(array, arguments, *inputs)` and `apply(node, g)`."""
    op = plan.op
    prepare: list[str] = []
    kept: list[str] = []
    unpack: list[str] = []
    checks: list[str] = []
    for name in plan.saves:
        if name == "out" or (name in op.inputs and not op.variadic):
            if name == "out":  # a result this new has no storage yet
                prepare.append("out_storage = Storage()")
                kept += ["array", "out_storage", "0"]
            else:
                tensor = f"in{op.inputs.index(name)}"
                prepare.append(f"{name}_storage = {tensor}._storage or {tensor}.storage")
                kept += [f"{tensor}._array", f"{name}_storage", f"{name}_storage.version"]
            unpack += [f"{name}_", f"{name}_storage", f"{name}_version"]
            checks.append(
                f"if {name}_storage.version != {name}_version: "
                f"raise_stale(node, {name!r}, {name}_storage, {name}_version)"
            )
        else:
            kept.append(_plain_source(op, name))
            unpack.append(f"{name}_")
    inputs, edges, shape = _edges_source(op, needs)
    body = [
        f"def record(array, arguments, {inputs}):",
        *(f"    {line}" for line in (*prepare, *edges, *shape)),
        "    node = FunctionNode()",
        "    node.plan = plan",
        f"    node.saved = ({', '.join(kept)}{',' if kept else ''})",
        "    node.edges = edges",
        "    node.shape = shape",
        "    node.dtype = array.dtype",
        "    node.retained = None",
        "    out = new(Tensor)",
        "    out._array = array",
        "    out._grad_fn = node",
        "    out._requires_grad = True",
        "    out._grad = None",
        f"    out._storage = {'out_storage' if 'out' in plan.saves else 'None'}",
        "    out._accumulator = None",
        "    return out",
        "def apply(node, g):",
        "    saved = node.saved",
        "    if saved is None: raise_released(node)",
        f"    ({', '.join(unpack)},) = saved" if unpack else "",
        *(f"    {line}" for line in checks),
    ]
    calls = [_call(formula, position) for position, formula in enumerate(formulas)]
    body += [f"    return {calls[0]}" if op.joint else f"    return ({', '.join(calls)},)"]
    scope: dict[str, Any] = {
        "FunctionNode": FunctionNode,
        "Storage": Storage,
        "Tensor": Tensor,
        "__name__": __name__,
        "gradient_edge": gradient_edge,
        "needs_": needs,
        "new": object.__new__,
        "plan": plan,
        "raise_released": raise_released,
        "raise_stale": raise_stale,
    }
    scope |= {f"vjp{position}": formula for position, formula in enumerate(formulas)}
    exec("\n".join(body), scope)  # the source is made of the declaration's own names alone
    return scope["record"], scope["apply"]


def _edges_source(op: Recordable, needs: tuple[bool, ...]) -> tuple[str, list[str], list[str]]:
    """Return the parameters of the inputs, the lines that find their edges, and those of a shape.

    A long graph holds one shape, not one a node: an equal one is taken from an edge.
    """
    if op.variadic:
        return (
            "*inputs",
            ["edges = tuple([gradient_edge(tensor) for tensor in inputs])"],
            ["shape = array.shape"],
        )
    at = [position for position, needed in enumerate(needs) if needed]
    lines = [f"edge{i} = in{i}._grad_fn or gradient_edge(in{i})" for i in at]
    together = [f"edge{i}" if needed else "None" for i, needed in enumerate(needs)]
    # A lone first edge stands for itself: see `Node.edges`.
    lines.append(f"edges = {'edge0' if at == [0] else '(' + ', '.join(together) + ',)'}")
    first = f"edge{at[0]}.shape"
    shape = ["shape = array.shape", f"if shape == {first}: shape = {first}"]
    return ", ".join(f"in{i}" for i in range(len(needs))), lines, shape


def _plain_source(op: Recordable, name: str) -> str:
    """Return what reads an argument, an input's shape or dtype, or a list of inputs."""
    if name in op.arguments:
        return f"arguments[{op.arguments.index(name)}]"
    if name in op.inputs:
        return "[t._array for t in inputs]"
    base, kind = name.rsplit("_", 1)
    if op.variadic:
        return f"[t._array.{kind} for t in inputs]"
    return f"in{op.inputs.index(base)}._array.{kind}"


def _call(formula: Formula | None, position: int) -> str:
    if formula is None:
        return "None"
    names = [f"{name}_" for name in formula_parameters(formula)[1:]]
    return f"vjp{position}({', '.join(['g', *names])})"
