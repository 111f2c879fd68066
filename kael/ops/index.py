"""Indexing with `x[...]`, joining with cat and stack, choosing with where and masks, pad.

Views by slices are in `view.py`, gather and scatter in `positions.py`. An index that appears twice
is read twice, so its gradients add.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kael import kernels, shapes
from kael.engine.grad_mode import state
from kael.engine.node import sum_to_shape
from kael.errors import KaelIndexError, KaelTypeError, KaelValueError
from kael.ops.arguments import Arguments, Prepare, Shapes, shift_dim
from kael.ops.declare import Operation
from kael.ops.samples import Sample, normal
from kael.ops.view import select, slice, slice_bounds, unsqueeze
from kael.tensors import Tensor, as_array

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]
Items = tuple[Array | None, ...]


def getitem(x: Tensor, items: Any) -> Tensor:
    """Return `x[items]`: one operation for each item that changes something.

    Integers select, slices slice, None unsqueezes; index tensors, lists and masks are read
    together at the end. Raises `KaelIndexError` for too many items and for an index out of range.
    """
    view, read = located(x, items)
    if read:
        return index(view, read)
    # All of it, with grad mode off: what a view of it would be.
    return x.detach() if view is x and not state.here.grad_enabled else view


def located(x: Tensor, items: Any) -> tuple[Tensor, Items]:
    """Return the view that integers, slices and None give, and what index arrays read from it."""
    read: list[Array | None] = []
    dim = covered = 0
    for item in _spelled_out(x, items if isinstance(items, tuple) else (items,)):
        if item is None:
            x = unsqueeze(x, dim)
        elif isinstance(item, int):
            x = select(x, dim, item)
            continue
        elif isinstance(item, builtins.slice):
            x = _sliced(x, dim, item)
        else:
            read += [None] * (dim - covered)
            read.append(item)
            dim = covered = dim + _dims_read(item)
            continue
        dim += 1
    return x, tuple(read)


def _spelled_out(x: Tensor, items: tuple[Any, ...]) -> list[Any]:
    """Return the items as None, int, slice or array, with the ellipsis written out as slices."""
    known = [_as_item(item) for item in items]
    dims = sum(0 if item is None or item is ... else _dims_read(item) for item in known)
    if dims > x.ndim:
        raise KaelIndexError(
            f"getitem: {dims} dims are indexed, but shape {shapes.text(x.shape)} has {x.ndim}"
        )
    at = [position for position, item in enumerate(known) if item is ...]
    if len(at) > 1:
        raise KaelIndexError("getitem: an index can hold only one ellipsis (...)")
    for position in at:
        known[position : position + 1] = [builtins.slice(None)] * (x.ndim - dims)
    return known


def _as_item(item: Any) -> Any:
    if item is None or item is ... or isinstance(item, builtins.slice):
        return item
    if isinstance(item, Tensor):
        item = item._array
    if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        return int(item)
    if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        return int(item)
    if not isinstance(item, (bool, np.bool_, list, np.ndarray)):
        raise KaelTypeError(
            f"getitem: an index is made of integers, slices, ..., None, integer or boolean "
            f"tensors and lists, got {type(item).__name__}"
        )
    return _as_index(item)


def _as_index(item: Any) -> Array:
    """Return index values as an array of their own: a write to the tensor must not reach it."""
    array = as_array(item)
    if array.size == 0 and array.dtype.kind == "f" and isinstance(item, list):
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise KaelTypeError(
            f"getitem: an index tensor holds integers or booleans, got {array.dtype}"
        )
    return array


def _dims_read(item: Any) -> int:
    return item.ndim if isinstance(item, np.ndarray) and item.dtype.kind == "b" else 1


def _sliced(x: Tensor, dim: int, item: builtins.slice) -> Tensor:
    size = x.shape[dim]
    bounds = slice_bounds(size, item.start, item.stop, item.step)
    return x if bounds == (0, size, 1) else slice(x, dim, *bounds)


def _prepare_items(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    """Check every index against the size it reads from, and count it from the front."""
    return (checked_items(inputs[0], arguments[0]),)


def checked_items(x: Tensor, given_items: Items) -> Items:
    """Return index arrays counted from the front; `KaelIndexError` where one is out of range."""
    items: list[Array | None] = []
    dim = 0
    for item in given_items:
        if item is None:
            items.append(None)
            dim += 1
            continue
        array = _as_index(item)
        reads = _dims_read(array)
        given = x.shape[dim : dim + reads]
        if array.dtype.kind == "b":
            if array.shape != given:
                raise KaelIndexError(
                    f"getitem: a mask of shape {shapes.text(array.shape)} does not match "
                    f"sizes {shapes.text(given)} of shape {shapes.text(x.shape)} at dim {dim}"
                )
        else:
            array = _from_front(array, dim, given[0])
        items.append(array)
        dim += reads
    _require_together(items)
    return tuple(items)


def _require_together(items: Sequence[Array | None]) -> None:
    """Raise `KaelIndexError` unless the positions that arrays read broadcast together."""
    read = [item for item in items if item is not None]
    if len(read) < 2:
        return
    given = [(int(a.sum()),) if a.dtype.kind == "b" else a.shape for a in read]
    try:
        shapes.broadcast("getitem", *given)
    except KaelValueError:
        listed = " and ".join(shapes.text(shape) for shape in given)
        raise KaelIndexError(
            f"getitem: indices of shape {listed} are read together and do not broadcast"
        ) from None


def _from_front(array: Array, dim: int, size: int) -> Array:
    outside = (array < -size) | (array >= size)
    if outside.any():
        raise KaelIndexError(
            f"getitem: index {array[outside][0]} is out of range for dim {dim} with size {size}"
        )
    return np.where(array < 0, array + size, array).astype(np.int64, copy=False)


def _only_index(items: Items) -> tuple[int, Array] | None:
    """Return dim and index where one integer index is all there is to read."""
    array = items[-1]
    if array is None or array.dtype.kind == "b" or len(_arrays(items)) > 1:
        return None
    return len(items) - 1, array


def _arrays(items: Items) -> list[int]:
    return [position for position, item in enumerate(items) if item is not None]


def points(items: Items) -> tuple[Any, ...]:
    """Return the items as NumPy indexes."""
    return tuple(builtins.slice(None) if item is None else item for item in items)


def _read(x: Array, items: Items) -> Array:
    only = _only_index(items)
    if only is None:
        return np.asarray(x[points(items)])
    dim, array = only
    rows = kernels.index_select(x, dim, array.reshape(-1))
    return rows.reshape((*x.shape[:dim], *array.shape, *x.shape[dim + 1 :]))


def _read_backward(g: Array, x_shape: Dims, items: Items) -> Array:
    only = _only_index(items)
    if only is not None:
        dim, array = only
        rows = g.reshape(*x_shape[:dim], array.size, *x_shape[dim + 1 :])
        return kernels.index_select_backward(rows, x_shape, dim, array.reshape(-1))
    out = np.zeros(x_shape, g.dtype)
    if all(item is None or item.dtype.kind == "b" for item in items) and len(_arrays(items)) == 1:
        out[points(items)] = g  # a mask reads every entry once
    else:
        np.add.at(out, points(items), g)
    return out


def _items_batch(arguments: Arguments, _: Shapes) -> Arguments | None:
    (items,) = arguments
    at = _arrays(items)
    if any(items[i].dtype.kind == "b" for i in at):
        return None  # a mask follows from values, which differ from call to call
    # Index arrays with a gap between them put their dims in front, before the leading axis.
    together = at[-1] - at[0] == len(at) - 1
    return ((None, *items),) if together else None


index = Operation(
    "index(x, items)", _read,
    vjp={"x": _read_backward}, text={"x": "zeros, with g added where it was read"}, prose=True,
    prepare=_prepare_items, batch=_items_batch, analytic=True, method=False, function=False,
    samples=lambda rng: [
        Sample((normal(rng, (4,)),), {"items": (np.array([2, 0, 2]),)}),
        Sample((normal(rng, (3, 4)),), {"items": (None, np.array([[1, -1], [1, 0]]))}),
        Sample((normal(rng, (3, 4)),), {"items": (np.array([0, 2, 0]), np.array([1, 3, 1]))}),
        Sample((normal(rng, (2, 3)),), {"items": (np.array([[True, False, True]] * 2),)}),
        Sample((normal(rng, (2, 3, 2)),), {"items": (np.array([1, 0]), None, np.array([1, 1]))}),
    ],
    family="index",
    doc="Return what index tensors and masks read: `x[items]` for items that are no slices.",
)  # fmt: skip


def _prepare_where(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    _require_mask("where", inputs[0], "condition")
    return arguments


def _require_mask(name: str, mask: Tensor, parameter: str) -> None:
    if mask._array.dtype.kind != "b":
        raise KaelTypeError(
            f"{name}: {parameter} must be boolean, got {mask.dtype}; compare first (x != 0)"
        )


where = Operation(
    "where(condition, x, other)", np.where,
    vjp={
        "condition": None,
        "x": lambda g, condition: np.where(condition, g, 0),
        "other": lambda g, condition: np.where(condition, 0, g),
    },
    text={"x": "where(condition, g, 0)", "other": "where(condition, 0, g)"},
    prepare=_prepare_where, broadcasts=True, promotes=("x", "other"),
    batch="elementwise", analytic=True, method=False,
    samples=lambda rng: [
        Sample((rng.random(mask) < 0.5, normal(rng, left), normal(rng, right)))
        for mask, left, right in (
            ((2, 3), (2, 3), (2, 3)), ((3,), (2, 1), ()),
            ((2, 1), (3,), (2, 3)), ((0,), (1,), (0,)),
        )
    ],
    family="index",
    convention="the branch not taken gets 0, whatever it holds",
    doc="Return x where the condition holds and other elsewhere.",
)  # fmt: skip


def _prepare_cat(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    first = inputs[0].shape
    if not first:
        raise KaelValueError("cat: 0-d tensors have no dim to join along; use stack")
    dim = shapes.wrap_dim(arguments[0], len(first), "cat")
    for tensor in inputs[1:]:
        shape = tensor.shape
        if len(shape) != len(first) or any(
            d != dim and ours != theirs
            for d, (ours, theirs) in enumerate(zip(first, shape, strict=True))
        ):
            raise KaelValueError(
                f"cat: shapes {shapes.text(first)} and {shapes.text(shape)} do not match: "
                f"all sizes but those of dim {dim} must be equal"
            )
    return (dim,)


def _cat_backward(
    g: Array, tensors_shape: list[Dims], tensors_dtype: list[Any], dim: int, needs: Sequence[bool]
) -> tuple[Array | None, ...]:
    return tuple(_pieces(g, tensors_shape, tensors_dtype, dim, needs))


def _pieces(
    g: Array, given: list[Dims], kinds: list[Any], dim: int, needs: Sequence[bool]
) -> Iterator[Array | None]:
    start = 0
    for shape, dtype, needed in zip(given, kinds, needs, strict=True):
        end = start + shape[dim]
        piece = g[(*(builtins.slice(None),) * dim, builtins.slice(start, end))]
        yield piece.astype(dtype, copy=False) if needed else None
        start = end


cat = Operation(
    "cat(tensors[], dim=0)", lambda arrays, dim: np.concatenate(arrays, axis=dim),
    joint=_cat_backward, joint_inputs=("tensors",),
    text={"tensors": "the slice of g that the tensor fills"}, prose=True,
    prepare=_prepare_cat, promotes=("tensors",), batch=shift_dim(), analytic=True, method=False,
    aliases=("concat", "concatenate"),
    samples=lambda rng: [
        Sample((normal(rng, (2,)), normal(rng, (3,)))),
        Sample((normal(rng, (1, 3)), normal(rng, (2, 3)), normal(rng, (0, 3))), {"dim": 0}),
        Sample((normal(rng, (2, 1)), normal(rng, (2, 2))), {"dim": -1}),
    ],
    family="index",
    doc="Return tensors joined along a dim.",
)  # fmt: skip


def _prepare_stack(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    first = inputs[0].shape
    for tensor in inputs[1:]:
        if tensor.shape != first:
            raise KaelValueError(
                f"stack: shapes {shapes.text(first)} and {shapes.text(tensor.shape)} do not "
                "match: all must be equal; cat joins different sizes"
            )
    return (shapes.wrap_dim(arguments[0], len(first) + 1, "stack"),)


def _stack_backward(
    g: Array, tensors_dtype: list[Any], dim: int, needs: Sequence[bool]
) -> tuple[Array | None, ...]:
    entries = zip(np.moveaxis(g, dim, 0), tensors_dtype, needs, strict=True)
    return tuple(np.asarray(entry, dtype) if needed else None for entry, dtype, needed in entries)


def _prepare_masked(name: str) -> Prepare:
    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        x, mask = inputs
        _require_mask(name, mask, "mask")
        shapes.broadcast(name, x.shape, mask.shape)
        return arguments

    return prepare


def _prepare_fill(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    (value,) = _prepare_masked("masked_fill")(inputs, arguments)
    x = inputs[0]
    if not isinstance(value, (int, float)):
        raise KaelTypeError(f"masked_fill: value must be a number, got {value!r}")
    if isinstance(value, float) and x._array.dtype.kind != "f":
        raise KaelTypeError(
            f"masked_fill: {value!r} does not fit into {x.dtype}; convert x with to(kael.float64)"
        )
    return (value,)


def _fill(x: Array, mask: Array, value: float) -> Array:
    return np.where(mask, x.dtype.type(value), x)


def _masked(x: Array, mask: Array) -> tuple[Array, Array]:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return np.broadcast_to(x, shape), np.broadcast_to(mask, shape)


def _masked_select(x: Array, mask: Array) -> Array:
    x, mask = _masked(x, mask)
    return x[mask]


def _masked_select_backward(g: Array, x_shape: Dims, mask: Array) -> Array:
    shape = np.broadcast_shapes(x_shape, mask.shape)
    out = np.zeros(shape, g.dtype)
    out[np.broadcast_to(mask, shape)] = g
    return sum_to_shape(out, x_shape)


def _prepare_pad(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x = inputs[0]
    amounts, mode, value = shapes.as_sizes(arguments[0], "pad"), arguments[1], arguments[2]
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise KaelValueError(
            f"pad: {shapes.text(amounts)} must hold two amounts for each padded dim, last dim "
            f"first, and shape {shapes.text(x.shape)} has {x.ndim}"
        )
    if mode not in ("constant", *_REPEATING):
        raise KaelValueError(
            f"pad: mode {mode!r} is unknown; use constant, {', '.join(_REPEATING)}"
        )
    for size, before, after in _by_dim(x.shape, amounts):
        if mode == "constant":
            fits = size + min(before, 0) + min(after, 0) >= 0
        else:
            # A reflection does not repeat the edge, so one entry less is there to give.
            room = {"reflect": size - 1, "circular": size}.get(mode, max(before, after))
            fits = size > 0 and min(before, after) >= 0 and max(before, after) <= room
        if not fits:
            raise KaelValueError(f"pad: {before} and {after} do not fit a dim of size {size}")
    return amounts, mode, 0 if value is None else value


_REPEATING = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _by_dim(shape: Dims, amounts: Dims) -> list[tuple[int, int, int]]:
    """Return size, amount before and amount after of each padded dim, last dim first."""
    return list(zip(shape[::-1], amounts[::2], amounts[1::2], strict=False))


def _pad(x: Array, amounts: Dims, mode: str, value: float) -> Array:
    if mode != "constant" and amounts:
        for dim, positions in _positions(x.shape, amounts, mode):
            x = np.take(x, positions, axis=dim)
        return x
    if not amounts:
        return x.copy()
    outside: list[tuple[int, int]] = [(0, 0)] * x.ndim
    for dim, (size, before, after) in enumerate(_by_dim(x.shape, amounts), 1):
        kept = builtins.slice(max(-before, 0), size - max(-after, 0))
        cut: tuple[Any, ...] = (..., kept, *(builtins.slice(None),) * (dim - 1))
        x = x[cut]
        outside[-dim] = (max(before, 0), max(after, 0))
    return np.pad(x, outside, constant_values=x.dtype.type(value))


def _pad_backward(g: Array, x_shape: Dims, pad: Dims, mode: str) -> Array:
    if mode == "constant":
        return _pad(g, tuple(-amount for amount in pad), mode, 0)
    for dim, positions in reversed(_positions(x_shape, pad, mode)):
        shape = (*g.shape[:dim], x_shape[dim], *g.shape[dim + 1 :])
        g = kernels.index_select_backward(g, shape, dim, positions)
    return g


def _positions(shape: Dims, amounts: Dims, mode: str) -> list[tuple[int, Array]]:
    """Return each padded dim, and where along it each entry of the result is read."""
    return [
        (len(shape) - dim, np.pad(np.arange(size), (before, after), _REPEATING[mode]))  # type: ignore[call-overload]
        for dim, (size, before, after) in enumerate(_by_dim(shape, amounts), 1)
    ]


stack = Operation(
    "stack(tensors[], dim=0)", lambda arrays, dim: np.stack(arrays, axis=dim),
    joint=_stack_backward, joint_inputs=("tensors",),
    text={"tensors": "the entry of g that the tensor is"}, prose=True,
    prepare=_prepare_stack, promotes=("tensors",), analytic=True, method=False,
    batch=lambda arguments, _: (arguments[0] + 1,),
    samples=lambda rng: [
        Sample((normal(rng, (2,)), normal(rng, (2,)))),
        Sample((normal(rng, ()), normal(rng, ()), normal(rng, ()))),
        Sample((normal(rng, (2, 3)), normal(rng, (2, 3))), {"dim": -2}),
    ],
    family="index",
    doc="Return tensors of one shape joined along a new dim.",
)  # fmt: skip
masked_fill = Operation(
    "masked_fill(x, mask, value)", _fill,
    vjp={"x": lambda g, mask: np.where(mask, 0, g), "mask": None},
    text={"x": "masked_fill(g, mask, 0)"},
    prepare=_prepare_fill, broadcasts=True, batch="elementwise", analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (2, 3)), rng.random((2, 3)) < 0.5), {"value": -1.5}),
        Sample((normal(rng, (2, 3)), np.array([True, False, True])), {"value": 0.5}),
        Sample((normal(rng, (3,)), rng.random((2, 1)) < 0.5), {"value": 2}),
        Sample((normal(rng, ()), np.array(False)), {"value": 1.0}),
        Sample((normal(rng, (0, 2)), np.array([True, False])), {"value": 1.0}),
    ],
    family="index",
    doc="Return x with a number where the mask is true.",
)  # fmt: skip
masked_select = Operation(
    "masked_select(x, mask)", _masked_select,
    vjp={"x": _masked_select_backward, "mask": None},
    text={"x": "zeros, with g where the mask is true"}, prose=True,
    prepare=_prepare_masked("masked_select"), analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (2, 3)), np.array([[True, False, True], [False, True, True]]))),
        Sample((normal(rng, (3,)), np.array([[True], [True]]))),
        Sample((normal(rng, (3,)), np.zeros(3, bool))),
    ],
    family="index",
    doc="Return the entries where the mask is true, in row-major order.",
)  # fmt: skip
pad = Operation(
    "pad(x, pad, mode='constant', value=None)", _pad,
    vjp={"x": _pad_backward}, text={"x": "g without the border"}, prose=True,
    prepare=_prepare_pad, strings=("mode",), batch=lambda arguments, _: arguments, analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (3,)),), {"pad": (1, 2)}),
        Sample((normal(rng, (2, 3)),), {"pad": (0, 1, 2, -1), "value": 0.5}),
        Sample((normal(rng, (2, 4)),), {"pad": (2, 1), "mode": "reflect"}),
        Sample((normal(rng, (3, 2)),), {"pad": (1, 0, 2, 1), "mode": "replicate"}),
        Sample((normal(rng, (3, 2)),), {"pad": (1, 2, 1, 1), "mode": "circular"}),
    ],
    family="index",
    doc="Return x with a border: two amounts a dim, last dim first; negative ones cut off.",
)  # fmt: skip
