"""Reading and writing at positions: gather, scatter and index_select, and what adds there.

An index that appears twice is read twice, so its gradients add; written twice, the last one stays.
`x[...]` is in `index.py`.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from kael import kernels, shapes
from kael.engine.formula import upstream
from kael.errors import KaelIndexError, KaelValueError
from kael.kernels import small
from kael.ops.arguments import Arguments, ByForm, Prepare, require_integers, shift_dim
from kael.ops.declare import Operation, composite
from kael.ops.index import index as read
from kael.ops.samples import Sample, normal
from kael.ops.view import expand, reshape
from kael.tensors import Tensor, as_array

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _checked_points(name: str, x: Tensor, dim: object, points: Tensor) -> int:
    """Return the dim, having checked that `points` may index entries of `x` along it."""
    given, room = points._array.shape, x._array.shape
    at = shapes.wrap_dim(dim, len(room), name)
    require_integers(name, points)
    if len(given) != len(room) or True in [d != at and n > room[d] for d, n in enumerate(given)]:
        raise KaelValueError(
            f"{name}: index of shape {shapes.text(points.shape)} does not fit x of shape "
            f"{shapes.text(x.shape)}\nit needs as many dims, and no size beyond x's but at dim {at}"
        )
    return at


def _prepare_gather(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x, points = inputs
    return (_checked_points("gather", x, arguments[0], points),)


def _prepare_scatter(name: str) -> Prepare:
    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        x, points, source = inputs
        dim = _checked_points(name, x, arguments[0], points)
        if source.ndim and (
            source.ndim != points.ndim
            or any(n > room for n, room in zip(points.shape, source.shape, strict=True))
        ):
            raise KaelValueError(
                f"{name}: src of shape {shapes.text(source.shape)} does not cover index of shape "
                f"{shapes.text(points.shape)}\nit needs as many dims and at least its sizes"
            )
        return (dim,)

    return prepare


def _require_line(name: str, points: Tensor) -> None:
    require_integers(name, points)
    if points.ndim > 1:
        raise KaelValueError(
            f"{name}: index must have 1 dim, got shape {shapes.text(points.shape)}"
        )


def _prepare_index_select(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x, points = inputs
    _require_line("index_select", points)
    if x.ndim == 0 and points.numel() != 1:
        raise KaelValueError(
            f"index_select: a 0-d tensor takes one index, got shape {shapes.text(points.shape)}"
        )
    return (shapes.wrap_dim(arguments[0], x.ndim, "index_select"),)


def _prepare_index_add(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x, points, source = inputs
    if x.ndim == 0:
        raise KaelValueError("index_add: a 0-d tensor has no positions to add at")
    dim = shapes.wrap_dim(arguments[0], x.ndim, "index_add")
    _require_line("index_add", points)
    wanted = (*x.shape[:dim], points.numel(), *x.shape[dim + 1 :])
    if source.shape != wanted:
        raise KaelValueError(
            f"index_add: source has shape {shapes.text(source.shape)}, "
            f"but {points.numel()} indices along dim {dim} of {shapes.text(x.shape)} "
            f"need {shapes.text(wanted)}"
        )
    return dim, arguments[1]


def _index_add(x: Array, points: Array, source: Array, dim: int, alpha: float) -> Array:
    added = source if alpha == 1 else x.dtype.type(alpha) * source
    return kernels.index_add(x, dim, _line(points), added)


def _line(points: Array) -> Array:
    return _whole(points).reshape(-1)


def _whole(points: Array) -> Array:
    # An empty list of indices was read as floating.
    return points if points.size else points.astype(np.int64)


def _spread(points: Array, x: Array) -> Array:
    # Where many calls are computed at once, the index has no leading axis.
    points = _whole(points)
    return points if points.ndim == x.ndim else np.broadcast_to(points, (len(x), *points.shape))


def _cover(source: Array, points: Array) -> Array:
    """Return the source with the index's dims: a single number is written everywhere."""
    if source.ndim == points.ndim:
        return source
    return np.broadcast_to(
        source.reshape(*source.shape, *(1,) * (points.ndim - source.ndim)), points.shape
    )


def _scatter(x: Array, points: Array, source: Array, dim: int) -> Array:
    points = _spread(points, x)
    return np.asarray(kernels.scatter(x, dim, points, _cover(source, points)))


