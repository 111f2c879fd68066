"""From an operation's formulas to the pair of functions a node needs: save and apply.

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

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from kael.engine.node import FunctionNode, Gradients, raise_released, raise_stale
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

    __slots__ = ("apply", "op", "save", "saves")

    def __init__(self, op: Recordable, needs: tuple[bool, ...]) -> None:
        self.op = op
        formulas = formulas_of(op, needs)
        self.saves = _names_read(formulas)
        self.save: Callable[[Sequence[Tensor], Tensor, tuple[Any, ...]], tuple[Any, ...]]
        self.apply: Callable[[FunctionNode, Array], Gradients]
        self.save, self.apply = _compile(op, needs, formulas, self.saves)

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
    op: Recordable,
    needs: tuple[bool, ...],
    formulas: tuple[Formula | None, ...],
    saves: tuple[str, ...],
) -> tuple[Any, Any]:
    prepare: list[str] = []
    kept: list[str] = []
    unpack: list[str] = []
    checks: list[str] = []
    for name in saves:
        if name == "out" or (name in op.inputs and not op.variadic):
            if name == "out":  # a result this new has no storage yet
                tensor = "out"
                prepare.append("out_storage = out._storage = Storage()")
            else:
                tensor = f"inputs[{op.inputs.index(name)}]"
                prepare.append(f"{name}_storage = {tensor}._storage or {tensor}.storage")
            kept += [f"{tensor}._array", f"{name}_storage", f"{name}_storage.version"]
            unpack += [f"{name}_", f"{name}_storage", f"{name}_version"]
            checks.append(
                f"if {name}_storage.version != {name}_version: "
                f"raise_stale(node, {name!r}, {name}_storage, {name}_version)"
            )
        elif name in op.arguments:
            kept.append(f"arguments[{op.arguments.index(name)}]")
            unpack.append(f"{name}_")
        else:
            kept.append(_variadic_source(op, name) if op.variadic else _metadata_source(op, name))
            unpack.append(f"{name}_")
    body = ["def save(inputs, out, arguments):"]
    body += [f"    {line}" for line in prepare]
    body += [f"    return ({', '.join(kept)}{',' if kept else ''})"]
    body += ["def apply(node, g):"]
    body += ["    saved = node.saved", "    if saved is None: raise_released(node)"]
    if unpack:
        body += [f"    ({', '.join(unpack)},) = saved"]
    body += [f"    {line}" for line in checks]
    calls = [_call(formula, position) for position, formula in enumerate(formulas)]
    body += [f"    return {calls[0]}" if op.joint else f"    return ({', '.join(calls)},)"]
    scope: dict[str, Any] = {
        "Storage": Storage,
        "raise_released": raise_released,
        "raise_stale": raise_stale,
        "needs_": needs,
    }
    scope |= {f"vjp{position}": formula for position, formula in enumerate(formulas)}
    exec("\n".join(body), scope)  # the source is made of the declaration's own names alone
    return scope["save"], scope["apply"]


def _metadata_source(op: Recordable, name: str) -> str:
    base, kind = name.rsplit("_", 1)
    return f"inputs[{op.inputs.index(base)}]._array.{kind}"


def _variadic_source(op: Recordable, name: str) -> str:
    if name == op.inputs[0]:
        return "[t._array for t in inputs]"
    kind = name.rsplit("_", 1)[1]
    return f"[t._array.{kind} for t in inputs]"


def _call(formula: Formula | None, position: int) -> str:
    if formula is None:
        return "None"
    names = [f"{name}_" for name in formula_parameters(formula)[1:]]
    return f"vjp{position}({', '.join(['g', *names])})"
