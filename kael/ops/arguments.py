"""Plain arguments in canonical form: dims counted from the front, sizes as tuples of ints.

Also how they move past a leading axis when many calls are computed at once: every operand that has
a formula then carries that axis in front, operands without one (indices, masks) stay as they are.
A rule that answers None says that the call at hand has to be computed by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kael import shapes
from kael.errors import KaelTypeError, KaelValueError
from kael.tensors import Tensor

Arguments = tuple[Any, ...]
Shapes = Sequence[tuple[int, ...]]
Prepare = Callable[[tuple[Tensor, ...], Arguments], Arguments]


class ByForm:
    """A step of preparation that reads no values, only the operands' forms and the arguments.

    What it gives for one call holds for every call with the same forms and arguments.
    """

    def __init__(self, prepare: Prepare) -> None:
        self._prepare = prepare

    def __call__(self, inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        return self._prepare(inputs, arguments)


def replace(arguments: Arguments, at: int, value: Any) -> Arguments:
    """Return the arguments with the one at a position changed."""
    return (value, *arguments[1:]) if at == 0 else (*arguments[:at], value, *arguments[at + 1 :])


def require_floating(operation: str, x: Tensor) -> None:
    """Raise `KaelTypeError` unless the operand is floating."""
    if x._array.dtype.kind not in "fc":
        raise KaelTypeError(
            f"{operation}: a floating tensor is needed, got {x.dtype}; "
            "convert it with to(kael.float64)"
        )


class NotIntegers(KaelTypeError):
    """Positions or class targets do not hold integers; how to write them is the reader's to say."""


def require_integers(operation: str, index: Tensor, name: str = "index") -> None:
    """Raise `NotIntegers` unless the operand holds integers."""
    if index._array.dtype.kind not in "iu" and index.numel():
        raise NotIntegers(f"{operation}: {name} must hold integers, got {index.dtype}")


def require_ndim(operation: str, x: Tensor, ndim: int, name: str = "x") -> None:
    """Raise `KaelValueError` unless the operand has that many dims."""
    if x.ndim != ndim:
        raise KaelValueError(
            f"{operation}: {name} must have {ndim} {'dim' if ndim == 1 else 'dims'}, "
            f"got shape {shapes.text(x.shape)}"
        )


def one_dim(operation: str, at: int = 0, floating: bool = False) -> Prepare:
    """Count the dim at a position of the arguments from the front."""

    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        if floating:
            require_floating(operation, inputs[0])
        given = arguments[at]
        dim = shapes.wrap_dim(given, inputs[0]._array.ndim, operation)
        return arguments if dim is given else replace(arguments, at, dim)

    return ByForm(prepare)


def several_dims(
    operation: str, at: int = 0, floating: bool = False, nonempty: bool = False
) -> Prepare:
    """Turn the dims at a position (None: all) into a tuple counted from the front.

    `nonempty` refuses to reduce over nothing: an extreme of no entries does not exist.
    """

    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        x = inputs[0]
        if floating:
            require_floating(operation, x)
        dim = arguments[at]
        if isinstance(dim, (tuple, list)) and not dim:
            dim = None  # as in PyTorch, no dims are all dims
        dims = shapes.wrap_dims(dim, x._array.ndim, operation)
        if nonempty and any(x._array.shape[d] == 0 for d in dims):
            raise KaelValueError(
                f"{operation}: nothing to reduce over: shape {shapes.text(x.shape)} is empty "
                f"along dim {', '.join(str(d) for d in dims if x.shape[d] == 0)}"
            )
        keepdim = arguments[-1]
        if keepdim.__class__ is not bool:
            raise KaelTypeError(f"{operation}: keepdim must be True or False, got {keepdim!r}")
        return replace(arguments, at, dims)

    return ByForm(prepare)


def shift_dim(at: int = 0) -> Callable[[Arguments, Shapes], Arguments | None]:
    """Return the batch rule that moves one dim, or a tuple of dims, past the leading axis."""

    def batch(arguments: Arguments, given: Shapes) -> Arguments | None:
        dim = arguments[at]
        if isinstance(dim, tuple):
            return replace(arguments, at, tuple(d + 1 for d in dim))
        # A 0-d operand has no dim to shift.
        return replace(arguments, at, dim + 1) if given[0] else None

    return batch
