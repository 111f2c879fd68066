"""The constants that an expression makes from a shape: `eye(3)`, `zeros(2, 3)`, `arange(4)`.

Numbers that are typed or drawn are inputs, and stay so: `values.py` and `inputs.py` read those.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kael import dtypes
from kael.specs.growth import Refused, check_elements, sizes_of
from kael.tensors import Tensor

Shape = tuple[int, ...]


class Creator:
    """A function of `kael.ops.create`, with what the language has to know of it.

    `shape` tells beforehand how large the result is. `rest` is the parameter that takes several
    values. `like` says that the first one is a tensor, of which shape and dtype alone are read.
    """

    __slots__ = ("defaults", "like", "name", "parameters", "rest", "shape", "signature")

    method = False
    strings = ("dtype",)

    def __init__(
        self,
        signature: str,
        shape: Callable[..., Shape],
        *optional: str,
        rest: str | None = None,
        like: bool = False,
    ) -> None:
        self.name, _, listed = signature.rstrip(")").partition("(")
        words = [word.strip(" *").partition("=")[0] for word in listed.split(",")]
        self.signature = f"{self.name}({listed}, {'' if rest else '*, '}dtype=None)"
        self.parameters = (*words, "dtype")
        self.defaults = dict.fromkeys((*optional, "dtype"))
        self.shape = shape
        self.rest = rest
        self.like = like

    def __call__(self, given: Sequence[Any], named: Mapping[str, Any], limit: int) -> Tensor:
        """Return the constant; raises `KaelError` where it would have more than `limit` elements.

        A tensor's values are refused: its gradient would end there in silence.
        """
        from kael.ops import create  # it brings NumPy's random numbers with it

        first = self.parameters[0]
        named = dict(named)
        dtype = named.pop("dtype", None)
        values = [named.pop(first), *given] if first in named else list(given)
        if any(isinstance(one, Tensor) for one in flat([*values[self.like :], *named.values()])):
            raise Refused(f"{self.name} makes a constant, from numbers and not from a tensor")
        try:
            shape = self.shape(*values, **named)
        except (TypeError, ValueError, OverflowError, ZeroDivisionError, AttributeError):
            shape = ()  # it is refused below, in better words
        check_elements(shape, limit, self.name)
        if dtype is None and not self.like:
            dtype = dtypes.default_dtype()
        made: Tensor = getattr(create, self.name)(*values, **named, dtype=dtype)
        return made


def flat(values: Iterable[Any]) -> list[Any]:
    """Return the items of lists and tuples in a list."""
    found: list[Any] = []
    for value in values:
        found += flat(value) if isinstance(value, (list, tuple)) else [value]
    return found


def sized(*size: Any) -> Shape:
    """Return sizes given one by one or as one list."""
    return sizes_of(size)


def filled(size: Any, fill_value: float) -> Shape:
    """Return the shape of `full`."""
    return sized(size)


def matrix(n: int, m: int | None = None) -> Shape:
    """Return the shape of `eye`."""
    return sized(n, n if m is None else m)


def counted(start: float, end: float | None = None, step: float = 1) -> Shape:
    """Return the shape of `arange`."""
    first, last = (0, start) if end is None else (start, end)
    return (max(0, math.ceil((last - first) / step)),)


def spaced(start: float, end: float, steps: int) -> Shape:
    """Return the shape of `linspace`."""
    return sized(steps)


def alike(x: Any, fill_value: float = 0) -> Shape:
    """Return the shape of a tensor."""
    return tuple(x.shape)


CREATORS = {
    made.name: made
    for made in (
        Creator("zeros(*size)", sized, rest="size"),
        Creator("ones(*size)", sized, rest="size"),
        Creator("full(size, fill_value)", filled),
        Creator("eye(n, m=None)", matrix, "m"),
        Creator("arange(start, end=None, step=1)", counted, "end", "step"),
        Creator("linspace(start, end, steps)", spaced),
        Creator("zeros_like(x)", alike, like=True),
        Creator("ones_like(x)", alike, like=True),
        Creator("full_like(x, fill_value)", alike, like=True),
    )
}
