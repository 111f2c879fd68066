"""Views and copies of shape: what is rearranged without arithmetic; indexing is in `index.py`.

A view shares the memory of its operand. `reshape` does where it can, `view` always or not at all.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from kael import dtypes, shapes
from kael.engine.formula import upstream
from kael.errors import KaelIndexError, KaelValueError
from kael.ops.arguments import (
    Arguments,
    Prepare,
    Shapes,
    shift_dim,
)
from kael.ops.declare import Operation, composite
from kael.ops.samples import Sample, normal, unary_samples
from kael.tensors import Tensor, as_array

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _sizes(name: str) -> Prepare:
    """Resolve a shape with at most one -1 against the operand's number of elements."""

    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        x = inputs[0]._array
        wanted = shapes.as_sizes(arguments[0], name)
        return (fill_in(wanted, x.size, name, x.shape),)

    return prepare


def fill_in(wanted: Dims, size: int, name: str, given: Dims) -> Dims:
    """Return sizes with -1 replaced, or raise `KaelValueError` where they hold another number."""
    known = int(np.prod([n for n in wanted if n != -1], dtype=int))
    if wanted.count(-1) > 1 or any(n < -1 for n in wanted):
        raise KaelValueError(
            f"{name}: shape {shapes.text(wanted)} is not one: sizes are 0 or more, and at most "
            "one may be -1"
        )
    full = wanted
    if -1 in wanted and known and size % known == 0:
        full = tuple(size // known if n == -1 else n for n in wanted)
    if -1 in full or shapes.numel(full) != size:
        raise KaelValueError(
            f"{name}: shape {shapes.text(given)} has {size} elements, which do not fill "
            f"{shapes.text(wanted)}"
        )
    return full


def _behind_axis(arguments: Arguments, _: Shapes) -> Arguments | None:
    (shape,) = arguments
    # -1 stands for the leading axis, and cannot be worked out beside a size of 0.
    return ((-1, *shape),) if 0 not in shape else None


def _view(x: Array, shape: Dims) -> Array:
    viewed = x.reshape(shape)
    if x.size and not np.may_share_memory(viewed, x):
        raise KaelValueError(
            f"view: shape {shapes.text(x.shape)} with its strides cannot be seen as "
            f"{shapes.text(shape)} without a copy; use reshape"
        )
    return viewed


def _two_dims(name: str) -> Prepare:
    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        ndim = inputs[0]._array.ndim
        return tuple(shapes.wrap_dim(dim, ndim, name) for dim in arguments)

    return prepare


def _swapped(x: Array, dim0: int, dim1: int) -> Array:
    return np.swapaxes(x, dim0, dim1) if x.ndim else x[...]


def _shift_all(arguments: Arguments, given: Shapes) -> Arguments | None:
    return tuple(dim + 1 for dim in arguments) if given[0] else None


def _at(dim: int, item: Any) -> tuple[Any, ...]:
    # The ellipsis keeps the result of an integer an array, and so a view, in every rank.
    return (*(builtins.slice(None),) * dim, item, ...)


def _prepare_slice(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x = inputs[0]._array
    if x.ndim == 0:
        raise KaelIndexError("slice: a 0-d tensor has no dim to slice")
    dim = shapes.wrap_dim(arguments[0], x.ndim, "slice")
    return dim, *slice_bounds(x.shape[dim], *arguments[1:])


def slice_bounds(size: int, start: object, end: object, step: object) -> tuple[int, int, int]:
    """Return a slice's start, end and step within a size, as Python counts them."""
    by = 1 if step is None else shapes.as_index(step, "slice", "step")
    if by < 1:
        raise KaelValueError(f"slice: step must be greater than 0, got {by}; see flip")
    first = None if start is None else shapes.as_index(start, "slice", "start")
    last = None if end is None else shapes.as_index(end, "slice", "end")
    return builtins.slice(first, last, by).indices(size)


def _take_slice(x: Array, dim: int, start: int, end: int, step: int) -> Array:
    cut: Array = x[_at(dim, builtins.slice(start, end, step))]
    return cut


def _slice_backward(g: Array, x_shape: Dims, dim: int, start: int, end: int, step: int) -> Array:
    out = np.zeros(x_shape, g.dtype)
    out[_at(dim, builtins.slice(start, end, step))] = g
    return out


def _prepare_select(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x = inputs[0]._array
    if x.ndim == 0:
        raise KaelIndexError("select: a 0-d tensor has no dim to select from")
    dim = shapes.wrap_dim(arguments[0], x.ndim, "select")
    index = shapes.as_index(arguments[1], "select", "index")
    size = x.shape[dim]
    if not -size <= index < size:
        raise KaelIndexError(
            f"select: index {index} is out of range for dim {dim} with size {size}"
        )
    return dim, index % size


def _take_entry(x: Array, dim: int, index: int) -> Array:
    entry: Array = x[_at(dim, index)]
    return entry


def _select_backward(g: Array, x_shape: Dims, dim: int, index: int) -> Array:
    out = np.zeros(x_shape, g.dtype)
    out[_at(dim, index)] = g
    return out


reshape = Operation(
    "reshape(x, *shape)", lambda x, shape: x.reshape(shape),
    vjp={"x": lambda g, x_shape: g.reshape(x_shape)}, text={"x": "reshape(g, shape(x))"},
    prepare=_sizes("reshape"), batch=_behind_axis, analytic=True, view=True,
    samples=lambda rng: [
        Sample((normal(rng, (2, 6)),), {"shape": (3, 4)}),
        Sample((normal(rng, (4,)),), {"shape": (2, 1, -1)}),
        Sample((normal(rng, (3, 2)).T,), {"shape": (6,)}),
        Sample((normal(rng, (1, 1)),), {"shape": ()}),
        Sample((normal(rng, (0, 2)),), {"shape": (3, 0)}),
    ],
    family="view",
    doc="Return the elements in another shape; one size may be -1. A view where possible.",
)  # fmt: skip
view = Operation(
    "view(x, *shape)", _view,
    vjp={"x": lambda g, x_shape: g.reshape(x_shape)}, text={"x": "reshape(g, shape(x))"},
    prepare=_sizes("view"), batch=_behind_axis, analytic=True, view=True,
    samples=lambda rng: [
        Sample((normal(rng, (2, 6)),), {"shape": (3, 4)}),
        Sample((normal(rng, (4,)),), {"shape": (2, 1, -1)}),
    ],
    family="view",
    doc="Return the elements in another shape over the same memory; refuses where it needs a copy.",
)  # fmt: skip
transpose = Operation(
    "transpose(x, dim0, dim1)", _swapped,
    vjp={"x": lambda g, dim0, dim1: _swapped(g, dim0, dim1)},
    text={"x": "transpose(g, dim0, dim1)"},
    prepare=_two_dims("transpose"), batch=_shift_all, analytic=True, view=True,
    aliases=("swapaxes", "swapdims"),
    samples=lambda rng: [
        Sample((normal(rng, (2, 3)),), {"dim0": 0, "dim1": 1}),
        Sample((normal(rng, (2, 3, 4)),), {"dim0": -1, "dim1": 0}),
        Sample((normal(rng, (3,)),), {"dim0": 0, "dim1": 0}),
    ],
    family="view",
    doc="Return a view with two dims exchanged.",
)  # fmt: skip
unsqueeze = Operation(
    "unsqueeze(x, dim)", np.expand_dims,
    vjp={"x": lambda g, dim: np.squeeze(g, dim)}, text={"x": "squeeze(g, dim)"},
    prepare=lambda inputs, arguments: (
        shapes.wrap_dim(arguments[0], inputs[0]._array.ndim + 1, "unsqueeze"),
    ),
    batch=lambda arguments, _: (arguments[0] + 1,), analytic=True, view=True,
    samples=lambda rng: [
        Sample((normal(rng, shape),), {"dim": dim})
        for shape, dim in (((), 0), ((3,), 1), ((2, 3), -2), ((2, 3), 0))
    ],
    family="view",
    doc="Return a view with a dim of size 1 put in.",
)  # fmt: skip
slice = Operation(
    "slice(x, dim, start=None, end=None, step=1)", _take_slice,
    vjp={"x": _slice_backward}, text={"x": "zeros, with g copied into the slice"}, prose=True,
    prepare=_prepare_slice, batch=shift_dim(), analytic=True, view=True,
    samples=lambda rng: [
        Sample((normal(rng, (5,)),), {"dim": 0, "start": 1, "end": 4}),
        Sample((normal(rng, (2, 6)),), {"dim": -1, "start": -5, "step": 2}),
        Sample((normal(rng, (3, 2)),), {"dim": 0, "start": 2, "end": 1}),
    ],
    family="view",
    doc="Return a view of every step-th entry of a dim from start to end, bounds as Python slices.",
)  # fmt: skip
select = Operation(
    "select(x, dim, index)", _take_entry,
    vjp={"x": _select_backward}, text={"x": "zeros, with g copied into the entry"}, prose=True,
    prepare=_prepare_select, batch=shift_dim(), analytic=True, view=True,
    samples=lambda rng: [
        Sample((normal(rng, (3,)),), {"dim": 0, "index": 1}),
        Sample((normal(rng, (2, 4)),), {"dim": -1, "index": -1}),
        Sample((normal(rng, (2, 3, 2)),), {"dim": 1, "index": 2}),
    ],
    family="view",
    doc="Return a view of one entry of a dim, without that dim.",
)  # fmt: skip


def _prepare_permute(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    ndim = inputs[0]._array.ndim
    given = shapes.as_sizes(arguments[0], "permute")
    dims = tuple(shapes.wrap_dim(dim, ndim, "permute") for dim in given) if ndim else given
    if sorted(dims) != list(range(ndim)):
        raise KaelValueError(
            f"permute: dims {shapes.text(given)} must name each of the {ndim} dims of shape "
            f"{shapes.text(inputs[0].shape)} once"
        )
    return (dims,)


def _prepare_squeeze(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x = inputs[0]._array
    dims = shapes.wrap_dims(arguments[0], x.ndim, "squeeze")
    return (tuple(dim for dim in dims if x.shape[dim] == 1),)


def _prepare_expand(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    given = inputs[0].shape
    wanted = shapes.as_sizes(arguments[0], "expand")
    own = (1,) * (len(wanted) - len(given)) + given
    # -1 keeps a size, and a dim that is put in front has none to keep.
    full = tuple(
        size if want == -1 and dim >= len(wanted) - len(given) else want
        for dim, (want, size) in enumerate(zip(wanted, own, strict=False))
    )
    if len(own) > len(wanted) or any(
        want < 0 or size not in (1, want) for want, size in zip(full, own, strict=True)
    ):
        raise KaelValueError(
            f"expand: shape {shapes.text(given)} does not expand to {shapes.text(wanted)}: "
            "only sizes of 1 can grow, and new dims come in front"
        )
    return (full,)


def _expand(x: Array, shape: Dims) -> Array:
    if shape[:1] == (-1,):  # a leading axis before the operand's own dims
        own = (1,) * (len(shape) - x.ndim) + x.shape[1:]
        x, shape = x.reshape(len(x), *own), (len(x), *shape[1:])
    if math.prod(shape) == x.size:  # no entry is repeated, so the view may be written into
        return x.reshape(shape)
    return np.broadcast_to(x, shape)


def _prepare_flip(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    return (shapes.wrap_dims(shapes.as_sizes(arguments[0], "flip"), inputs[0].ndim, "flip"),)


def _prepare_roll(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    """Return shifts and dims of equal length; without dims, the flattened tensor is rolled."""
    shifts = shapes.as_sizes(arguments[0], "roll")
    if arguments[1] is None:
        if len(shifts) != 1:
            raise KaelValueError(f"roll: {len(shifts)} shifts need as many dims")
        return shifts, None
    ndim = inputs[0].ndim
    given = shapes.as_sizes(arguments[1], "roll")
    if len(shifts) != len(given):
        raise KaelValueError(f"roll: {len(shifts)} shifts and {len(given)} dims do not match")
    return shifts, tuple(shapes.wrap_dim(dim, ndim, "roll") for dim in given)


def _roll(x: Array, shifts: Dims, dims: Dims | None) -> Array:
    return np.roll(x, shifts if dims is not None else shifts[0], dims)


def _roll_batch(arguments: Arguments, _: Shapes) -> Arguments | None:
    shifts, dims = arguments
    return None if dims is None else (shifts, tuple(dim + 1 for dim in dims))


def _prepare_repeat(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    given = inputs[0].shape
    repeats = shapes.as_sizes(arguments[0], "repeat")
    if len(repeats) < len(given) or any(count < 0 for count in repeats):
        raise KaelValueError(
            f"repeat: {shapes.text(repeats)} must hold a count of 0 or more for each dim of shape "
            f"{shapes.text(given)}; further ones come in front"
        )
    return (repeats,)


def _repeat_backward(g: Array, x_shape: Dims, repeats: Dims) -> Array:
    sizes = (1,) * (len(repeats) - len(x_shape)) + x_shape
    copies = g.reshape([n for pair in zip(repeats, sizes, strict=True) for n in pair])
    summed: Array = copies.sum(axis=tuple(range(0, 2 * len(repeats), 2)))
    return summed.reshape(x_shape)


def _repeat_batch(arguments: Arguments, given: Shapes) -> Arguments | None:
    (repeats,) = arguments
    return ((1, *repeats),) if len(repeats) == len(given[0]) else None


def _prepare_triangle(name: str) -> Prepare:
    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        if inputs[0].ndim < 2:
            raise KaelValueError(
                f"{name}: at least 2 dims are needed, got shape {shapes.text(inputs[0].shape)}"
            )
        return (shapes.as_index(arguments[0], name, "diagonal"),)

    return prepare


def _prepare_diagonal(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    ndim = inputs[0].ndim
    offset = shapes.as_index(arguments[0], "diagonal", "offset")
    dim1, dim2 = (shapes.wrap_dim(dim, ndim, "diagonal") for dim in arguments[1:])
    if dim1 == dim2:
        raise KaelValueError(f"diagonal: dim1 and dim2 are both {dim1}")
    return offset, dim1, dim2


def _diagonal(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    view = np.diagonal(x, offset, dim1, dim2)
    view.flags.writeable = x.flags.writeable  # NumPy guards against habits of its past
    return view


def _diagonal_backward(g: Array, x_shape: Dims, offset: int, dim1: int, dim2: int) -> Array:
    out = np.zeros(x_shape, g.dtype)
    _diagonal(out, offset, dim1, dim2)[...] = g
    return out


def _prepare_unfold(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x = inputs[0]
    if x.ndim == 0:
        raise KaelIndexError("unfold: a 0-d tensor has no dim to unfold")
    dim = shapes.wrap_dim(arguments[0], x.ndim, "unfold")
    size = shapes.as_index(arguments[1], "unfold", "size")
    step = shapes.as_index(arguments[2], "unfold", "step")
    room = x.shape[dim]
    if not 0 <= size <= room or step < 1:
        raise KaelValueError(
            f"unfold: size {size} and step {step} do not fit dim {dim} of shape "
            f"{shapes.text(x.shape)}\nsize must be in [0, {room}] and step at least 1"
        )
    return dim, size, step


def _unfold(x: Array, dim: int, size: int, step: int) -> Array:
    if size == 0:
        count = x.shape[dim] // step + 1
        return np.empty((*x.shape[:dim], count, *x.shape[dim + 1 :], 0), x.dtype)
    apart = step >= size  # else windows overlap, and no one may write into them
    windows = sliding_window_view(x, size, axis=dim, writeable=x.flags.writeable and apart)
    return _take_slice(windows, dim, 0, windows.shape[dim], step)


def _unfold_backward(g: Array, x_shape: Dims, dim: int, size: int, step: int) -> Array:
    """Add the windows up where they overlap: one pass for each place in a window."""
    out = np.zeros(x_shape, g.dtype)
    end = step * (g.shape[dim] - 1) + 1
    for place in range(size):
        out[_at(dim, builtins.slice(place, place + end, step))] += g[..., place]
    return out


def _prepare_to(_: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    return (dtypes.as_dtype(arguments[0]),)


permute = Operation(
    "permute(x, *dims)", np.transpose,
    vjp={"x": lambda g, dims: np.transpose(g, np.argsort(dims))},
    text={"x": "permute(g, the inverse of dims)"}, prose=True,
    prepare=_prepare_permute, analytic=True, view=True,
    batch=lambda arguments, _: ((0, *(dim + 1 for dim in arguments[0])),),
    samples=lambda rng: [
        Sample((normal(rng, (2, 3, 4)),), {"dims": (2, 0, 1)}),
        Sample((normal(rng, (2, 3)),), {"dims": (-1, 0)}),
        Sample((normal(rng, (2, 3)),), {"dims": (0, 1)}),
    ],
    family="view",
    doc="Return a view with the dims in another order.",
)  # fmt: skip
squeeze = Operation(
    "squeeze(x, dim=None)", lambda x, dim: np.squeeze(x, dim)[...],
    vjp={"x": lambda g, x_shape: g.reshape(x_shape)}, text={"x": "reshape(g, shape(x))"},
    prepare=_prepare_squeeze, batch=shift_dim(), analytic=True, view=True,
    samples=lambda rng: [
        Sample((normal(rng, (1, 3, 1)),)),
        Sample((normal(rng, (1, 3, 1)),), {"dim": -1}),
        Sample((normal(rng, (2, 3)),), {"dim": 0}),
        Sample((normal(rng, (1, 2, 1)),), {"dim": (0, 2)}),
    ],
    family="view",
    doc="Return a view without dims of size 1: all of them, or those named.",
)  # fmt: skip
expand = Operation(
    "expand(x, *shape)", _expand,
    vjp={"x": upstream}, text={"x": "g"}, broadcasts=True,
    prepare=_prepare_expand, analytic=True, view=True,
    batch=lambda arguments, _: ((-1, *arguments[0]),),
    samples=lambda rng: [
        Sample((normal(rng, (3, 1)),), {"shape": (3, 4)}),
        Sample((normal(rng, (3,)),), {"shape": (2, -1)}),
        Sample((normal(rng, ()),), {"shape": (2, 2)}),
        Sample((normal(rng, (1, 2)),), {"shape": (0, 2)}),
    ],
    family="view", convention="the gradient is summed over the dims that grew",
    doc="Return a view with sizes of 1 grown and new dims in front; -1 keeps a size.",
)  # fmt: skip
clone = Operation(
    "clone(x)", lambda x: x.copy(),
    vjp={"x": upstream}, text={"x": "g"},
    analytic=True, batch="elementwise",
    samples=lambda rng: unary_samples(rng, normal), family="view",
    doc="Return a copy with memory of its own.",
)  # fmt: skip
to = Operation(
    "to(x, dtype)", lambda x, dtype: x.astype(dtype, copy=False)[...],
    vjp={"x": lambda g, x_dtype: g.astype(x_dtype)}, text={"x": "to(g, dtype(x))"}, prose=True,
    prepare=_prepare_to, strings=("dtype",), view=True, batch=lambda arguments, _: arguments,
    samples=lambda rng: [Sample((normal(rng, (2, 3)),), {"dtype": dtypes.float64})],
    family="view",
    doc="Return the elements in another dtype; in their own, a view.",
)  # fmt: skip
flip = Operation(
    "flip(x, *dims)", lambda x, dims: np.flip(x, dims).copy(),
    vjp={"x": lambda g, dims: np.flip(g, dims)}, text={"x": "flip(g, dims)"},
    prepare=_prepare_flip, batch=shift_dim(), analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (3,)),), {"dims": (0,)}),
        Sample((normal(rng, (2, 3)),), {"dims": (0, -1)}),
    ],
    family="view",
    doc="Return the entries in reverse order along dims.",
)  # fmt: skip
roll = Operation(
    "roll(x, shifts, dims=None)", _roll,
    vjp={"x": lambda g, shifts, dims: _roll(g, tuple(-n for n in shifts), dims)},
    text={"x": "g rolled back by the same shifts"}, prose=True,
    prepare=_prepare_roll, batch=_roll_batch, analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (4,)),), {"shifts": 1, "dims": 0}),
        Sample((normal(rng, (2, 3)),), {"shifts": 2}),
        Sample((normal(rng, (2, 3)),), {"shifts": (1, -1), "dims": (0, -1)}),
    ],
    family="view",
    doc="Return the entries shifted along dims; what leaves at one end enters at the other.",
)  # fmt: skip
repeat = Operation(
    "repeat(x, *repeats)", np.tile,
    vjp={"x": _repeat_backward}, text={"x": "the sum of g over the copies"}, prose=True,
    prepare=_prepare_repeat, batch=_repeat_batch, analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (2,)),), {"repeats": (3,)}),
        Sample((normal(rng, (2, 3)),), {"repeats": (2, 1)}),
        Sample((normal(rng, (2,)),), {"repeats": (2, 2)}),
        Sample((normal(rng, ()),), {"repeats": (3,)}),
    ],
    family="view",
    doc="Return copies of a tensor side by side, `repeats` of them along each dim.",
)  # fmt: skip
triu = Operation(
    "triu(x, diagonal=0)", np.triu,
    vjp={"x": lambda g, diagonal: np.triu(g, diagonal)}, text={"x": "triu(g, diagonal)"},
    prepare=_prepare_triangle("triu"), batch=lambda arguments, _: arguments, analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (3, 3)),)), Sample((normal(rng, (2, 3, 4)),), {"diagonal": 1}),
    ],
    family="view",
    doc="Return the upper triangle of matrices, from a diagonal on; 0 below.",
)  # fmt: skip
tril = Operation(
    "tril(x, diagonal=0)", np.tril,
    vjp={"x": lambda g, diagonal: np.tril(g, diagonal)}, text={"x": "tril(g, diagonal)"},
    prepare=_prepare_triangle("tril"), batch=lambda arguments, _: arguments, analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (3, 3)),)), Sample((normal(rng, (2, 3, 4)),), {"diagonal": -1}),
    ],
    family="view",
    doc="Return the lower triangle of matrices, up to a diagonal; 0 above.",
)  # fmt: skip
diagonal = Operation(
    "diagonal(x, offset=0, dim1=0, dim2=1)", _diagonal,
    vjp={"x": _diagonal_backward}, text={"x": "zeros, with g on the diagonal"}, prose=True,
    prepare=_prepare_diagonal, analytic=True, view=True,
    batch=lambda arguments, _: (arguments[0], arguments[1] + 1, arguments[2] + 1),
    samples=lambda rng: [
        Sample((normal(rng, (3, 3)),)),
        Sample((normal(rng, (2, 3, 4)),), {"offset": 1, "dim1": -2, "dim2": -1}),
        Sample((normal(rng, (3, 2)),), {"offset": -1}),
    ],
    family="view",
    doc="Return a view of a diagonal over two dims; it becomes the last dim.",
)  # fmt: skip
unfold = Operation(
    "unfold(x, dim, size, step)", _unfold,
    vjp={"x": _unfold_backward}, text={"x": "the sum of g over overlapping windows"}, prose=True,
    prepare=_prepare_unfold, batch=shift_dim(), analytic=True, view=True,
    samples=lambda rng: [
        Sample((normal(rng, (6,)),), {"dim": 0, "size": 3, "step": 1}),
        Sample((normal(rng, (2, 5)),), {"dim": 1, "size": 2, "step": 2}),
        Sample((normal(rng, (4, 2)),), {"dim": -2, "size": 2, "step": 3}),
    ],
    family="view",
    doc="Return a view of the windows of a dim, `step` apart; a window becomes the last dim.",
)  # fmt: skip


