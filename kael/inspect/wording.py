"""How an operation is written: its formula over the names of its operands, its local rule, what
its node saves. Numbers and layouts are elsewhere."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kael.engine.node import FunctionNode
from kael.inspect.numbers import MOST_ELEMENTS, nested, number
from kael.inspect.recorder import Names, Step
from kael.tensors import Tensor

SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "pow": "**",
    "matmul": "@",
    "remainder": "%",
    "floor_divide": "//",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "logical_and": "&",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "logical_or": "|",
}

_IDENTIFIER = re.compile(r"(?<![\w.])[^\W\d]\w*(?!\w*\()")


def formula(step: Step, names: Names) -> str:
    """Return an operation as one would write it: `x * w`, `sum(t, dim=1)`."""
    operands = [operand(tensor, names) for tensor in step.inputs]
    if step.name in SYMBOLS and len(operands) == 2:
        left, right = operands
        return f"{left} {SYMBOLS[step.name]} {_in_operator(right)}"
    if step.name == "neg":
        return f"-{_in_operator(operands[0])}"
    if getattr(step.op, "variadic", False):
        operands = [f"[{', '.join(operands)}]"]
    if getattr(step.op, "parameters", operands)[:1] == step.op_arguments[:1] != ():
        first, *others = arguments(step)
        return f"{step.name}({', '.join([first.partition('=')[2], *operands, *others])})"
    return f"{step.name}({', '.join([*operands, *arguments(step)])})"


def _in_operator(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def arguments(step: Step) -> list[str]:
    """Return the plain arguments that are not the declared defaults, as `name=value`."""
    names = step.op_arguments
    if len(names) != len(step.arguments):
        return [plain(value) for value in step.arguments]
    written = []
    for name, value in zip(names, step.arguments, strict=True):
        default = step.op.defaults.get(name, _REQUIRED)
        if default is _REQUIRED or not _same(value, default, step):
            written.append(f"{name}={plain(value)}")
    return written


_REQUIRED = object()


def _same(value: Any, default: Any, step: Step) -> bool:
    if default is None and step.inputs and value == tuple(range(step.inputs[0].ndim)):
        return True  # all dims, as None means
    return value is default or (type(value) is type(default) and bool(value == default))


def plain(value: Any) -> str:
    """Return a plain argument as one would write it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(plain, value))}]"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return repr(value)
    if isinstance(value, slice):
        parts = [value.start, value.stop, *([] if value.step is None else [value.step])]
        return ":".join("" if part is None else str(part) for part in parts)
    if isinstance(value, (int, float, np.number)):
        return repr(value.item() if isinstance(value, np.number) else value)
    if isinstance(value, Tensor):
        value = value._array
    if isinstance(value, np.ndarray):
        return nested(value.tolist()) if value.size <= MOST_ELEMENTS else f"array{value.shape}"
    return "..." if value is Ellipsis else str(value)


def operand(tensor: Tensor, names: Names) -> str:
    """Return a tensor's name, or a constant's value."""
    name = names.of(tensor)
    if name is not None:
        return name
    array = tensor._array
    if array.ndim == 0:
        value = array.item()
        return f"{value:.12g}" if isinstance(value, float) else number(value)
    return nested(array.tolist()) if array.size <= MOST_ELEMENTS else f"constant{list(array.shape)}"


def local_rule(step: Step, index: int, names: Names) -> str:
    """Return the formula of the gradient of operand `index`, over the names of the operands."""
    texts = getattr(step.op, "vjp_text", None)
    if texts is None:
        return f"{step.name}.backward"
    text = texts[0 if step.op.variadic else index] if texts else ""
    if not text or step.op.prose:
        return text or "g"
    if step.output.ndim == 0:
        from kael.ops.reduce import G as KEPT_DIMS

        text = text.replace(KEPT_DIMS, "g")  # of a full reduction; a number broadcasts by itself
    meaning = {name: plain(v) for name, v in zip(step.op.arguments, step.arguments, strict=True)}
    if not step.op.variadic:
        meaning |= {
            name: operand(tensor, names)
            for name, tensor in zip(step.op.inputs, step.inputs, strict=True)
        }
    meaning["out"] = operand(step.output, names)

    def named(match: re.Match[str]) -> str:
        word = match.group()
        return _grouped(meaning[word]) if word in meaning else word

    return _IDENTIFIER.sub(named, text)


def _grouped(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def saved(step: Step, names: Names) -> str:
    """Return what the node of an operation keeps until the backward: `x and w`, `nothing`."""
    node = step.node
    if node is None:
        return ""
    if not isinstance(node, FunctionNode):
        kept = len(getattr(node.owner, "saved", None) or ())
        return "nothing" if kept == 0 else "1 tensor" if kept == 1 else f"{kept} tensors"
    read = set(node.plan.saves)
    kinds: dict[str, None] = {}
    for name, tensor in _operands(step):
        if name in read:
            kinds[operand(tensor, names)] = None
    if "out" in read:
        kinds[f"its output {operand(step.output, names)}"] = None
    if kinds:
        return listed(list(kinds))
    for kind in ("shape", "dtype"):
        if any(f"{name}_{kind}" in read for name in step.op.inputs):
            return f"the input {kind}"
    return "nothing"


def _operands(step: Step) -> list[tuple[str, Tensor]]:
    if step.op.variadic:
        return [(step.op.inputs[0], tensor) for tensor in step.inputs]
    return list(zip(step.op.inputs, step.inputs, strict=True))


def listed(parts: list[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
