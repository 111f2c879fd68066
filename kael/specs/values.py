"""The text of a value on the command line: `3`, `[1, 2]`, `randn(2,3)`, `@file.npy`.

`tensor([0, 2], dtype=int64)` is a list with a dtype.
"""

import ast
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from kael.specs.inputs import Input, check_fields
from kael.specs.literals import Nested, Number, plain_number, read_nested
from kael.specs.place import Place, SpecError
from kael.specs.spelling import did_you_mean
from kael.specs.syntax import Pieces, Text

# What a generator takes by position: its sizes, its own numbers, or the values.
GENERATORS: dict[str, tuple[str, ...]] = {
    "randn": ("*size",),
    "zeros": ("*size",),
    "ones": ("*size",),
    "uniform": ("low", "high", "shape"),
    "arange": ("start", "end", "step"),
    "linspace": ("start", "end", "steps"),
    "tensor": ("data",),
}
WITHOUT_SHAPE = ("arange", "linspace", "tensor")
INITS = {"randn": "normal", "zeros": "zeros", "ones": "ones", "uniform": "uniform"}
HINT = (
    "a value is a number, a list of numbers, @file.npy, @file.npz:key, @file.csv, or one of\n"
    "randn(2,3), uniform(0.5,2.5,shape=[2,3]), zeros(3), ones(3), arange(6), linspace(0,1,5),\n"
    "tensor([0, 2], dtype=int64)"
)
DOTTED = r"(?<![\w.)\]])\.(?=(?:inf|nan)\b)"


def without_dots(text: str) -> str:
    """Return the text with YAML's dot before `inf` and `nan` as a blank."""
    return re.sub(DOTTED, " ", text, flags=re.IGNORECASE) if "." in text else text


class ValueReader:
    """The literals of a command line, from Python's syntax tree."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def items(self, node: Any) -> Sequence[Any] | None:
        """Return the items of a list or a tuple."""
        return node.elts if isinstance(node, (ast.List, ast.Tuple)) else None

    def number(self, node: Any) -> Number:
        """Return a number, a signed one, or a truth value."""
        sign = 1
        inner = node
        if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, (ast.USub, ast.UAdd)):
            sign = -1 if isinstance(inner.op, ast.USub) else 1
            inner = inner.operand
        value: Any = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(inner, ast.Name):
            value = plain_number(inner.id)
        if isinstance(value, bool) and inner is node:
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return sign * value
        raise self.text.error(f"{what(node)} is not a value", node.col_offset, HINT)

    def place(self, node: Any) -> Place:
        """Return where a node stands."""
        return self.text.at(node.col_offset)


def what(node: ast.expr) -> str:
    """Return what a node is, for a message."""
    if isinstance(node, ast.Name):
        return f"'{node.id[:60]}'"
    if isinstance(node, ast.Constant):
        return (
            f"{str(node.value)[:60]!r}" if isinstance(node.value, str) else f"{node.value!r}"[:60]
        )
    if isinstance(node, ast.Call):
        return "a call inside a list"
    return "an expression"


def parse_value(text: str, place: Place, folder: str = "", max_elements: int = 10**8) -> Input:
    """Return the input that a value stands for.

    Raises `SpecError` with a place inside the value.

    >>> parse_value("randn(2,3)", Place(None, 1, 1, "-i x")).shape
    (2, 3)
    """
    stripped = text.strip()
    if stripped.startswith("@"):
        name = stripped[1:]
        if not name:
            raise SpecError("@ is followed by the name of a file", place)
        found = Input(file=name)
        found.place, found.folder = place, folder
        check_fields(found, lambda field: place)
        return found
    source = Text(without_dots(text), place)
    if not stripped:
        raise SpecError("the value is empty", place, hint=HINT)
    node = Pieces(source).root()
    if isinstance(node, ast.Call):
        found = generated(node, source, max_elements)
    else:
        found = Input(value=read_nested(node, ValueReader(source)))
    found.place = place
    check_fields(found, lambda field: place)
    return found


def generated(node: ast.Call, text: Text, max_elements: int) -> Input:
    """Return the input of a generator call."""
    reader = ValueReader(text)
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in GENERATORS:
        near = did_you_mean(name, GENERATORS)
        message = f"unknown generator '{name[:60]}'{near}" if name else "only a generator is called"
        raise text.error(message, node.col_offset, HINT)
    fields: dict[str, Any] = {}
    parameters = GENERATORS[name]
    for at, argument in enumerate(node.args):
        if parameters[0] == "*size":
            fields.setdefault("shape", []).append((argument, read_nested(argument, reader)))
        elif at < len(parameters):
            fields[parameters[at]] = (argument, read_nested(argument, reader))
        else:
            raise text.error(f"{name} takes {', '.join(parameters)}", argument.col_offset)
    for keyword in node.keywords:
        allowed = {*parameters, "seed", "shape", "dtype"} - {"*size"}
        allowed -= {"shape", "seed"} if name in WITHOUT_SHAPE else set()
        if keyword.arg not in allowed:
            near = did_you_mean(str(keyword.arg), allowed)
            raise text.error(f"{name} takes no argument '{keyword.arg}'{near}", keyword.col_offset)
        if keyword.arg in fields:
            raise text.error(f"'{keyword.arg}' is given twice", keyword.col_offset)
        if keyword.arg == "dtype":
            fields["dtype"] = (keyword.value, dtype_name(keyword.value, text))
        else:
            fields[str(keyword.arg)] = (keyword.value, read_nested(keyword.value, reader))
    dtype = fields.pop("dtype", (None, None))[1]
    if name == "tensor":
        if "data" not in fields:
            raise text.error("tensor needs values: tensor([0, 2])", node.col_offset)
        found = Input(value=fields["data"][1])
    elif name in WITHOUT_SHAPE:
        found = Input(value=sequence(name, fields, node, text, max_elements))
    else:
        found = Input(init=INITS[name], shape=sizes(fields.pop("shape", []), text))
        for field, (argument, nested) in fields.items():
            setattr(found, field, scalar(nested, argument, text, field == "seed"))
    found.dtype = dtype
    return found


def dtype_name(node: ast.expr, text: Text) -> str:
    """Return the dtype a keyword names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise text.error("dtype is a name, like float32", node.col_offset)


