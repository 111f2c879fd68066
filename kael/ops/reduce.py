"""Reductions over dims: sums, products, extremes, moments and norms; scans are in `scan.py`.

`dim` is None (all dims), one dim or several. A formula sees it as a tuple counted from the front.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import numpy as np

from kael import dtypes, kernels
from kael.kernels import small
from kael.kernels.axes import from_rows, last_rows
from kael.ops.arguments import several_dims, shift_dim
from kael.ops.calling import compile_call
from kael.ops.declare import Operation
from kael.ops.math import maximum, minimum
from kael.ops.samples import Domain, Sample, away_from, distinct, normal
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

# Texts of formulas: g with the reduced dims as ones, and how many entries were reduced.
G = "reshape(g, shape(sum(x, dim, True)))"
COUNT = "sum(x**0, dim, True)"


def _spread(g: Array, x_shape: Dims, dim: Dims, keepdim: bool) -> Array:
    """Return g over the reduced dims: a read-only view where that is large, nothing is copied."""
    if g.ndim and not keepdim:
        g = g.reshape([1 if d in dim else size for d, size in enumerate(x_shape)])
    return kernels.broadcast(g, x_shape)


def _count(shape: Dims, dim: Dims) -> int:
    return math.prod([shape[d] for d in dim])


def _sum(x: Array, dim: Dims, keepdim: bool) -> Array:
    return kernels.sum(_counting(x), dim, keepdim)


def _prod(x: Array, dim: Dims, keepdim: bool) -> Array:
    return kernels.prod(_counting(x), dim, keepdim)


def _counting(x: Array) -> Array:
    # Sums of narrow integers and of booleans would wrap around.
    return x.astype(dtypes.int64, copy=False) if x.dtype.kind in "biu" else x


def _gap_to_largest_other(x: Array, dim: Dims, *_: Any) -> tuple[Array]:
    """Return the distance of each entry from the largest of the others in its slice."""
    rows, shape, order = last_rows(x, dim)
    if rows.shape[1] < 2:
        return (np.full(x.shape, np.inf),)
    top = np.partition(rows, -2, axis=1)[:, -2:]
    others = np.where(rows == top[:, 1:], top[:, :1], top[:, 1:])
    return (from_rows(rows - others, shape, order),)


def _gap_to_smallest_other(x: Array, dim: Dims, *_: Any) -> tuple[Array]:
    return (-_gap_to_largest_other(-x, dim)[0],)


def _norm_kink(x: Array, p: float, dim: Dims, keepdim: bool) -> tuple[Array]:
    if p <= 1:
        return (x,)
    if p == np.inf:
        return _gap_to_largest_other(np.abs(x), dim)
    return (kernels.norm(x, p, dim, keepdim),)


def _std(x: Array, dim: Dims, correction: float, keepdim: bool) -> Array:
    """Return sqrt(var), measured in the largest deviation where a square over- or underflows."""
    variance = kernels.var(x, dim, correction, keepdim)
    out = np.asarray(np.sqrt(variance))
    if x.dtype.kind != "f":
        return out
    limits = np.finfo(x.dtype)
    doubtful = (variance < limits.tiny / limits.eps) | np.isinf(variance)
    if not x.size or not doubtful.any():
        return out
    size = np.max(np.abs(x), axis=dim, keepdims=True)
    size = np.where(np.isfinite(size) & (size > 0), size, 1).astype(x.dtype, copy=False)
    # Twice: the mean of large entries over-, the squares of small deviations underflow.
    centred = x / size - np.mean(x / size, axis=dim, keepdims=True)
    part = np.max(np.abs(centred), axis=dim, keepdims=True)
    part = np.where(np.isfinite(part) & (part > 0), part, 1).astype(x.dtype, copy=False)
    measured = size * (part * np.sqrt(kernels.var(centred / part, dim, correction, True)))
    return np.where(doubtful, measured.reshape(out.shape), out)


def _std_backward(
    g: Array, x: Array, out: Array, dim: Dims, correction: float, keepdim: bool
) -> Array:
    if not x.size:
        return np.zeros_like(x)
    slope = np.where(out == 0, 0, g / (2 * out)).astype(x.dtype, copy=False)
    limits = np.finfo(x.dtype)
    if np.all((out == 0) | ((out > limits.tiny / limits.eps) & (out < limits.max * limits.eps))):
        return kernels.var_backward(slope, x, dim, correction, keepdim)
    # The deviation is homogeneous: measured in units of x, the slope is the same.
    size = np.max(np.abs(x), axis=dim, keepdims=True)
    size = np.where(np.isfinite(size) & (size > 0), size, 1).astype(x.dtype, copy=False)
    own = out / (size if keepdim else size.reshape(out.shape))
    slope = np.where(own == 0, 0, g / (2 * own)).astype(x.dtype, copy=False)
    return kernels.var_backward(slope, x / size, dim, correction, keepdim)


def reduction_samples(
    domain: Domain, empty: bool = False, **fixed: Any
) -> Callable[[np.random.Generator], Iterable[Sample]]:
    """Draw reductions over all dims, one, several, kept and not."""
    calls: list[tuple[Dims, dict[str, Any]]] = [
        ((4,), {}),
        ((), {}),
        ((2, 3), {"dim": 0}),
        ((3, 2), {"dim": -1, "keepdim": True}),
        ((2, 3, 2), {"dim": (0, 2)}),
        ((2, 2, 2), {"keepdim": True}),
    ]
    if empty:
        calls.append(((2, 0), {"dim": 1}))
    return lambda rng: [Sample((domain(rng, shape),), {**fixed, **call}) for shape, call in calls]


def _elementwise_with_two(reduction: Operation, elementwise: Operation) -> None:
    """Let max(a, b) with a tensor in second place be the elementwise maximum, as in PyTorch."""
    reduce = cache(partial(compile_call, reduction))  # when first called, as every operation's

    def call(*args: Any, **kwargs: Any) -> Tensor:
        if "other" in kwargs or (len(args) == 2 and isinstance(args[1], (Tensor, np.ndarray))):
            return elementwise(*args, **kwargs)
        return reduce()(*args, **kwargs)

    reduction.function = reduction._named(call)


sum = Operation(
    "sum(x, dim=None, keepdim=False)", _sum,
    vjp={"x": lambda g, x_shape, dim, keepdim: _spread(g, x_shape, dim, keepdim)},
    text={"x": f"expand({G}, shape(x))"},
    prepare=several_dims("sum"), small=small.sum, batch=shift_dim(), analytic=True,
    samples=reduction_samples(normal, empty=True), family="reduce",
    doc="Return the sum over dims; integers and booleans sum to int64, nothing sums to 0.",
)  # fmt: skip
mean = Operation(
    "mean(x, dim=None, keepdim=False)", kernels.mean,
    vjp={
        "x": lambda g, x_shape, dim, keepdim: _spread(
            # A 0-d array as NumPy's scalar: a number divides that eight times sooner.
            g[()] / _count(x_shape, dim), x_shape, dim, keepdim
        )
    },
    text={"x": f"expand({G}, shape(x)) / {COUNT}"},
    prepare=several_dims("mean", floating=True), small=small.mean,
    batch=shift_dim(), analytic=True,
    samples=reduction_samples(normal), family="reduce", convention="NaN over nothing",
    doc="Return the mean over dims of a floating tensor.",
)  # fmt: skip
prod = Operation(
    "prod(x, dim=None, keepdim=False)", _prod,
    vjp={"x": lambda g, x, dim, keepdim: kernels.prod_backward(g, x, dim, keepdim)},
    text={
        "x": f"{G} * where(sum(x == 0, dim, True) == 0, prod(x, dim, True) / x, "
        "where((sum(x == 0, dim, True) == 1) & (x == 0), "
        "prod(where(x == 0, 1, x), dim, True), 0))"
    },
    prepare=several_dims("prod"), batch=shift_dim(), analytic=True,
    samples=reduction_samples(away_from(0.0), empty=True), family="reduce",
    convention="one zero: only its entry has a gradient; several zeros: none has",
    doc="Return the product over dims; integers and booleans multiply to int64, nothing to 1.",
)  # fmt: skip
max = Operation(
    "max(x, dim=None, keepdim=False)", kernels.amax,
    vjp={"x": lambda g, x, out, dim, keepdim: kernels.extreme_backward(g, x, out, dim, keepdim)},
    text={"x": f"where(x == max(x, dim, True), {G} / sum(x == max(x, dim, True), dim, True), 0)"},
    prepare=several_dims("max", nonempty=True), batch=shift_dim(),
    kink=_gap_to_largest_other, at_kink="ties share the gradient evenly",
    samples=reduction_samples(distinct), family="reduce",
    convention="no pair: x.max(dim=0)[0] is the first of the values; argmax gives the indices",
    doc="Return the largest entry over dims, values only; max(x, other) is maximum(x, other).",
)  # fmt: skip
min = Operation(
    "min(x, dim=None, keepdim=False)", kernels.amin,
    vjp={"x": lambda g, x, out, dim, keepdim: kernels.extreme_backward(g, x, out, dim, keepdim)},
    text={"x": f"where(x == min(x, dim, True), {G} / sum(x == min(x, dim, True), dim, True), 0)"},
    prepare=several_dims("min", nonempty=True), batch=shift_dim(),
    kink=_gap_to_smallest_other, at_kink="ties share the gradient evenly",
    samples=reduction_samples(distinct), family="reduce",
    convention="no pair: x.min(dim=0)[0] is the first of the values; argmin gives the indices",
    doc="Return the smallest entry over dims, values only; min(x, other) is minimum(x, other).",
)  # fmt: skip
_elementwise_with_two(max, maximum)
_elementwise_with_two(min, minimum)
amax = Operation(
    "amax(x, dim=None, keepdim=False)", kernels.amax,
    vjp={"x": lambda g, x, out, dim, keepdim: kernels.extreme_backward(g, x, out, dim, keepdim)},
    text={"x": f"where(x == amax(x, dim, True), {G} / sum(x == amax(x, dim, True), dim, True), 0)"},
    prepare=several_dims("amax", nonempty=True), batch=shift_dim(),
    kink=_gap_to_largest_other, at_kink="ties share the gradient evenly",
    samples=reduction_samples(distinct), family="reduce",
    doc="Return the largest entry over dims.",
)  # fmt: skip
amin = Operation(
    "amin(x, dim=None, keepdim=False)", kernels.amin,
    vjp={"x": lambda g, x, out, dim, keepdim: kernels.extreme_backward(g, x, out, dim, keepdim)},
    text={"x": f"where(x == amin(x, dim, True), {G} / sum(x == amin(x, dim, True), dim, True), 0)"},
    prepare=several_dims("amin", nonempty=True), batch=shift_dim(),
    kink=_gap_to_smallest_other, at_kink="ties share the gradient evenly",
    samples=reduction_samples(distinct), family="reduce",
    doc="Return the smallest entry over dims.",
)  # fmt: skip
var = Operation(
    "var(x, dim=None, correction=1, keepdim=False)", kernels.var,
    vjp={
        "x": lambda g, x, dim, correction, keepdim: kernels.var_backward(
            g, x, dim, correction, keepdim
        )
    },
    text={"x": f"{G} * 2 * (x - mean(x, dim, True)) / ({COUNT} - correction)"},
    prepare=several_dims("var", floating=True), batch=shift_dim(), analytic=True,
    samples=lambda rng: [
        *reduction_samples(normal, correction=0)(rng),
        Sample((normal(rng, (2, 4)),), {"dim": 1}),
        Sample((normal(rng, (5,)),)),
    ],
    family="reduce", convention="NaN where no more than `correction` entries are reduced",
    doc="Return the variance over dims: sum((x - mean)**2) / (count - correction).",
)  # fmt: skip
std = Operation(
    "std(x, dim=None, correction=1, keepdim=False)", _std,
    vjp={"x": _std_backward},
    text={
        "x": f"where(std(x, dim, correction, True) == 0, 0, {G} * (x - mean(x, dim, True)) "
        f"/ (({COUNT} - correction) * std(x, dim, correction, True)))"
    },
    prepare=several_dims("std", floating=True), batch=shift_dim(), analytic=True,
    kink=lambda x, dim, correction, keepdim: (_std(x, dim, correction, keepdim),),
    at_kink="0 where the deviation is 0",
    samples=lambda rng: [
        Sample((normal(rng, (2, 4)),), {"dim": 1}),
        Sample((normal(rng, (5,)),)),
        Sample((normal(rng, (3, 2, 2)),), {"dim": (0, 2), "correction": 0, "keepdim": True}),
    ],
    family="reduce", convention="0 where the deviation is 0",
    doc="Return the standard deviation over dims, the square root of var.",
)  # fmt: skip
norm = Operation(
    "norm(x, p=2, dim=None, keepdim=False)", kernels.norm,
    vjp={
        "x": lambda g, x, out, p, dim, keepdim: kernels.norm_backward(g, x, out, p, dim, keepdim)
    },
    text={
        "x": f"where(norm(x, p, dim, True) == 0, 0, "
        f"{G} * sign(x) * (abs(x) / norm(x, p, dim, True))**(p - 1))"
    },
    prepare=several_dims("norm", at=1, floating=True), batch=shift_dim(1),
    kink=_norm_kink, at_kink="0 where the norm is 0; p=1: 0 at entries that are 0",
    samples=lambda rng: [
        sample
        for p in (2, 1, 3, 1.5, float("inf"))
        for sample in reduction_samples(
            distinct if p == float("inf") else away_from(0.0), p=p
        )(rng)
    ],
    family="reduce", convention="0 where the norm is 0",
    doc="Return the p-norm over dims, (sum abs(x)**p)**(1/p); scaled, so that it never overflows.",
)  # fmt: skip
logsumexp = Operation(
    "logsumexp(x, dim=None, keepdim=False)", kernels.logsumexp,
    vjp={
        "x": lambda g, x, out, dim, keepdim: kernels.logsumexp_backward(g, x, out, dim, keepdim)
    },
    text={"x": f"{G} * exp(x - logsumexp(x, dim, True))"},
    prepare=several_dims("logsumexp"), batch=shift_dim(), analytic=True, real=True,
    samples=reduction_samples(normal), family="reduce",
    convention="a slice that is all -inf has value -inf and gradient 0",
    doc="Return log(sum(exp(x))) over dims, shifted by the maximum.",
)  # fmt: skip
all = Operation(
    "all(x, dim=None, keepdim=False)",
    lambda x, dim, keepdim: np.all(x, axis=dim, keepdims=keepdim),
    tensors=("x",), prepare=several_dims("all"), batch=shift_dim(),
    samples=lambda rng: [
        Sample((rng.random((2, 3)) < 0.7,)), Sample((rng.random((2, 3)) < 0.7,), {"dim": 1}),
    ],
    family="reduce",
    doc="Tell whether every entry over dims is true (not 0).",
)  # fmt: skip
any = Operation(
    "any(x, dim=None, keepdim=False)",
    lambda x, dim, keepdim: np.any(x, axis=dim, keepdims=keepdim),
    tensors=("x",), prepare=several_dims("any"), batch=shift_dim(),
    samples=lambda rng: [
        Sample((rng.random((2, 3)) < 0.3,)), Sample((rng.random((2, 3)) < 0.3,), {"dim": 1}),
    ],
    family="reduce",
    doc="Tell whether some entry over dims is true (not 0).",
)  # fmt: skip
count_nonzero = Operation(
    "count_nonzero(x, dim=None, keepdim=False)",
    lambda x, dim, keepdim: np.sum(x != 0, axis=dim, keepdims=keepdim, dtype=np.int64),
    tensors=("x",), prepare=several_dims("count_nonzero"), batch=shift_dim(),
    samples=lambda rng: [
        Sample((rng.integers(0, 2, (2, 3)),)), Sample((rng.integers(0, 2, (2, 3)),), {"dim": 1}),
    ],
    family="reduce",
    doc="Return how many entries over dims are not 0.",
)  # fmt: skip