def _scatter_add(x: Array, points: Array, source: Array, dim: int) -> Array:
    points = _spread(points, x)
    return np.asarray(kernels.scatter_add(x, dim, points, _cover(source, points)))


def _overwritten(g: Array, dim: int, index: Array) -> Array:
    """Return g with 0 where an entry was overwritten."""
    return _scatter(g, index, np.zeros((), g.dtype), dim)


def _scatter_source(g: Array, dim: int, index: Array, src_shape: Dims) -> Array:
    """Return g at the places written, and 0 for an entry that a later one replaced."""
    index = _whole(index)
    order = np.arange(1, index.size + 1).reshape(index.shape)
    last = kernels.scatter(np.zeros(g.shape, np.int64), dim, index, order)
    stayed = kernels.gather(last, dim, index) == order
    return _uncover(np.where(stayed, kernels.gather(g, dim, index), 0), src_shape)


def _scatter_add_source(g: Array, dim: int, index: Array, src_shape: Dims) -> Array:
    return _uncover(kernels.gather(g, dim, _whole(index)), src_shape)


def _uncover(g: Array, src_shape: Dims) -> Array:
    """Return the gradient of a source that was larger than the index, or one number."""
    if g.shape == src_shape:
        return g
    if not src_shape:
        return np.asarray(g.sum())
    out = np.zeros(src_shape, g.dtype)
    out[tuple(builtins.slice(n) for n in g.shape)] = g
    return out


gather = Operation(
    "gather(x, dim, index)",
    lambda x, index, dim: kernels.gather(x, dim, _spread(index, x)),
    vjp={
        "x": lambda g, x_shape, dim, index: kernels.gather_backward(g, x_shape, dim, _whole(index)),
        "index": None,
    },
    text={"x": "scatter_add(0 * x, dim, index, g)"},
    prepare=ByForm(_prepare_gather), small=small.gather, batch=shift_dim(), analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (4,)), np.array([1, 1, 3])), {"dim": 0}),
        Sample((normal(rng, (3, 4)), rng.integers(0, 4, (3, 2))), {"dim": 1}),
        Sample((normal(rng, (2, 3, 2)), rng.integers(0, 3, (1, 5, 2))), {"dim": -2}),
    ],
    family="index",
    doc="Return out[i][j] = x[index[i][j]][j] for dim 0, and likewise for the others.",
)  # fmt: skip
scatter = Operation(
    "scatter(x, dim, index, src)", _scatter,
    vjp={"x": _overwritten, "index": None, "src": _scatter_source},
    text={"x": "scatter(g, dim, index, 0)", "src": "gather(g, dim, index)"},
    prepare=_prepare_scatter("scatter"), broadcasts=True, promotes=("x", "src"),
    batch=shift_dim(), analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (4,)), np.array([3, 0]), normal(rng, (2,))), {"dim": 0}),
        Sample((normal(rng, (3, 4)), np.array([[1, 3], [0, 2]]), normal(rng, (2, 2))), {"dim": 1}),
        Sample((normal(rng, (3, 2)), np.array([[2, 0]]), normal(rng, (1, 2))), {"dim": -2}),
    ],
    family="index", convention="an entry that a later one replaced has gradient 0",
    doc="Return x with src[i][j] (or a number) written at [index[i][j]][j] for dim 0.",
)  # fmt: skip
scatter_add = Operation(
    "scatter_add(x, dim, index, src)", _scatter_add,
    vjp={"x": upstream, "index": None, "src": _scatter_add_source},
    text={"x": "g", "src": "gather(g, dim, index)"},
    prepare=_prepare_scatter("scatter_add"), broadcasts=True, promotes=("x", "src"),
    batch=shift_dim(), analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (3,)), np.array([2, 0, 2]), normal(rng, (3,))), {"dim": 0}),
        Sample((normal(rng, (3, 4)), rng.integers(0, 4, (2, 5)), normal(rng, (2, 5))), {"dim": 1}),
        Sample((normal(rng, (3, 2)), np.array([[1, 1]]), normal(rng, (1, 2))), {"dim": -2}),
    ],
    family="index",
    doc="Return x with src[i][j] (or a number) added at [index[i][j]][j] for dim 0.",
)  # fmt: skip
index_select = Operation(
    "index_select(x, dim, index)",
    lambda x, index, dim: kernels.index_select(x, dim, _line(index)),
    vjp={
        "x": lambda g, x_shape, dim, index: kernels.index_select_backward(
            g, x_shape, dim, _line(index)
        ),
        "index": None,
    },
    text={"x": "index_add(0 * x, dim, index, g)"},
    prepare=_prepare_index_select, batch=shift_dim(), analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (3,)), np.array([2, 0, 2])), {"dim": 0}),
        Sample((normal(rng, (2, 4)), np.array([1, 1, 0])), {"dim": -1}),
        Sample((normal(rng, (2, 3)), np.zeros(0, np.int64)), {"dim": 1}),
    ],
    family="index",
    doc="Return the slices of a dim at the positions of a 1-D index.",
)  # fmt: skip
index_add = Operation(
    "index_add(x, dim, index, source, alpha=1)", _index_add,
    vjp={
        "x": upstream,
        "index": None,
        "source": lambda g, dim, index, alpha: (
            alpha * kernels.index_select(g, dim, _line(index))
        ),
    },
    text={"x": "g", "source": "alpha * index_select(g, dim, index)"},
    prepare=_prepare_index_add, broadcasts=True, promotes=("x", "source"),
    batch=shift_dim(), analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (3,)), np.array([2, 0, 2]), normal(rng, (3,))), {"dim": 0}),
        Sample((normal(rng, (2, 4)), np.array([1, 1]), normal(rng, (2, 2))),
               {"dim": 1, "alpha": -0.5}),
    ],
    family="index",
    doc="Return x with alpha times the slices of source added at the positions of a 1-D index.",
)  # fmt: skip


