"""The dtypes a tensor may have, and how they promote; arrays' values are not looked at here."""

from typing import Any, Final

import numpy as np

from kael.errors import KaelTypeError, KaelValueError

DType = np.dtype[Any]

float32: Final[DType] = np.dtype("float32")
float64: Final[DType] = np.dtype("float64")
int8: Final[DType] = np.dtype("int8")
int16: Final[DType] = np.dtype("int16")
int32: Final[DType] = np.dtype("int32")
int64: Final[DType] = np.dtype("int64")
uint8: Final[DType] = np.dtype("uint8")
bool_: Final[DType] = np.dtype("bool")

SUPPORTED: Final = (float64, float32, int64, int32, int16, int8, uint8, bool_)

_default = float64


def default_dtype() -> DType:
    """Return the floating dtype of Python numbers and of generators (float64 at first)."""
    return _default


def set_default_dtype(dtype: object) -> None:
    """Make `dtype` (float32 or float64) the dtype of Python numbers and of generators.

    >>> set_default_dtype("float64")
    """
    global _default
    chosen = as_dtype(dtype)
    if chosen.kind != "f":
        raise KaelValueError(f"the default dtype must be floating, got {chosen}")
    _default = chosen


def as_dtype(dtype: object) -> DType:
    """Return the kael dtype that a name, a NumPy dtype or a Python type stands for.

    Raises `KaelTypeError` for what is no dtype or has no place in a tensor.

    >>> as_dtype("float32"), as_dtype(int), as_dtype(np.bool_)
    (dtype('float32'), dtype('int64'), dtype('bool'))
    """
    names = ", ".join(str(d) for d in SUPPORTED)
    if dtype is None:
        raise KaelTypeError(f"None is no dtype; one of {names} is expected")
    if dtype is float:
        return _default
    try:
        found = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        raise KaelTypeError(f"unknown dtype {dtype!r}; one of {names} is expected") from None
    if found not in SUPPORTED:
        raise KaelTypeError(f"dtype {found} has no place in a tensor; use one of {names}")
    return SUPPORTED[SUPPORTED.index(found)]


def promote(first: DType, second: DType) -> DType:
    """Return the dtype two tensors compute in: floating wins over integer and boolean.

    Ranks play no part: a 0-d float64 tensor and a float32 vector compute in float64.

    >>> promote(float32, int64), promote(float32, float64), promote(bool_, int32)
    (dtype('float32'), dtype('float64'), dtype('int32'))
    """
    if first is second or first == second:
        return first
    if first.kind == "f":
        return np.promote_types(first, second) if second.kind == "f" else first
    if second.kind == "f":
        return second
    return np.promote_types(first, second)


def weak(number: complex, dtype: DType) -> DType:
    """Return the dtype in which a Python number meets a tensor of `dtype`.

    Python numbers are weak: a float turns an integer tensor into the default floating dtype and
    never changes a floating one; an int turns only a boolean tensor into int64.

    >>> weak(2, float32), weak(0.5, int64), weak(1, bool_)
    (dtype('float32'), dtype('float64'), dtype('int64'))
    """
    if dtype.kind == "f" or isinstance(number, bool):
        return dtype
    if isinstance(number, float):
        return _default
    return int64 if dtype.kind == "b" else dtype
