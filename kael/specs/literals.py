"""Numbers and nested lists of them, wherever they are written, as arrays with a checked shape.

The three notations (YAML nodes, the text behind `-i`, Python data) differ only in how a list's
items, a number and its place are found; a `Reader` says that, and everything else is here.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from kael import dtypes
from kael.specs.place import Place, SpecError

MAX_DIMS = 32

# Patterns are compiled when first used.
INTEGER = r"[-+]?[0-9]+(_[0-9]+)*|0o[0-7]+|0x[0-9a-fA-F]+"
REAL = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
SPECIAL = r"([-+]?)\.?(inf|infinity|nan)"
TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}

Number = bool | int | float


class Reader(Protocol):
    """How one notation is read."""

    def items(self, node: Any) -> Sequence[Any] | None:
        """Return the items of a list; None for anything else."""

    def number(self, node: Any) -> Number:
        """Return a number or a truth value; raises `SpecError` for anything else."""

    def place(self, node: Any) -> Place:
        """Return where the node stands."""


class Nested:
    """A number, or equally long lists of them, read but not yet given a dtype.

    `kind` is "b" for truth values alone, "i" for integers alone, and "f".
    """

    __slots__ = ("kind", "place", "place_of", "shape", "values")

    def __init__(
        self,
        values: list[Number],
        shape: tuple[int, ...],
        kind: str,
        place: Place,
        place_of: Callable[[int], Place],
    ) -> None:
        self.values = values
        self.shape = shape
        self.kind = kind
        self.place = place
        self.place_of = place_of

    def array(self, dtype: dtypes.DType | None, default: dtypes.DType) -> np.ndarray[Any, Any]:
        """Return the values as an array: truth values as bool, all else as reals (`default`).

        Raises `SpecError` at the first value that `dtype` cannot hold.
        """
        if dtype is None:
            dtype = dtypes.bool_ if self.kind == "b" else default
        for at, value in enumerate(self.values if self.kind != dtype.kind else ()):
            problem = misfit(value, dtype)
            if problem:
                raise SpecError(problem, self.place_of(at))
        try:
            with np.errstate(all="ignore"):
                array = np.array(self.values, dtype)
        except OverflowError:
            at = next(at for at, value in enumerate(self.values) if out_of_range(value, dtype))
            text = str(self.values[at])
            what = text if len(text) < 30 else f"an integer of {len(text)} digits"
            raise SpecError(f"{what} is beyond the range of {dtype}", self.place_of(at)) from None
        if dtype.kind == "f" and dtype.itemsize < 8 and not np.isfinite(array).all():
            for at, value in enumerate(self.values):
                if np.isinf(array[at]) and not np.isinf(float(value)):
                    message = f"{value} is beyond the range of {dtype}"
                    raise SpecError(message, self.place_of(at))
        return array.reshape(self.shape)


def misfit(value: Number, dtype: dtypes.DType) -> str | None:
    """Return why a value has no place in a dtype; None when it has."""
    if dtype.kind in "iu" and isinstance(value, float) and not value.is_integer():
        return f"{value:g} is not an integer, and the dtype is {dtype}"
    if dtype.kind == "b" and value not in (0, 1):
        return f"{value:g} is neither true nor false, and the dtype is bool"
    return None


def out_of_range(value: Number, dtype: dtypes.DType) -> bool:
    """Tell whether an integer does not fit into a dtype."""
    try:
        np.array(int(value) if dtype.kind in "iu" else float(value), dtype)
    except OverflowError:
        return True
    return False


def read_nested(root: Any, reader: Reader) -> Nested:
    """Read a number or nested lists, and check that they are equally long at each depth.

    Raises `SpecError` at the item that makes a list ragged, or is no number.
    """
    shape: list[int] = []
    first: Any = root
    while (items := reader.items(first)) is not None:
        shape.append(len(items))
        if len(shape) > MAX_DIMS:
            raise SpecError(f"the list nests over {MAX_DIMS} levels", reader.place(root))
        if not items:
            break
        first = items[0]
    values: list[Number] = []
    leaves: list[Any] = []
    kinds: set[type] = set()

    def walk(node: Any, depth: int) -> None:
        items = reader.items(node)
        if depth == len(shape):
            if items is not None:
                raise SpecError("ragged list: a list here, a number before it", reader.place(node))
            value = reader.number(node)
            kinds.add(type(value))
            values.append(value)
            leaves.append(node)
            return
        if items is None:
            reader.number(node)
            raise SpecError("ragged list: a number here, a list before it", reader.place(node))
        if len(items) != shape[depth]:
            raise SpecError(
                f"ragged list: {count(len(items))} here, {shape[depth]} in the lists before it",
                reader.place(node),
            )
        for item in items:
            walk(item, depth + 1)

    walk(root, 0)
    if bool in kinds and len(kinds) > 1:
        odd = next(at for at, value in enumerate(values) if type(value) is not type(values[0]))
        raise SpecError("truth values and numbers are mixed in one list", reader.place(leaves[odd]))
    kind = "b" if kinds == {bool} else "i" if kinds == {int} else "f"
    return Nested(
        values, tuple(shape), kind, reader.place(root), lambda at: reader.place(leaves[at])
    )


def count(items: int) -> str:
    """Return `1 item`, `2 items`."""
    return f"{items} item" + "s" * (items != 1)


def plain_number(text: str) -> Number | None:
    """Return the number or truth value that an unquoted word of YAML 1.2 stands for, or None.

    >>> plain_number("1e-6"), plain_number("017"), plain_number("-inf"), plain_number("no")
    (1e-06, 17, -inf, None)
    """
    if text in TRUTH:
        return TRUTH[text]
    if re.fullmatch(INTEGER, text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        try:
            return int(text, base)
        except ValueError:  # over Python's limit on digits
            return float("inf")
    if re.fullmatch(REAL, text):
        return float(text)
    special = re.fullmatch(SPECIAL, text.lower())
    return float(special[1] + special[2]) if special else None


class PythonReader:
    """Python's lists, tuples, numbers, arrays and tensors; every place is that of the spec."""

    def __init__(self, place: Place, what: str) -> None:
        self.whole = place
        self.what = what

    def items(self, node: Any) -> Sequence[Any] | None:
        """Return the items of a list, a tuple, or an array or tensor inside one."""
        if hasattr(node, "tolist"):
            node = node.tolist()
        return node if isinstance(node, (list, tuple)) else None

    def number(self, node: Any) -> Number:
        """Return a number or a truth value."""
        if hasattr(node, "item"):
            node = node.item()
        if isinstance(node, (bool, int, float)):
            return node
        kind = type(node).__name__
        raise SpecError(f"{self.what} must be made of numbers, got {kind}", self.whole)

    def place(self, node: Any) -> Place:
        """Return the place of the spec."""
        return self.whole
