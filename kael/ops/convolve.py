"""Convolutions, in the sense of neural networks (cross-correlations): one operation for any rank.

Channels come second, sizes last: [batch, channels, *sizes]. conv1d and conv2d add the bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from kael import shapes
from kael.errors import KaelValueError
from kael.ops.arguments import Arguments, require_floating
from kael.ops.declare import Operation, composite
from kael.ops.math import add
from kael.ops.samples import Sample, normal
from kael.ops.view import reshape, squeeze, unsqueeze
from kael.tensors import Tensor, as_array

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _prepare(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x, weight = inputs
    require_floating("convolution", x)
    require_floating("convolution", weight)
    count = weight.ndim - 2
    if count < 1 or x.ndim != weight.ndim:
        raise KaelValueError(
            f"convolution: x {shapes.text(x.shape)} and weight "
            f"{shapes.text(weight.shape)} do not fit\n"
            "x is [batch, channels, *sizes], weight [out channels, channels / groups, *sizes]"
        )
    stride, padding, dilation = (
        _for_each_dim(name, value, count, least)
        for name, value, least in zip(
            ("stride", "padding", "dilation"), arguments, (1, 0, 1), strict=False
        )
    )
    groups = shapes.as_index(arguments[3], "convolution", "groups")
    if groups < 1 or weight.shape[0] % groups or x.shape[1] != weight.shape[1] * groups:
        raise KaelValueError(
            f"convolution: weight {shapes.text(weight.shape)} in {groups} groups reads "
            f"{weight.shape[1] * groups} channels, and x {shapes.text(x.shape)} has {x.shape[1]}\n"
            f"the {weight.shape[0]} channels it makes must be a multiple of the groups"
        )
    reach = tuple((n - 1) * step + 1 for n, step in zip(weight.shape[2:], dilation, strict=True))
    if 0 in weight.shape[2:] or any(
        window > size + 2 * border
        for window, size, border in zip(reach, x.shape[2:], padding, strict=True)
    ):
        raise KaelValueError(
            f"convolution: a window of {shapes.text(reach)} does not fit sizes "
            f"{shapes.text(x.shape[2:])} with padding {shapes.text(padding)}"
        )
    return stride, padding, dilation, groups


def _for_each_dim(name: str, value: object, count: int, least: int) -> Dims:
    """Return one number for each of the sizes, given as one for all or as a list."""
    given = shapes.as_sizes(value, "convolution")
    if len(given) not in (1, count) or min(given) < least:
        raise KaelValueError(
            f"convolution: {name} {shapes.text(given)} must hold one number, or one for each of "
            f"{count} dims, of at least {least}"
        )
    return given * count if len(given) == 1 else given


def _windows(x: Array, sizes: Dims, stride: Dims, padding: Dims, dilation: Dims) -> Array:
    """Return the windows of the padded operand: [batch, channels, *places, *sizes], a view."""
    padded = np.pad(x, [(0, 0), (0, 0), *((n, n) for n in padding)]) if any(padding) else x
    reach = tuple((n - 1) * step + 1 for n, step in zip(sizes, dilation, strict=True))
    windows = sliding_window_view(padded, reach, axis=tuple(range(2, x.ndim)))
    at: tuple[Any, ...] = (..., *(np.s_[::step] for step in (*stride, *dilation)))
    seen: Array = windows[at]
    return seen


def _convolution(
    x: Array, weight: Array, stride: Dims, padding: Dims, dilation: Dims, groups: int
) -> Array:
    count = len(stride)
    if weight.ndim > count + 2:  # a leading axis: each row is a call of its own
        rows = zip(x, weight, strict=True)
        return np.stack([_convolution(*row, stride, padding, dilation, groups) for row in rows])
    if groups > 1:
        parts = zip(np.split(x, groups, 1), np.split(weight, groups), strict=True)
        return np.concatenate(
            [_convolution(*part, stride, padding, dilation, 1) for part in parts], axis=1
        )
    windows = _windows(x, weight.shape[2:], stride, padding, dilation)
    # Channels and window meet in one matrix product; out channels come last, and move to 1.
    over = (1, *range(2 + count, 2 + 2 * count))
    out = np.tensordot(windows, weight, (over, range(1, 2 + count)))
    return np.ascontiguousarray(np.moveaxis(out, -1, 1))


def _gradient_of_x(
    g: Array, x_shape: Dims, weight: Array,
    stride: Dims, padding: Dims, dilation: Dims, groups: int,
) -> Array:  # fmt: skip
    """Add each window's gradient up where windows overlap: one pass for each place in a window."""
    if groups > 1:
        part = (x_shape[0], x_shape[1] // groups, *x_shape[2:])
        parts = zip(np.split(g, groups, 1), np.split(weight, groups), strict=True)
        return np.concatenate(
            [_gradient_of_x(h, part, w, stride, padding, dilation, 1) for h, w in parts], axis=1
        )
    sizes = x_shape[2:]
    padded = (n + 2 * border for n, border in zip(sizes, padding, strict=True))
    out = np.zeros((*x_shape[:2], *padded), g.dtype)
    columns = np.moveaxis(np.tensordot(g, weight, (1, 0)), weight.ndim - 1, 1)
    for place in np.ndindex(*weight.shape[2:]):
        read: list[Any] = [
            np.s_[k * apart : k * apart + step * (n - 1) + 1 : step]
            for k, apart, step, n in zip(place, dilation, stride, g.shape[2:], strict=True)
        ]
        out[(..., *read)] += columns[(..., *place)]
    inside: list[Any] = [np.s_[n : n + size] for n, size in zip(padding, sizes, strict=True)]
    return out[(..., *inside)]


def _gradient_of_weight(
    g: Array, x: Array, weight_shape: Dims,
    stride: Dims, padding: Dims, dilation: Dims, groups: int,
) -> Array:  # fmt: skip
    if groups > 1:
        part = (weight_shape[0] // groups, *weight_shape[1:])
        parts = zip(np.split(g, groups, 1), np.split(x, groups, 1), strict=True)
        return np.concatenate(
            [_gradient_of_weight(h, y, part, stride, padding, dilation, 1) for h, y in parts]
        )
    windows = _windows(x, weight_shape[2:], stride, padding, dilation)
    places = (0, *range(2, g.ndim))
    return np.tensordot(g, windows, (places, places))


convolution = Operation(
    "convolution(x, weight, stride=1, padding=0, dilation=1, groups=1)", _convolution,
    vjp={"x": _gradient_of_x, "weight": _gradient_of_weight},
    text={"x": "g times weight, added up where windows overlap", "weight": "g times the windows"},
    prose=True, prepare=_prepare, broadcasts=True, promotes=("x", "weight"),
    batch=lambda arguments, _: arguments, analytic=True, method=False,
    samples=lambda rng: [
        Sample((normal(rng, (2, 2, 5)), normal(rng, (3, 2, 2)))),
        Sample((normal(rng, (1, 2, 6)), normal(rng, (1, 2, 3))), {"stride": 2, "padding": 1}),
        Sample((normal(rng, (1, 2, 3, 4)), normal(rng, (2, 2, 2, 3))),
               {"stride": (2, 1), "padding": (0, 1)}),
        Sample((normal(rng, (1, 4, 5)), normal(rng, (2, 2, 2))), {"dilation": 2, "groups": 2}),
    ],
    family="nn",
    doc="Return the cross-correlation of [batch, channels, *sizes] with the windows of weight.",
)  # fmt: skip


def _convolved(name: str, count: int, x: Any, weight: Any, bias: Any, *arguments: Any) -> Tensor:
    x, weight = (t if isinstance(t, Tensor) else Tensor(as_array(t)) for t in (x, weight))
    if weight.ndim != count + 2 or x.ndim not in (count + 1, count + 2):
        raise KaelValueError(
            f"{name}: x {shapes.text(x.shape)} and weight {shapes.text(weight.shape)} must have "
            f"{count + 2} dims (x one less without a batch)"
        )
    single = x.ndim == count + 1
    out = convolution(unsqueeze(x, 0) if single else x, weight, *arguments)
    if bias is not None:
        column = reshape(bias, -1, *(1,) * count)
        if column.shape[0] != weight.shape[0]:
            raise KaelValueError(
                f"{name}: bias of {column.shape[0]} numbers must hold one for each of "
                f"{weight.shape[0]} out channels"
            )
        out = add(out, column)
    return squeeze(out, 0) if single else out


@composite(
    "conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)",
    family="nn", method=False,
    doc="Return the cross-correlation of [batch, channels, size] with [out, channels, n].",
)  # fmt: skip
def conv1d(
    x: Any, weight: Any, bias: Any = None,
    stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    return _convolved("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


@composite(
    "conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)",
    family="nn", method=False,
    doc="Return the cross-correlation of [batch, channels, h, w] with [out, channels, n, m].",
)  # fmt: skip
def conv2d(
    x: Any, weight: Any, bias: Any = None,
    stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    return _convolved("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)
