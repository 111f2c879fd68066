"""Tensors made from nothing but a shape: zeros, ones, ranges and random numbers."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from kael import dtypes, shapes
from kael.errors import KaelTypeError, KaelValueError
from kael.tensors import Array, Tensor, as_array


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


def _made(array: Array, dtype: object, requires_grad: bool) -> Tensor:
    wanted = dtypes.default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    made = Tensor(np.asarray(array).astype(wanted, copy=False))
    return made.requires_grad_() if requires_grad else made


def zeros(*size: Any, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of zeros.

    >>> zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """
    return _made(np.zeros(_sizes(size, "zeros")), dtype, requires_grad)


def ones(*size: Any, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of ones.

    >>> ones(3)
    tensor([1., 1., 1.])
    """
    return _made(np.ones(_sizes(size, "ones")), dtype, requires_grad)


def full(
    size: Any, fill_value: float, *, dtype: object = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor of `fill_value`; its dtype is that of the value unless one is given."""
    value = as_array(fill_value)
    if value.ndim:
        raise KaelTypeError("full: fill_value must be a number")
    wanted = value.dtype if dtype is None else dtype
    return _made(np.full(_sizes((size,), "full"), value), wanted, requires_grad)


def eye(n: int, m: int | None = None, *, dtype: object = None) -> Tensor:
    """Return an `n` by `m` matrix (square by default) with ones on its diagonal.

    >>> eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = _sizes((n, n if m is None else m), "eye")
    return _made(np.eye(rows, columns), dtype, False)


def rand(*size: Any, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return uniform random numbers from [0, 1)."""
    return _made(_generator.rng.random(_sizes(size, "rand")), dtype, requires_grad)


def randn(*size: Any, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return standard normal random numbers."""
    return _made(_generator.rng.standard_normal(_sizes(size, "randn")), dtype, requires_grad)


def arange(
    start: float, end: float | None = None, step: float = 1, *, dtype: object = None
) -> Tensor:
    """Return the numbers from `start` (0 when alone) up to `end`, which is left out.

    Like every generator it gives the default floating dtype; an index asks for `dtype="int64"`.

    >>> arange(3), arange(0, 1, 0.5), arange(3, dtype="int64")
    (tensor([0., 1., 2.]), tensor([0. , 0.5]), tensor([0, 1, 2]))
    """
    first, last = (0, start) if end is None else (start, end)
    if step == 0 or (last - first) / step < 0:
        raise KaelValueError(f"arange: a step of {step} never leads from {first} to {last}")
    return _made(np.arange(first, last, step), dtype, False)


def linspace(start: float, end: float, steps: int, *, dtype: object = None) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included.

    >>> linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    (count,) = _sizes((steps,), "linspace")
    return _made(np.linspace(start, end, count), dtype, False)


def zeros_like(x: Tensor, *, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return zeros in the shape and dtype of `x`."""
    return _made(np.zeros(x.shape), x.dtype if dtype is None else dtype, requires_grad)


def ones_like(x: Tensor, *, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return ones in the shape and dtype of `x`."""
    return _made(np.ones(x.shape), x.dtype if dtype is None else dtype, requires_grad)


def full_like(
    x: Tensor, fill_value: float, *, dtype: object = None, requires_grad: bool = False
) -> Tensor:
    """Return `fill_value` in the shape and dtype of `x`."""
    wanted = x.dtype if dtype is None else dtype
    return _made(np.full(x.shape, fill_value), wanted, requires_grad)


def rand_like(x: Tensor, *, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return uniform random numbers from [0, 1) in the shape and dtype of `x`."""
    return rand(*x.shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)


def randn_like(x: Tensor, *, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return standard normal random numbers in the shape and dtype of `x`."""
    return randn(*x.shape, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)


def _sizes(size: tuple[Any, ...], name: str) -> tuple[int, ...]:
    sizes = shapes.as_sizes(size, name)
    if any(one < 0 for one in sizes):
        raise KaelValueError(f"{name}: sizes must not be negative, got {shapes.text(sizes)}")
    return sizes
