"""From an operation's formulas to the two functions that make and run its nodes.

A result joins the graph when grad mode is on, its dtype is floating, and an input requires a
gradient: a plan's `run` then gives it a new node, which saves what the formulas of those inputs
read. Its `apply` evaluates them when the walk comes to the node.

What a formula needs is read from its parameter names, so nothing lists it twice:

    g             the upstream gradient, with the output's shape and dtype
    out           the output (saved)
    x             an input of the operation (saved), under the operation's own parameter name
    dim           a plain argument of the operation (kept, no version check)
    x_shape       metadata of an input (nothing saved); also x_dtype
    needs         which inputs need a gradient (joint formulas only)

A formula gives one input's gradient; a joint formula gives all of them as a tuple. For every set
of operand forms there is one plan, made when first used, so what forms decide is decided once. Its
two functions are written out as source and compiled, as `dataclasses` does: a loop over names
would cost more than the arithmetic of a small tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from kael.engine.grad_mode import state
from kael.engine.node import (
    FunctionNode,
    Gradients,
    Node,
    gradient_edge,
    raise_released,
    raise_stale,
)
from kael.errors import KaelError
from kael.forms import form_of
from kael.tensors import Storage, Tensor

_KEPT_LAYOUTS = 256

Array = np.ndarray[Any, Any]
Formula = Callable[..., Any]
Kernel = Callable[..., Any]
Summing = Callable[[Array], Any]


class Recordable(Protocol):
    """What the engine asks of an operation."""

    name: str
    node_name: str
    inputs: tuple[str, ...]
    arguments: tuple[str, ...]
    variadic: bool
    view: bool
    broadcasts: bool
    vjps: tuple[Formula | None, ...]
    joint: Formula | None
    layouts: dict[Any, Callable[..., Any]]

    def failure(self, error: Exception, given: list[tuple[int, ...]]) -> KaelError:
        """Return the error to raise for what a kernel refused."""


class Settled(NamedTuple):
    """What the forms of a call's operands decide.

    Attributes
    ----------
    needs : which inputs need a gradient
    kernel : what computes the result from arrays and arguments
    formulas : one an input, or the joint one alone; None where no gradient is needed
    calls : what is called for each formula, with the same parameters
    spreads : for each input where `take` finds its entries for the kernel, or None
    sums : for each formula what sums its gradient to its input's shape, or None
    steady : whether every result has the shape and dtype of the first
    """

    needs: tuple[bool, ...]
    kernel: Kernel
    formulas: tuple[Formula | None, ...]
    calls: tuple[Formula | None, ...]
    spreads: tuple[Array | None, ...]
    sums: tuple[Summing | None, ...]
    steady: bool


class Plan:
    """How an operation runs on operands of some forms, and what its node saves and computes.

    `run` takes the operands, after the arguments where the operation has any, and returns the
    result. `proven` is set by the walk once gradients had the inputs' shapes and dtypes: where
    forms decide these, they always will.
    """

    __slots__ = ("apply", "arguments", "op", "proven", "run", "saves", "steady")

    def __init__(
        self, op: Recordable, settled: Settled, arguments: tuple[Any, ...] | None = None
    ) -> None:
        self.op = op
        self.arguments = arguments  # where they are part of what the plan is known by
        self.steady = settled.steady
        self.proven = False
        self.saves = _names_read(settled.formulas)
        spread = tuple(at is not None for at in settled.spreads)
        sums = tuple(summing is not None for summing in settled.sums)
        reads = tuple(None if f is None else formula_parameters(f) for f in settled.formulas)
        layout = (settled.needs, reads, spread, sums, settled.steady)
        make = op.layouts.get(layout)
        if make is None:
            if len(op.layouts) >= _KEPT_LAYOUTS:  # lists of operands have many sets of needs
                op.layouts.clear()
            make = op.layouts[layout] = _compile(op, settled, self.saves)
        self.run: Callable[..., Tensor]
        self.apply: Callable[[Node, Array], Gradients]
        self.run, self.apply = make(self, settled)

    @property
    def saved_tensors(self) -> tuple[str, ...]:
        """The names of the tensors whose values a node keeps (`out` for the output)."""
        tensors = {"out", *self.op.inputs}
        return tuple(name for name in self.saves if name in tensors)


def upstream(g: Array) -> Array:
    """The formula of an operand whose gradient is the upstream gradient."""
    return g


def formula_parameters(formula: Formula) -> tuple[str, ...]:
    """Return the parameter names of a formula, `g` first."""
    declared: tuple[str, ...] | None = getattr(formula, "parameters", None)
    if declared is not None:
        return declared
    code = getattr(formula, "__wrapped__", formula).__code__
    return tuple(code.co_varnames[: code.co_argcount])


def readable_names(op: Recordable) -> set[str]:
    """Return the names that a formula of `op` may read besides `g`."""
    metadata = {f"{name}_{kind}" for name in op.inputs for kind in ("shape", "dtype")}
    names = {"out", *op.inputs, *op.arguments, *metadata}
    return names | {"needs"} if op.joint is not None else names


def formulas_of(op: Recordable, needs: tuple[bool, ...]) -> tuple[Formula | None, ...]:
    """Return the formulas that run when the inputs flagged in `needs` need a gradient."""
    if op.joint is not None:
        return (op.joint,) if True in needs else ()
    return tuple(vjp if needed else None for vjp, needed in zip(op.vjps, needs, strict=True))


def _names_read(formulas: tuple[Formula | None, ...]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for formula in formulas:
        if formula is not None:
            names.update(dict.fromkeys(formula_parameters(formula)[1:]))
    names.pop("needs", None)
    return tuple(names)


def _compile(op: Recordable, settled: Settled, saves: tuple[str, ...]) -> Callable[..., Any]:
    """Return `make(plan, settled)`, which gives a plan's `run` and `apply`."""
    run = _run_source(op, settled, saves)
    apply = _apply_source(op, settled, saves)
    body = [
        "def make(plan, settled):",
        "    plain = None",
        "    kernel = settled.kernel",
        *(f"    vjp{i} = settled.calls[{i}]" for i in range(len(settled.calls))),
        *(f"    at{i} = settled.spreads[{i}]" for i in range(len(settled.spreads))),
        *(f"    sum{i} = settled.sums[{i}]" for i in range(len(settled.sums))),
        *(f"    {line}" for line in (*run, *apply)),
        "    return run, apply",
    ]
    scope: dict[str, Any] = {
        "FunctionNode": FunctionNode,
        "KaelError": KaelError,
        "Storage": Storage,
        "Tensor": Tensor,
        "__name__": __name__,
        "asarray": np.asarray,
        "form_of": form_of,
        "gradient_edge": gradient_edge,
        "may_share_memory": np.may_share_memory,
        "ndarray": np.ndarray,
        "needs_": settled.needs,
        "new": object.__new__,
        "op": op,
        "raise_released": raise_released,
        "raise_stale": raise_stale,
        "state": state,
    }
    exec("\n".join(body), scope)  # the source is made of the declaration's own names alone
    make: Callable[..., Any] = scope["make"]
    return make


