"""Tensors made from nothing but a shape: zeros, ones, ranges and random numbers."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from kael import dtypes, shapes
from kael.errors import KaelTypeError, KaelValueError
from kael.tensors import Array, Tensor, as_array, require_fit


class _Generator(threading.local):
    """One stream of random numbers a thread, so that threads do not disturb each other's seed."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)


_generator = _Generator()


def manual_seed(seed: int) -> None:
    """Start this thread's random numbers anew from `seed`, an integer from 0 on."""
    seed = shapes.as_index(seed, "manual_seed", "seed")
    if seed < 0:
        raise KaelValueError(f"manual_seed: the seed must not be negative, got {seed}")
    _generator.rng = np.random.default_rng(seed)


def _made(
    name: str, make: Callable[[], Array], dtype: object, requires_grad: bool, real: bool = False
) -> Tensor:
    """Return what `make` gives as a tensor of `dtype`, the default one for None.

    Raises `KaelValueError` where memory or the dtype cannot hold it, and `KaelTypeError` for
    `real` numbers in a dtype that is not floating.
    """
    wanted = dtypes.default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if real and wanted.kind != "f":
        raise KaelTypeError(f"{name}: a floating dtype is needed, got {wanted}")
    try:
        array = np.asarray(make())
    except (MemoryError, OverflowError, ValueError) as error:
        raise KaelValueError(f"{name}: {error}") from error
    require_fit(array, wanted)
    made = Tensor(array.astype(wanted, copy=False))
    return made.requires_grad_() if requires_grad else made


def _number(name: str, parameter: str, value: Any) -> float:
    if isinstance(value, (Tensor, np.generic, np.ndarray)) and np.size(value) == 1:
        value = value.item()
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise KaelTypeError(f"{name}: {parameter} must be a finite number, got {value!r}")
    return value


def _like(name: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise KaelTypeError(f"{name} takes a tensor, got {type(x).__name__}")
    return x


def zeros(*size: Any, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of zeros.

    >>> zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """
    sizes = _sizes(size, "zeros")
    return _made("zeros", lambda: np.zeros(sizes), dtype, requires_grad)


def ones(*size: Any, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of ones.

    >>> ones(3)
    tensor([1., 1., 1.])
    """
    sizes = _sizes(size, "ones")
    return _made("ones", lambda: np.ones(sizes), dtype, requires_grad)


def full(
    size: Any, fill_value: float, *, dtype: object = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor of `fill_value`; its dtype is that of the value unless one is given."""
    value = as_array(fill_value)
    if value.ndim:
        raise KaelTypeError("full: fill_value must be a number")
    wanted = value.dtype if dtype is None else dtype
    sizes = _sizes((size,), "full")
    return _made("full", lambda: np.full(sizes, value), wanted, requires_grad)


def eye(
    n: int, m: int | None = None, *, dtype: object = None, requires_grad: bool = False
) -> Tensor:
    """Return an `n` by `m` matrix (square by default) with ones on its diagonal.

    >>> eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = _sizes((n, n if m is None else m), "eye")
    return _made("eye", lambda: np.eye(rows, columns), dtype, requires_grad)


def rand(*size: Any, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return uniform random numbers from [0, 1)."""
    sizes = _sizes(size, "rand")
    return _made("rand", lambda: _generator.rng.random(sizes), dtype, requires_grad, real=True)


def randn(*size: Any, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return standard normal random numbers."""
    sizes = _sizes(size, "randn")
    draw = _generator.rng.standard_normal
    return _made("randn", lambda: draw(sizes), dtype, requires_grad, real=True)


def arange(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers from `start` (0 when alone) up to `end`, which is left out.

    Like every generator it gives the default floating dtype; an index asks for `dtype="int64"`.

    >>> arange(3), arange(0, 1, 0.5), arange(3, dtype="int64")
    (tensor([0., 1., 2.]), tensor([0. , 0.5]), tensor([0, 1, 2]))
    """
    first, last = (0, start) if end is None else (start, end)
    first, last = _number("arange", "start", first), _number("arange", "end", last)
    step = _number("arange", "step", step)
    if step == 0 or (last - first) / step < 0:
        raise KaelValueError(f"arange: a step of {step} never leads from {first} to {last}")
    return _made("arange", lambda: np.arange(first, last, step), dtype, requires_grad)


def linspace(
    start: float, end: float, steps: int, *, dtype: object = None, requires_grad: bool = False
) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included.

    >>> linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    (count,) = _sizes((steps,), "linspace")
    first, last = _number("linspace", "start", start), _number("linspace", "end", end)
    return _made("linspace", lambda: np.linspace(first, last, count), dtype, requires_grad)


def zeros_like(x: Tensor, *, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return zeros in the shape and dtype of `x`."""
    shape = _like("zeros_like", x).shape
    return zeros(shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)


def ones_like(x: Tensor, *, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return ones in the shape and dtype of `x`."""
    shape = _like("ones_like", x).shape
    return ones(shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)


def full_like(
    x: Tensor, fill_value: float, *, dtype: object = None, requires_grad: bool = False
) -> Tensor:
    """Return `fill_value` in the shape and dtype of `x`."""
    shape = _like("full_like", x).shape
    wanted = x.dtype if dtype is None else dtype
    return full(shape, fill_value, dtype=wanted, requires_grad=requires_grad)


def rand_like(x: Tensor, *, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return uniform random numbers from [0, 1) in the shape and dtype of `x`."""
    shape = _like("rand_like", x).shape
    return rand(shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)


def randn_like(x: Tensor, *, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return standard normal random numbers in the shape and dtype of `x`."""
    shape = _like("randn_like", x).shape
    return randn(shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)


def _sizes(size: tuple[Any, ...], name: str) -> tuple[int, ...]:
    sizes = shapes.as_sizes(size, name)
    if any(one < 0 for one in sizes):
        raise KaelValueError(f"{name}: sizes must not be negative, got {shapes.text(sizes)}")
    return sizes