def _as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(as_array(x))


@composite(
    "expand_as(x, other)", family="view",
    doc="Return a view of x expanded to the shape of other.",
)  # fmt: skip
def expand_as(x: Any, other: Any) -> Tensor:
    return expand(x, *_as_tensor(other).shape)


@composite(
    "contiguous(x)", family="view",
    doc="Return the tensor itself where its elements lie in row-major order, else a copy.",
)  # fmt: skip
def contiguous(x: Any) -> Tensor:
    x = _as_tensor(x)
    return x if x.is_contiguous() else clone(x)


@composite(
    "flatten(x, start_dim=0, end_dim=-1)", family="view",
    doc="Return the tensor with the dims from start_dim to end_dim joined into one.",
)  # fmt: skip
def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    x = _as_tensor(x)
    start = shapes.wrap_dim(start_dim, x.ndim, "flatten")
    end = shapes.wrap_dim(end_dim, x.ndim, "flatten")
    if start > end:
        raise KaelValueError(f"flatten: start_dim {start} comes after end_dim {end}")
    joined = shapes.numel(x.shape[start : end + 1])
    return reshape(x, *x.shape[:start], joined, *x.shape[end + 1 :])


@composite(
    "unflatten(x, dim, sizes)", family="view",
    doc="Return the tensor with one dim split into several; one size may be -1.",
)  # fmt: skip
def unflatten(x: Any, dim: int, sizes: Sequence[int]) -> Tensor:
    x = _as_tensor(x)
    if x.ndim == 0:
        raise KaelIndexError("unflatten: a 0-d tensor has no dim to split")
    at = shapes.wrap_dim(dim, x.ndim, "unflatten")
    wanted = shapes.as_sizes(sizes, "unflatten")
    parts = fill_in(wanted, x.shape[at], "unflatten", x.shape[at : at + 1])
    return reshape(x, *x.shape[:at], *parts, *x.shape[at + 1 :])


