"""Shapes, dims and broadcasting as integers and tuples; arrays' values are not looked at here."""

import operator
from collections.abc import Sequence
from itertools import pairwise
from math import prod

from kael.errors import KaelIndexError, KaelTypeError, KaelValueError

Shape = tuple[int, ...]


def text(shape: Sequence[int]) -> str:
    """Write a shape as people read it.

    >>> text((2, 3)), text(())
    ('[2, 3]', '[]')
    """
    return f"[{', '.join(str(size) for size in shape)}]"


def numel(shape: Sequence[int]) -> int:
    """Return how many elements a shape holds."""
    return prod(shape)


def as_index(value: object, operation: str, name: str = "dim") -> int:
    """Return `value` as an int; `KaelTypeError` for a bool, a float or anything else."""
    if isinstance(value, bool):
        raise KaelTypeError(f"{operation}: {name} must be an integer, got {value}")
    try:
        index = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        kind = type(value).__name__
        raise KaelTypeError(f"{operation}: {name} must be an integer, got {kind}") from None
    if not -(2**63) <= index < 2**63:
        raise KaelValueError(f"{operation}: {name} {index} is beyond every size")
    return index


def wrap_dim(dim: object, ndim: int, operation: str) -> int:
    """Return `dim` counted from the front.

    Raises `KaelIndexError` outside `[-ndim, ndim - 1]`; a 0-d tensor takes 0 and -1.

    >>> wrap_dim(-1, 3, "sum")
    2
    """
    if dim.__class__ is int and 0 <= dim < ndim:
        return dim
    index = as_index(dim, operation)
    room = max(ndim, 1)
    if not -room <= index < room:
        raise KaelIndexError(
            f"{operation}: dim {index} is out of range for a {ndim}-d tensor; "
            f"use {-room} to {room - 1}"
        )
    return index % room


_ALL_DIMS = tuple(tuple(range(ndim)) for ndim in range(65))  # NumPy's most, 64, and fewer


def wrap_dims(dims: object, ndim: int, operation: str) -> Shape:
    """Return dims (None for all, one, or several) counted from the front, in order.

    >>> wrap_dims(None, 2, "sum"), wrap_dims((-1, 0), 3, "sum")
    ((0, 1), (0, 2))
    """
    if dims is None:
        return _ALL_DIMS[ndim]
    if dims.__class__ is int and 0 <= dims < ndim:
        return (dims,)
    several = dims if isinstance(dims, (tuple, list, range)) else (dims,)
    wrapped = sorted(wrap_dim(dim, ndim, operation) for dim in several)
    for first, second in pairwise(wrapped):
        if first == second:
            raise KaelValueError(f"{operation}: dim {first} appears twice")
    return tuple(wrapped) if ndim else ()


def broadcast(operation: str, first: Shape, *others: Shape) -> Shape:
    """Return the shape that shapes broadcast to.

    Raises `KaelValueError` with the operation, both shapes and the sizes that clash.

    >>> broadcast("add", (4, 1), (3,))
    (4, 3)
    """
    result = list(first)
    for shape in others:
        result[:0] = [1] * (len(shape) - len(result))
        for back in range(1, len(shape) + 1):
            ours, theirs = result[-back], shape[-back]
            if ours != theirs and 1 not in (ours, theirs):
                raise KaelValueError(
                    f"{operation}: shapes {text(first)} and {text(shape)} do not broadcast: "
                    f"sizes {ours} and {theirs} at dim {-back}; sizes must be equal or 1"
                )
            result[-back] = theirs if ours == 1 else ours
    return tuple(result)


def as_sizes(sizes: object, operation: str) -> Shape:
    """Return sizes given as integers or as one sequence of them, as a tuple of ints.

    >>> as_sizes(([2, -1],), "reshape"), as_sizes((2, 3), "reshape")
    ((2, -1), (2, 3))
    """
    several = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    if len(several) == 1 and isinstance(several[0], (tuple, list)):
        several = several[0]
    return tuple(as_index(size, operation, "size") for size in several)
