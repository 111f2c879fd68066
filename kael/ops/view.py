"""Views and copies of shape: what is rearranged without arithmetic; indexing is in `index.py`.

A view shares the memory of its operand. `reshape` does where it can, `view` always or not at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kael import shapes
from kael.errors import KaelIndexError, KaelTypeError, KaelValueError
from kael.ops.arguments import Arguments, Shapes, replace, shift_dim
from kael.ops.declare import Operation
from kael.ops.samples import Sample, normal
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

_cut = slice  # the built-in; `slice` is an operation here


def _sizes(name: str) -> Any:
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


def _two_dims(name: str) -> Any:
    def prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
        ndim = inputs[0]._array.ndim
        return tuple(shapes.wrap_dim(dim, ndim, name) for dim in arguments)

    return prepare


def _shift_all(arguments: Arguments, given: Shapes) -> Arguments | None:
    return tuple(dim + 1 for dim in arguments) if given[0] else None


def _at(dim: int, item: Any) -> tuple[Any, ...]:
    # The ellipsis keeps the result of an integer an array, and so a view, in every rank.
    return (*(_cut(None),) * dim, item, ...)


def _prepare_slice(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x = inputs[0]._array
    dim, start, end, step = arguments
    if x.ndim == 0:
        raise KaelIndexError("slice: a 0-d tensor has no dim to slice")
    dim = shapes.wrap_dim(dim, x.ndim, "slice")
    step = 1 if step is None else shapes.as_index(step, "slice", "step")
    if step < 1:
        raise KaelValueError(f"slice: step must be greater than 0, got {step}; see flip")
    bounds = (
        None if bound is None else shapes.as_index(bound, "slice", name)
        for bound, name in ((start, "start"), (end, "end"))
    )
    start, end, step = _cut(*bounds, step).indices(x.shape[dim])
    return dim, start, end, step


def _take_slice(x: Array, dim: int, start: int, end: int, step: int) -> Array:
    return x[_at(dim, _cut(start, end, step))]


def _slice_backward(g: Array, x_shape: Dims, dim: int, start: int, end: int, step: int) -> Array:
    out = np.zeros(x_shape, g.dtype)
    out[_at(dim, _cut(start, end, step))] = g
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
    return x[_at(dim, index)]


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
    "transpose(x, dim0, dim1)", np.swapaxes,
    vjp={"x": lambda g, dim0, dim1: np.swapaxes(g, dim0, dim1)},
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