def _run_source(op: Recordable, settled: Settled, saves: tuple[str, ...]) -> list[str]:
    """Return the lines of `run`: compute, record, tell the observer."""
    names = [f"in{i}" for i in range(len(op.inputs))]
    each = "*inputs" if op.variadic else ", ".join(names)
    inputs = "inputs" if op.variadic else f"({each},)"
    arguments = "arguments" if op.arguments else "()"
    lines = [
        f"def run({'arguments, ' if op.arguments else ''}{each}):",
        "    nonlocal plain",
        "    here = state.here",
        "    quiet = here.run",
        "    try:",
        *(f"        {line}" for line in _compute_source(op, settled)),
        "    except KaelError:",
        "        raise",
        "    except Exception as error:",
        f"        raise op.failure(error, [tensor.shape for tensor in {inputs}]) from error",
        "    if array.__class__ is not ndarray:",
        "        array = asarray(array)",
        "    form = plain",
    ]
    other = (
        "" if settled.steady else " or array.shape != form.shape or array.dtype is not form.dtype"
    )
    lines += [f"    if form is None{other}:", "        form = plain = form_of(array)"]
    if True in settled.needs:
        floating = "" if settled.steady and not op.arguments else " and form.floating"
        prepare, kept = _saved_source(op, saves)
        lines += [
            f"    if here.grad_enabled{floating}:",
            *(f"        {line}" for line in prepare),
            "        node = FunctionNode()",
            "        node.plan = plan",
            f"        node.saved = ({', '.join(kept)}{',' if kept else ''})",
            f"        node.edges = {_edges_source(op, settled.needs)}",
            "        node.form = form = form.recorded",
            "        node.retained = None",
            "    else:",
            "        node = None",
            *(["        storage = None"] if "out" in saves else []),
        ]
    else:
        lines += ["    node = None"]
    recorded_out = True in settled.needs and "out" in saves
    lines += [
        "    out = new(Tensor)",
        "    out._array = array",
        "    out._form = form",
        "    out._grad_fn = node",
        "    out._grad = None",
        f"    out._storage = {'storage' if recorded_out else 'None'}",
        "    out._accumulator = None",
    ]
    if op.view:
        lines += [
            "    if array.base is not None and "
            "(array.base is in0._array or may_share_memory(array, in0._array)):",
            "        out._storage = in0.storage",
        ]
    lines += [
        "    if here.observer is not None:",
        f"        here.observer(op, {inputs}, {arguments}, out, node)",
        "    return out",
    ]
    return lines