@composite(
    "movedim(x, source, destination)", family="view",
    doc="Return a view with dims moved to other places, the others in order.",
)  # fmt: skip
def movedim(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    x = _as_tensor(x)
    sources = [shapes.wrap_dim(d, x.ndim, "movedim") for d in shapes.as_sizes(source, "movedim")]
    places = [
        shapes.wrap_dim(d, x.ndim, "movedim") for d in shapes.as_sizes(destination, "movedim")
    ]
    if len(set(sources)) != len(sources) or len(set(places)) != len(sources) != len(places):
        raise KaelValueError(
            f"movedim: {shapes.text(sources)} and {shapes.text(places)} must name as many "
            "different dims"
        )
    order = [dim for dim in range(x.ndim) if dim not in sources]
    for place, dim in sorted(zip(places, sources, strict=True)):
        order.insert(place, dim)
    return permute(x, order if x.ndim else ())


@composite(
    "narrow(x, dim, start, length)", family="view",
    doc="Return a view of `length` entries of a dim from `start` on.",
)  # fmt: skip
def narrow(x: Any, dim: int, start: int, length: int) -> Tensor:
    x = _as_tensor(x)
    if x.ndim == 0:
        raise KaelIndexError("narrow: a 0-d tensor has no dim to narrow")
    at = shapes.wrap_dim(dim, x.ndim, "narrow")
    size = x.shape[at]
    begin = shapes.as_index(start, "narrow", "start")
    count = shapes.as_index(length, "narrow", "length")
    begin = begin + size if begin < 0 else begin
    if count < 0 or not 0 <= begin <= size - count:
        raise KaelIndexError(
            f"narrow: start {start} and length {length} reach out of dim {at} with size {size}"
        )
    return slice(x, at, begin, begin + count)


@composite(
    "split(x, split_size, dim=0)", family="view",
    doc="Return a list of views: of `split_size` entries each, or of the sizes in a list.",
)  # fmt: skip
def split(x: Any, split_size: int | Sequence[int], dim: int = 0) -> list[Tensor]:
    x = _as_tensor(x)
    if x.ndim == 0:
        raise KaelIndexError("split: a 0-d tensor has no dim to split")
    at = shapes.wrap_dim(dim, x.ndim, "split")
    room = x.shape[at]
    if isinstance(split_size, (list, tuple)):
        sizes = shapes.as_sizes(split_size, "split")
        if any(size < 0 for size in sizes) or sum(sizes) != room:
            raise KaelValueError(
                f"split: sizes {shapes.text(sizes)} must sum to {room}, the size of dim {at}"
            )
    else:
        size = shapes.as_index(split_size, "split", "split_size")
        if size < 1:
            raise KaelValueError(f"split: split_size must be at least 1, got {size}")
        sizes = (size,) * (room // size) + ((room % size,) if room % size or not room else ())
    ends = np.cumsum(sizes, dtype=int).tolist()
    return [slice(x, at, end - size, end) for size, end in zip(sizes, ends, strict=True)]


@composite(
    "chunk(x, chunks, dim=0)", family="view",
    doc="Return a list of at most `chunks` views of equal size, but for the last.",
)  # fmt: skip
def chunk(x: Any, chunks: int, dim: int = 0) -> list[Tensor]:
    x = _as_tensor(x)
    count = shapes.as_index(chunks, "chunk", "chunks")
    if count < 1 or x.ndim == 0:
        raise KaelValueError(
            f"chunk: {count} chunks of shape {shapes.text(x.shape)} cannot be made: at least one "
            "chunk and one dim are needed"
        )
    at = shapes.wrap_dim(dim, x.ndim, "chunk")
    size = -(-x.shape[at] // count)
    pieces: list[Tensor] = split(x, size or [0] * count, at)
    return pieces


@composite(
    "unbind(x, dim=0)", family="view",
    doc="Return a list of the entries of a dim, without that dim.",
)  # fmt: skip
def unbind(x: Any, dim: int = 0) -> list[Tensor]:
    x = _as_tensor(x)
    if x.ndim == 0:
        raise KaelIndexError("unbind: a 0-d tensor has no dim to take apart")
    at = shapes.wrap_dim(dim, x.ndim, "unbind")
    return [select(x, at, index) for index in range(x.shape[at])]


@composite(
    "tile(x, *repeats)", family="view",
    doc="Return copies side by side, as repeat; missing counts are 1.",
)  # fmt: skip
def tile(x: Any, *repeats: Any) -> Tensor:
    x = _as_tensor(x)
    counts = shapes.as_sizes(repeats, "tile")
    return repeat(x, *(1,) * (x.ndim - len(counts)), *counts)