def _prepare_one_hot(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    classes = inputs[0]
    require_integers("one_hot", classes, "x")
    count = shapes.as_index(arguments[0], "one_hot", "num_classes")
    values = classes._array
    if count == -1 and values.size:
        count = int(values.max()) + 1
    if count < 1:
        raise KaelValueError("one_hot: num_classes must be at least 1 where x is empty")
    outside = (values < 0) | (values >= count)
    if outside.any():
        raise KaelIndexError(
            f"one_hot: class {values[outside][0]} is out of range for {count} classes"
        )
    return (count,)


one_hot = Operation(
    "one_hot(x, num_classes=-1)",
    lambda x, num_classes: (_whole(x)[..., None] == np.arange(num_classes)).astype(np.int64),
    tensors=("x",), prepare=_prepare_one_hot,
    samples=lambda rng: [
        Sample((rng.integers(0, 3, 4),), {"num_classes": 3}), Sample((np.array([0, 2]),)),
    ],
    family="index", method=False,
    doc="Return int64 ones at the classes in x along a new last dim, zeros elsewhere.",
)  # fmt: skip


def _as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(as_array(x))


@composite(
    "take(x, index)", family="index",
    doc="Return the entries of the flattened tensor at the positions of index.",
)  # fmt: skip
def take(x: Any, index: Any) -> Tensor:
    return read(reshape(x, -1), (index,))


@composite(
    "take_along_dim(x, indices, dim=None)", family="index",
    doc="Return gather(x, dim, indices) with both broadcast; without a dim, of the flattened x.",
)  # fmt: skip
def take_along_dim(x: Any, indices: Any, dim: int | None = None) -> Tensor:
    x, points = _as_tensor(x), _as_tensor(indices)
    if dim is None:
        return gather(reshape(x, -1), 0, reshape(points, -1))
    at = shapes.wrap_dim(dim, x.ndim, "take_along_dim")
    if points.ndim != x.ndim:
        raise KaelValueError(
            f"take_along_dim: indices of shape {shapes.text(points.shape)} need as many dims as x "
            f"of shape {shapes.text(x.shape)}"
        )
    if x.ndim == 0:
        return gather(x, at, points)
    own = shapes.broadcast(
        "take_along_dim", (*x.shape[:at], 1, *x.shape[at + 1 :]),
        (*points.shape[:at], 1, *points.shape[at + 1 :]),
    )  # fmt: skip
    x = expand(x, *own[:at], x.shape[at], *own[at + 1 :])
    return gather(x, at, expand(points, *own[:at], points.shape[at], *own[at + 1 :]))
