"""What a call of an operation runs: compute, record, tell the observer.

The function is written out as source for each operation and compiled, as `dataclasses` does: a
loop over operands would cost more than the arithmetic of a small tensor. What an operation is
stands in `declare.py`, how a result joins the graph in `engine/formula.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kael import dtypes, kernels
from kael.engine.grad_mode import state
from kael.errors import KaelError, KaelValueError
from kael.tensors import Tensor

if TYPE_CHECKING:
    from kael.ops.declare import Operation


def is_short(op: Operation) -> bool:
    """Tell whether a call is its one or two operands and nothing else: the bulk of any formula."""
    if op.arguments or op.variadic or op.view or op.prepare is not None:
        return False
    return len(op.inputs) == 1 or (len(op.inputs) == 2 and op.broadcasts)


def compile_call(op: Operation) -> Callable[..., Tensor]:
    """Return `call(*operands)`, of any operands, for an operation whose call is short.

    For any other, return `call(arguments, *inputs)`, of prepared arguments and tensors.
    """
    short = is_short(op)
    names = list(op.inputs) if short else [f"in{i}" for i in range(len(op.inputs))]
    each = "*inputs" if op.variadic else ", ".join(names)
    inputs = "inputs" if op.variadic else f"({each},)"
    arguments = "()" if short else "arguments"
    body = _operands(*names) if short else []
    if op.variadic:
        given = "arrays"
        body += ["arrays = [tensor._array for tensor in inputs]"]
        body += ["needs = tuple([tensor._requires_grad for tensor in inputs])"]
        needed, needs = "True in needs", "needs"
    else:
        arrays = [f"a{i}" for i in range(len(names))]
        given = ", ".join(arrays)
        body += [f"{a} = {name}._array" for a, name in zip(arrays, names, strict=True)]
        flags = [f"n{i}" for i in range(len(names))]
        body += [f"{n} = {name}._requires_grad" for n, name in zip(flags, names, strict=True)]
        needed, needs = f"({' or '.join(flags)})", f"({', '.join(flags)},)"
    body += [
        "here = state.here",
        "try:",
        *_promotion(op, given, needed),
        f"    array = here.run({_kernel(op, given)}, {given}{'' if short else ', *arguments'})",
        "except KaelError:",
        "    raise",
        "except Exception as error:",
        f"    raise op.failure(error, [tensor.shape for tensor in {inputs}]) from error",
        "if array.__class__ is not ndarray:",
        "    array = asarray(array)",
    ]
    if op.differentiable:
        floating = "" if short else " and array.dtype.kind == 'f'"
        body += [
            f"if {needed} and here.grad_enabled{floating}:",
            f"    plan = plans.get({needs}) or op.make_plan({needs})",
            f"    out = plan.record(array, {arguments}, {each})",
            "else:",
            "    out = Tensor(array)",
        ]
    else:
        body += ["out = Tensor(array)"]
    if op.view:
        body += [
            "if array.base is not None and (array.base is a0 or may_share_memory(array, a0)):",
            f"    out._storage = {names[0]}.storage",
        ]
    body += [
        "if here.observer is not None:",
        f"    here.observer(op, {inputs}, {arguments}, out, out._grad_fn)",
        "return out",
    ]
    header = f"def call({each if short else f'arguments, {each}'}):"
    scope: dict[str, Any] = {
        "KaelError": KaelError,
        "NUMBERS": frozenset((float, int)),
        "POOLED": kernels.POOL_FROM_BYTES,
        "Tensor": Tensor,
        "__name__": __name__,
        "asarray": np.asarray,
        "constant": constant,
        "kernel": op.kernel,
        "may_share_memory": np.may_share_memory,
        "ndarray": np.ndarray,
        "op": op,
        "plans": op.plans,
        "small_kernel": op.small_kernel,
        "state": state,
    }
    exec("\n    ".join([header, *body]), scope)  # made of the declaration's own names alone
    call: Callable[..., Tensor] = scope["call"]
    return call


def _operands(*names: str) -> list[str]:
    """Return the lines that turn what a user gave into tensors."""
    together = f"(({', '.join(names)},), _) = op.prepared(({', '.join(names)},), ())"
    if len(names) == 1:
        return [f"if {names[0]}.__class__ is not Tensor:", f"    {together}"]
    lines: list[str] = []
    for one, other in (names, reversed(names)):
        # A Python number takes the dtype of the tensor beside it.
        lines += [
            f"if {one}.__class__ is not Tensor:",
            f"    if {one}.__class__ in NUMBERS and {other}.__class__ is Tensor:",
            f"        {one} = constant({one}, {other}._array.dtype)",
            "    else:",
            f"        {together}",
        ]
    return lines


def _promotion(op: Operation, given: str, needed: str) -> list[str]:
    """Return the lines that bring arrays to one dtype, asked for only where theirs differ."""
    if op.variadic:
        return [f"    {given} = op.promoted({given})"] if op.promotes or op.real else []
    at = [i for i, name in enumerate(op.inputs) if op.real or name in op.promotes]
    due = [f"a{i}.dtype is not a{at[0]}.dtype" for i in at[1:]]
    if op.real:
        due += [f"not {needed} and a{at[0]}.dtype.kind != 'f'"]
    return (
        [f"    if {' or '.join(due)}:", f"        {given}, = op.promoted([{given}])"] if due else []
    )


def _kernel(op: Operation, given: str) -> str:
    """Return what names the kernel: small arrays spare it the question where its result lies."""
    if op.small_kernel is op.kernel:
        return "kernel"
    small = " and ".join(f"{array}.nbytes < POOLED" for array in given.split(", "))
    return f"small_kernel if {small} else kernel"


_constants: dict[tuple[type, float, dtypes.DType], Tensor] = {}


def constant(value: float, beside: dtypes.DType) -> Tensor:
    """Return a Python number as a 0-d tensor in the dtype it takes beside a tensor of `beside`.

    Numbers in a formula come again and again; the last few hundred are kept. Nobody writes into
    them: users never hold them.
    """
    key = (value.__class__, value, beside)
    known = _constants.get(key)
    if known is not None:
        return known
    dtype = dtypes.weak(value, beside)
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise KaelValueError(f"{value} does not fit into {dtype}")
    try:
        with np.errstate(all="ignore"):  # beyond float32 a number is infinite
            made = Tensor(np.array(value, dtype))
    except OverflowError:
        raise KaelValueError(f"{str(value)[:20]}... does not fit into {dtype}") from None
    lasting = beside.kind == "f" or not isinstance(value, float)  # whatever the default dtype is
    # Not 0, whose sign a key does not tell; not NaN, never found again.
    if lasting and value * 0 == 0 != value:
        if len(_constants) >= 512:
            _constants.clear()
        _constants[key] = made
    return made
