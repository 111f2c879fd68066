"""What the forms of a call's operands decide: kernels, formulas, how operands spread and sum.

It is decided once for each set of forms, when the first such call makes its plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kael import kernels
from kael.engine.formula import Kernel, Settled, formulas_of
from kael.forms import Form
from kael.kernels import small, tiers
from kael.ops.registry import REGISTRY

if TYPE_CHECKING:
    from kael.ops.declare import Operation

Array = np.ndarray[Any, Any]


def settle(
    op: Operation, forms: Sequence[Form], arguments: tuple[Any, ...], known: bool
) -> Settled:
    """Return what the operands' forms decide.

    `known` tells that a call's shapes follow from the forms and these very arguments.
    """
    needs = tuple([op.differentiable and form.requires_grad for form in forms])
    formulas = formulas_of(op, needs)
    if op.variadic:
        return Settled(needs, _of_a_list(op), formulas, formulas, (), (), steady=False)
    kernel, calls = op.kernel, formulas
    spreads: tuple[Array | None, ...] = (None,) * len(forms)
    sums: tuple[Any, ...] = (None,) * len(formulas)
    if op.ufunc is not None and max(f.nbytes for f in forms) < kernels.POOL_FROM_BYTES:
        kernel = op.ufunc  # such arrays spare it the question where its result should lie
    if all(form.entries <= small.ENTRIES for form in forms) and not tiers.is_forced():
        calls = tuple(None if f is None else tiers.settled(f) for f in formulas)
        made = op.small(*forms, *arguments) if op.small is not None and known else None
        if made is not None:
            kernel = made[0]
            calls = tuple(f if need else None for f, need in zip(made[1], needs, strict=True))
        elif op.ufunc is not None and len(forms) == 2:
            spreads = small.spreads(*forms)
        if op.batch == "elementwise" and op.broadcasts:
            sums = small.summings(forms, needs)
    # What batches has a shape that no value decides; integers become the default dtype, which may
    # change.
    steady = known and op.batch is not None and (forms[0].floating or not op.real)
    return Settled(needs, _promoting(op, kernel, forms), formulas, calls, spreads, sums, steady)


def _promoting(op: Operation, kernel: Kernel, forms: Sequence[Form]) -> Kernel:
    """Return the kernel, or one that brings operands to one dtype where theirs differ."""
    at = [i for i, name in enumerate(op.inputs) if op.real or name in op.promotes]
    if not at:
        return kernel
    first = forms[at[0]]
    if all(forms[i].dtype is first.dtype for i in at) and (first.floating or not op.real):
        return kernel
    count, general = len(op.inputs), op.kernel
    return lambda *given: general(*op.promoted(given[:count]), *given[count:])


def _of_a_list(op: Operation) -> Kernel:
    if not (op.promotes or op.real):
        return op.kernel
    return lambda arrays, *arguments: op.kernel(op.promoted(arrays), *arguments)


def _forget_plans() -> None:
    for op in list(REGISTRY.values()):  # other threads may be loading more
        op.plans.clear()


tiers.on_change.append(_forget_plans)