def _compute_source(op: Recordable, settled: Settled) -> list[str]:
    """Return the lines that run the kernel, on operands that are spread where that pays."""
    given = [f"in{i}._array" for i in range(len(op.inputs))]
    arrays = "[t._array for t in inputs]" if op.variadic else ", ".join(given)
    plainly = f"array = quiet(kernel, {arrays}{', *arguments' if op.arguments else ''})"
    flags = [at is not None for at in settled.spreads]
    if True not in flags:
        return [plainly]
    spread = [f"{x}.take(at{i})" if flags[i] else x for i, x in enumerate(given)]
    lines = [f"array = quiet(kernel, {', '.join(spread)})"]
    # Spread operands lie row by row, and so would the result: it lies as the whole operand does.
    whole = [
        f"{x}.flags.c_contiguous" for x, spread in zip(given, flags, strict=True) if not spread
    ]
    if not whole:
        return lines
    return [f"if {whole[0]}:", f"    {lines[0]}", "else:", f"    {plainly}"]


def _apply_source(op: Recordable, settled: Settled, saves: tuple[str, ...]) -> list[str]:
    """Return the lines of `apply`: check what was saved, call the formulas."""
    unpack: list[str] = []
    checks: list[str] = []
    for name in saves:
        unpack.append(f"{name}_")
        if _is_tensor(op, name):
            unpack += [f"{name}_storage", f"{name}_version"]
            checks.append(
                f"    if {name}_storage.version != {name}_version: "
                f"raise_stale(node, {name!r}, {name}_storage, {name}_version)"
            )
    calls = []
    for position, formula in enumerate(settled.formulas):
        call = "None"
        if formula is not None:
            read = ["g", *(f"{name}_" for name in formula_parameters(formula)[1:])]
            call = "g" if formula is upstream else f"vjp{position}({', '.join(read)})"
            if op.joint is None and settled.sums[position] is not None:
                call = f"sum{position}({call})"
        calls.append(call)
    together = f"({''.join(f'{call}, ' for call in calls)})"
    return [
        "def apply(node, g):",
        "    saved = node.saved",
        "    if saved is None: raise_released(node)",
        *([f"    ({', '.join(unpack)},) = saved"] if unpack else []),
        *checks,
        f"    return {calls[0] if op.joint and calls else together}",
    ]


def _is_tensor(op: Recordable, name: str) -> bool:
    """Tell whether a saved value is an array whose version counts."""
    return name == "out" or (name in op.inputs and not op.variadic)


def _saved_source(op: Recordable, saves: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the lines before the saved values, and the expressions of these."""
    prepare: list[str] = []
    kept: list[str] = []
    for name in saves:
        if name == "out":  # a result this new has no storage yet
            prepare += ["storage = new(Storage)", "storage.version = 0", "storage.writer = None"]
            kept += ["array", "storage", "0"]
        elif _is_tensor(op, name):
            tensor = f"in{op.inputs.index(name)}"
            prepare.append(f"{name}_storage = {tensor}._storage or {tensor}.storage")
            kept += [f"{tensor}._array", f"{name}_storage", f"{name}_storage.version"]
        else:
            kept.append(_plain_source(op, name))
    return prepare, kept


def _edges_source(op: Recordable, needs: tuple[bool, ...]) -> str:
    """Return the expression of the inputs' edges."""
    if op.variadic:
        return "tuple([gradient_edge(tensor) for tensor in inputs])"
    edges = [
        f"in{i}._grad_fn or gradient_edge(in{i})" if n else "None" for i, n in enumerate(needs)
    ]
    # A lone first edge stands for itself: see `Node.edges`.
    return f"({', '.join(edges)},)" if any(needs[1:]) else edges[0]


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