def sizes(given: Any, text: Text) -> list[int]:
    """Return the sizes of a shape, given one by one or as one list."""
    pairs = given if isinstance(given, list) else [given]
    found: list[int] = []
    for argument, nested in pairs:
        whole = nested.kind == "i" or not nested.values
        if not whole or len(nested.shape) > 1 or min(nested.values, default=0) < 0:
            raise text.error("a size is an integer that is not negative", argument.col_offset)
        found += nested.values
    return found


def scalar(nested: Nested, node: ast.expr, text: Text, whole: bool = False) -> Any:
    """Return a single number."""
    if nested.shape or nested.kind == "b" or (whole and nested.kind != "i"):
        kind = "an integer" if whole else "a number"
        raise text.error(f"{kind} is expected here", node.col_offset)
    return nested.values[0]


def sequence(
    name: str, fields: dict[str, Any], node: ast.Call, text: Text, max_elements: int
) -> Nested:
    """Return the numbers of `arange` or `linspace`."""
    numbers = {field: scalar(nested, at, text) for field, (at, nested) in fields.items()}
    if name == "arange":
        if "start" not in numbers:
            raise text.error("arange needs an end: arange(6)", node.col_offset)
        if "end" not in numbers:
            numbers = {"start": 0, "end": numbers["start"], "step": numbers.get("step", 1)}
        start, end, step = numbers["start"], numbers["end"], numbers.get("step", 1)
        if not step:
            raise text.error("arange needs a step that is not 0", node.col_offset)
        steps = (end - start) / step
    else:
        missing = [field for field in GENERATORS[name] if field not in numbers]
        if missing:
            raise text.error(f"linspace needs '{missing[0]}': linspace(0,1,5)", node.col_offset)
        start, end, steps = numbers["start"], numbers["end"], numbers["steps"]
        if not isinstance(steps, int) or steps < 0:
            raise text.error("linspace takes a number of steps: linspace(0,1,5)", node.col_offset)
    if not abs(steps) <= max_elements:
        raise text.error(f"{name} would give more than {max_elements:,} elements", node.col_offset)
    if name == "arange":
        values = np.arange(start, end, step).tolist()
    else:
        values = np.linspace(start, end, steps).tolist()
    kind = "i" if values and isinstance(values[0], int) else "f"
    place = text.at(node.col_offset)
    return Nested(values, (len(values),), kind, place, lambda at: place)
