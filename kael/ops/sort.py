"""Order: sort, topk and median, their indices, and the indices of extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kael import kernels, shapes
from kael.errors import KaelTypeError, KaelValueError
from kael.kernels.axes import from_rows, last_rows
from kael.ops.arguments import Arguments, one_dim, replace, several_dims, shift_dim
from kael.ops.declare import Operation
from kael.ops.reduce import G, reduction_samples
from kael.ops.samples import Sample, distinct
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _order(x: Array, dim: int, descending: bool) -> Array:
    """Return the indices that sort, equal entries in their own order, NaN as the largest."""
    if x.ndim == 0:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, axis=dim, stable=True)
    backward = np.argsort(np.flip(x, dim), axis=dim, stable=True)
    return np.asarray(x.shape[dim] - 1 - np.flip(backward, dim))


def _taken(x: Array, order: Array, dim: int) -> Array:
    return x.copy() if x.ndim == 0 else np.take_along_axis(x, order, dim)


def _put_back(g: Array, x: Array, order: Array, dim: int) -> Array:
    out = np.zeros(x.shape, g.dtype)
    if x.ndim == 0:
        out[...] = g
    else:
        np.put_along_axis(out, order, g, dim)
    return out


def _sort(x: Array, dim: int, descending: bool) -> Array:
    return _taken(x, _order(x, dim, descending), dim)


def _sort_backward(g: Array, x: Array, dim: int, descending: bool) -> Array:
    return _put_back(g, x, _order(x, dim, descending), dim)


def _top(x: Array, k: int, dim: int, largest: bool) -> Array:
    order = _order(x, dim, largest)
    return order if x.ndim == 0 else np.take(order, np.arange(k), axis=dim)


def _topk(x: Array, k: int, dim: int, largest: bool) -> Array:
    if x.ndim == 0:
        return x.copy()
    return _taken(x, _top(x, k, dim, largest), dim)


def _topk_backward(g: Array, x: Array, k: int, dim: int, largest: bool) -> Array:
    return _put_back(g, x, _top(x, k, dim, largest), dim)


def _prepare_topk(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x = inputs[0]
    k = shapes.as_index(arguments[0], "topk", "k")
    dim = shapes.wrap_dim(arguments[1], x.ndim, "topk")
    room = x.shape[dim] if x.ndim else 1
    least = 0 if x.ndim else 1
    if not least <= k <= room:
        raise KaelValueError(
            f"topk: k must be in [{least}, {room}], the size of dim {dim} of shape "
            f"{shapes.text(x.shape)}, got {k}"
        )
    return k, dim, bool(arguments[2])


def _gaps(x: Array, dim: int, *_: Any) -> tuple[Array]:
    """Return the distances of neighbours in order: a tie is where a sort has a kink."""
    return (np.diff(np.sort(x, axis=dim), axis=dim) if x.ndim else np.array(np.inf),)


def _topk_gaps(x: Array, k: int, dim: int, largest: bool) -> tuple[Array]:
    if x.ndim == 0:
        return (np.array(np.inf),)
    room = np.sort(x, axis=dim)
    room = np.flip(room, dim) if largest else room
    return (np.abs(np.diff(np.take(room, np.arange(min(k + 1, x.shape[dim])), dim), axis=dim)),)


def _median(x: Array, dim: Dims, keepdim: bool) -> Array:
    """Return the lower of the two middle entries; NaN where there is one."""
    rows, _, _ = last_rows(x, dim)
    middle = (rows.shape[1] - 1) // 2
    values = np.partition(rows, middle, axis=1)[:, middle]
    if x.dtype.kind == "f":
        values = np.where(np.isnan(rows).any(axis=1), x.dtype.type(np.nan), values)
    kept = tuple(1 if d in dim else size for d, size in enumerate(x.shape))
    return values.reshape(
        kept if keepdim else [size for d, size in enumerate(x.shape) if d not in dim]
    )


def _median_gap(x: Array, dim: Dims, *_: Any) -> tuple[Array]:
    """Return how far each entry is from the median; the median itself is far unless it is tied."""
    rows, shape, order = last_rows(x, dim)
    gaps = rows - _median(rows, (1,), True)
    own = gaps == 0
    alone = np.count_nonzero(own, axis=1, keepdims=True) == 1
    return (from_rows(np.where(own & alone, np.inf, gaps), shape, order),)


def _prepare_extreme_index(name: str) -> Any:
    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        x = inputs[0]
        dim, keepdim = arguments
        if dim is not None:
            dim = shapes.wrap_dim(dim, x.ndim, name)
        if (x.numel() if dim is None or x.ndim == 0 else x.shape[dim]) == 0:
            raise KaelValueError(
                f"{name}: nothing to choose from: shape {shapes.text(x.shape)} is empty"
            )
        return dim, bool(keepdim)

    return prepare


def _index_of(search: Any) -> Any:
    def kernel(x: Array, dim: int | None, keepdim: bool) -> Array:
        found = np.asarray(search(x, axis=dim if x.ndim else None, keepdims=keepdim and x.ndim > 0))
        return found.astype(np.int64, copy=False)

    return kernel


def _index_batch(arguments: Arguments, _: Any) -> Arguments | None:
    return None if arguments[0] is None else replace(arguments, 0, arguments[0] + 1)


def _checked_order(name: str) -> Any:
    count_from_front = one_dim(name)

    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        if not isinstance(arguments[1], bool):
            raise KaelTypeError(f"{name}: descending must be True or False, got {arguments[1]!r}")
        return count_from_front(inputs, arguments)

    return prepare


def _order_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((distinct(rng, (4,)),)),
        Sample((distinct(rng, (3, 4)),), {"dim": 0, "descending": True}),
        Sample((distinct(rng, (2, 3, 2)),), {"dim": 1}),
        Sample((distinct(rng, ()),)),
    ]


sort = Operation(
    "sort(x, dim=-1, descending=False)", _sort,
    vjp={"x": _sort_backward},
    text={"x": "scatter(0 * x, dim, argsort(x, dim, descending), g)"},
    prepare=_checked_order("sort"), batch=shift_dim(),
    kink=_gaps, at_kink="tied entries keep their order, each with its own gradient",
    samples=_order_samples, family="sort",
    convention="no pair: x.sort(dim=0)[0] is the first of the values; argsort gives the indices",
    doc="Return the entries in order along a dim, values only; argsort gives the indices.",
)  # fmt: skip
argsort = Operation(
    "argsort(x, dim=-1, descending=False)", _order,
    tensors=("x",), prepare=_checked_order("argsort"), batch=shift_dim(),
    samples=_order_samples, family="sort",
    doc="Return the indices that sort along a dim; equal entries keep their order.",
)  # fmt: skip
topk = Operation(
    "topk(x, k, dim=-1, largest=True)", _topk,
    vjp={"x": _topk_backward},
    text={
        "x": "scatter(0 * x, dim, narrow(argsort(x, dim, largest), dim, 0, k), g)"
    },
    prepare=_prepare_topk, batch=shift_dim(1),
    kink=_topk_gaps, at_kink="tied entries keep their order, each with its own gradient",
    samples=lambda rng: [
        Sample((distinct(rng, (5,)),), {"k": 2}),
        Sample((distinct(rng, (3, 4)),), {"k": 2, "dim": 0, "largest": False}),
        Sample((distinct(rng, (2, 3)),), {"k": 3}),
    ],
    family="sort",
    convention="no pair: x.topk(2)[0] is the first of the values; argsort gives the indices",
    doc="Return the k largest (or smallest) entries of a dim in order, values only.",
)  # fmt: skip
median = Operation(
    "median(x, dim=None, keepdim=False)", _median,
    vjp={"x": lambda g, x, out, dim, keepdim: kernels.extreme_backward(g, x, out, dim, keepdim)},
    text={
        "x": "where(x == median(x, dim, True), "
        f"{G} / sum(x == median(x, dim, True), dim, True), 0)"
    },
    prepare=several_dims("median", nonempty=True), batch=shift_dim(),
    kink=_median_gap, at_kink="entries equal to the median share the gradient evenly",
    samples=reduction_samples(distinct), family="sort",
    convention="no pair: x.median(dim=0)[0] is the first of the values; argsort gives the indices",
    doc="Return the middle entry over dims, the lower of two, values only.",
)  # fmt: skip
argmax = Operation(
    "argmax(x, dim=None, keepdim=False)", _index_of(np.argmax),
    tensors=("x",), prepare=_prepare_extreme_index("argmax"), batch=_index_batch,
    samples=lambda rng: [
        Sample((distinct(rng, (4,)),)), Sample((distinct(rng, (2, 3)),), {"dim": 1}),
        Sample((distinct(rng, (2, 3)),), {"dim": 0, "keepdim": True}),
    ],
    family="sort",
    doc="Return the index of the largest entry, the first of equals; in row-major order over all.",
)  # fmt: skip
argmin = Operation(
    "argmin(x, dim=None, keepdim=False)", _index_of(np.argmin),
    tensors=("x",), prepare=_prepare_extreme_index("argmin"), batch=_index_batch,
    samples=lambda rng: [
        Sample((distinct(rng, (4,)),)), Sample((distinct(rng, (2, 3)),), {"dim": 1}),
        Sample((distinct(rng, (2, 3)),), {"dim": 0, "keepdim": True}),
    ],
    family="sort",
    doc="Return the index of the smallest entry, the first of equals; in row-major order over all.",
)  # fmt: skip
