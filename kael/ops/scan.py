"""Scans along a dim: running sums, products and log-sums, and differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from kael import dtypes, kernels, shapes
from kael.errors import KaelValueError
from kael.ops.arguments import one_dim, shift_dim
from kael.ops.compare import logical_xor
from kael.ops.declare import Operation, composite
from kael.ops.math import sub
from kael.ops.samples import Sample, away_from, normal
from kael.ops.view import slice
from kael.tensors import Tensor, as_array

Array = np.ndarray[Any, Any]


def _counting(x: Array) -> Array:
    # Running sums of narrow integers and of booleans would wrap around.
    return x.astype(dtypes.int64, copy=False) if x.dtype.kind in "biu" else x


def _cumsum(x: Array, dim: int) -> Array:
    return kernels.cumsum(_counting(x), dim)


def _cumprod(x: Array, dim: int) -> Array:
    x = _counting(x)
    return x.copy() if x.ndim == 0 else np.asarray(np.cumprod(x, axis=dim, dtype=x.dtype))


def _cumprod_backward(g: Array, x: Array, dim: int) -> Array:
    """Return the products before each entry times what follows it, without a division.

    With before[i] = x[0] ... x[i-1] and rest[i] = g[i] + x[i+1] * rest[i+1], the gradient of entry
    i is before[i] * rest[i]: right with zeros in any number.
    """
    if x.ndim == 0:
        return g.copy()
    steps = np.moveaxis(x, dim, 0)
    rest = np.moveaxis(g, dim, 0).copy()
    for i in range(len(rest) - 2, -1, -1):
        rest[i] += steps[i + 1] * rest[i + 1]
    rest[1:] *= np.cumprod(steps[:-1], axis=0)
    return np.moveaxis(rest, 0, dim)


def _logcumsumexp(x: Array, dim: int) -> Array:
    return x.copy() if x.ndim == 0 else np.asarray(np.logaddexp.accumulate(x, axis=dim))


def _logcumsumexp_backward(g: Array, x: Array, out: Array, dim: int) -> Array:
    """Return exp(x) times the sum of g * exp(-out) from each entry on, in logarithms.

    The positive and the negative part of g are summed apart; an out of -inf contributes nothing.
    """
    total = np.zeros_like(x)
    for sign in (1, -1):
        part = np.log(np.maximum(sign * g, 0))
        weight = np.where(out == -np.inf, -np.inf, part - out)
        behind = np.flip(_logcumsumexp(np.flip(weight, dim), dim), dim) if x.ndim else weight
        # Nothing behind is a weight of 0, even beside an infinite x.
        total += np.where(behind == -np.inf, 0, sign * np.exp(x + behind))
    return np.where(x == np.inf, x.dtype.type(np.nan), total)  # inf - inf, as in logsumexp


def _scan_samples(domain: Any) -> Any:
    return lambda rng: [
        Sample((domain(rng, (4,)),), {"dim": 0}),
        Sample((domain(rng, (2, 3)),), {"dim": -1}),
        Sample((domain(rng, (3, 2, 2)),), {"dim": 0}),
        Sample((domain(rng, ()),), {"dim": 0}),
        Sample((domain(rng, (2, 0)),), {"dim": 1}),
    ]


cumsum = Operation(
    "cumsum(x, dim)", _cumsum,
    vjp={"x": lambda g, dim: kernels.cumsum_backward(g, dim)},
    text={"x": "flip(cumsum(flip(g, dim), dim), dim)"},
    prepare=one_dim("cumsum"), batch=shift_dim(), analytic=True,
    samples=_scan_samples(normal), family="scan",
    doc="Return the running sum along a dim; integers and booleans sum to int64.",
)  # fmt: skip
cumprod = Operation(
    "cumprod(x, dim)", _cumprod,
    vjp={"x": _cumprod_backward},
    text={"x": "flip(cumsum(flip(g * out, dim), dim), dim) / x"},
    prepare=one_dim("cumprod"), batch=shift_dim(), analytic=True,
    samples=_scan_samples(away_from(0.0)), family="scan",
    convention="at zeros too the gradient is that of the products, without a division",
    doc="Return the running product along a dim; integers and booleans multiply to int64.",
)  # fmt: skip
logcumsumexp = Operation(
    "logcumsumexp(x, dim)", _logcumsumexp,
    vjp={"x": _logcumsumexp_backward},
    text={"x": "exp(x) * flip(cumsum(flip(g * exp(-out), dim), dim), dim)"},
    prepare=one_dim("logcumsumexp", floating=True), batch=shift_dim(),
    samples=_scan_samples(normal), family="scan",
    convention="where all entries up to one are -inf, value -inf and gradient 0",
    doc="Return the logarithm of the running sum of exp(x) along a dim.",
)  # fmt: skip


@composite(
    "diff(x, n=1, dim=-1)", family="scan",
    doc="Return the differences of neighbours along a dim, n times over.",
)  # fmt: skip
def diff(x: Any, n: int = 1, dim: int = -1) -> Tensor:
    tensor = x if isinstance(x, Tensor) else Tensor(as_array(x))
    count = shapes.as_index(n, "diff", "n")
    if tensor.ndim == 0 or count < 0:
        raise KaelValueError(
            f"diff: n must be 0 or more and x have a dim, got n {count} and shape "
            f"{shapes.text(tensor.shape)}"
        )
    at = shapes.wrap_dim(dim, tensor.ndim, "diff")
    minus = logical_xor if tensor.dtype.kind == "b" else sub
    for _ in range(min(count, tensor.shape[at])):  # then nothing is left to subtract
        tensor = minus(slice(tensor, at, 1), slice(tensor, at, 0, -1))
    return tensor
