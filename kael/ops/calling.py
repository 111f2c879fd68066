"""What a call of an operation runs: find the plan for the operands' forms, and run it.

The function is written out as source for each operation and compiled, as `dataclasses` does: a
loop over operands would cost more than the arithmetic of a small tensor. What an operation is
stands in `declare.py`, what a plan does in `engine/formula.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kael import dtypes
from kael.errors import KaelValueError
from kael.tensors import Tensor

if TYPE_CHECKING:
    from kael.ops.declare import Operation

# What an operator takes on its other side; for anything else Python tries the other operand.
OPERANDS = (Tensor, int, float, np.ndarray, np.generic, list, tuple)

# Values of these classes are told apart, with their class, by equality: a call's plan is known by
# them. (0.0 and -0.0 are equal, and a list changes.)
_KEPT = frozenset((type(None), bool, int, str))


class Absent:
    """Stands for a parameter that a call leaves out although it has no default."""


def is_short(op: Operation) -> bool:
    """Tell whether a call is its one or two operands and nothing else: the bulk of any formula."""
    if op.arguments or op.variadic or op.view or op.prepare is not None:
        return False
    return len(op.inputs) == 1 or (len(op.inputs) == 2 and op.broadcasts)


def compile_operator(op: Operation) -> Callable[..., Tensor]:
    """Return the operator of two operands: what no operation takes is left to the other one."""
    if is_short(op):
        return _short_call(op, declines=True)
    function = op.function

    def call(x: Tensor, other: Any) -> Any:
        return function(x, other) if isinstance(other, OPERANDS) else NotImplemented

    return call


def compile_call(op: Operation) -> Callable[..., Tensor]:
    """Return the function that users call."""
    if is_short(op):
        return _short_call(op)
    if op.by_form and op.rest is None:
        return _known_call(op)

    def call(*args: Any, **kwargs: Any) -> Tensor:
        inputs, arguments = op.bind(args, kwargs)
        return op.apply(inputs, arguments)

    return call


def _short_call(op: Operation, declines: bool = False) -> Callable[..., Tensor]:
    names = op.inputs
    each = ", ".join(names)
    if len(names) == 1:
        body = [
            f"if {each}.__class__ is not Tensor:",
            f"    {each} = op.prepared(({each},), ())[0][0]",
        ]
    else:
        body = []
        for one, other in (names, reversed(names)):
            # A Python number takes the dtype of the tensor beside it.
            body += [
                f"if {one}.__class__ is not Tensor:",
                f"    if {one}.__class__ in NUMBERS and {other}.__class__ is Tensor:",
                f"        beside = {other}._array.dtype",
                f"        known = constants.get((beside, {one}, {one}.__class__))",
                f"        {one} = constant({one}, beside) if known is None else known",
                *([f"    elif not isinstance({one}, OPERANDS):"] if declines else []),
                *(["        return NotImplemented"] if declines else []),
                "    else:",
                f"        ({each},), _ = op.prepared(({each},), ())",
            ]
    forms = ", ".join(f"{name}._form" for name in names)
    body += [
        f"plan = plans.get({forms if len(names) == 1 else f'({forms})'})",
        "if plan is None:",
        f"    plan = op.plan_for(({each},), ())",
        "run = plan.run",
        f"return run({each})",
    ]
    return _compiled(op, each, body)


def _known_call(op: Operation) -> Callable[..., Tensor]:
    """Return the call of an operation whose plans are also known by plain arguments."""
    values = ", ".join(op.parameters)
    header = ", ".join(
        f"{name}=defaults[{name!r}]" if name in op.defaults else f"{name}=Absent"
        for name in op.parameters
    )
    tensors = " and ".join(f"{name}.__class__ is Tensor" for name in op.inputs)
    key = [f"{name}._form" for name in op.inputs]
    key += [part for name in op.arguments for part in (name, f"{name}.__class__")]
    arguments = "plan.arguments, " if op.arguments else ""
    body = [
        f"if {tensors} and not more and not named:",
        "    try:",
        f"        plan = plans.get(({', '.join(key)},))",
        "    except TypeError:",  # a list, which is prepared each time
        "        plan = None",
        "    if plan is not None:",
        "        run = plan.run",
        f"        return run({arguments}{', '.join(op.inputs)})",
        f"return op.call_unknown(({values},), more, named)",
    ]
    return _compiled(op, f"{header}, *more, **named", body)


def _compiled(op: Operation, header: str, body: list[str]) -> Callable[..., Tensor]:
    scope: dict[str, Any] = {
        "Absent": Absent,
        "NUMBERS": frozenset((float, int)),
        "OPERANDS": OPERANDS,
        "Tensor": Tensor,
        "__name__": __name__,
        "constant": constant,
        "constants": _constants,
        "defaults": op.defaults,
        "op": op,
        "plans": op.plans,
    }
    # made of the declaration's own names alone
    exec("\n    ".join([f"def call({header}):", *body]), scope)
    call: Callable[..., Tensor] = scope["call"]
    return call


def can_be_kept(arguments: Sequence[Any]) -> bool:
    """Tell whether a plan may be known by these arguments of a call."""
    return all(argument.__class__ in _KEPT for argument in arguments)


def are_plain(arguments: Sequence[Any]) -> bool:
    """Tell whether prepared arguments tell a plan: such as may be kept, and tuples of integers."""
    return all(
        argument.__class__ in _KEPT
        or (argument.__class__ is tuple and {int}.issuperset(map(type, argument)))
        for argument in arguments
    )


_constants: dict[tuple[dtypes.DType, float, type], Tensor] = {}


def constant(value: float, beside: dtypes.DType) -> Tensor:
    """Return a Python number as a 0-d tensor in the dtype it takes beside a tensor of `beside`.

    Numbers in a formula come again and again; the last few hundred are kept. Nobody writes into
    them: users never hold them.
    """
    key = (beside, value, value.__class__)
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
