"""Operations of neural networks: softmax, cross entropy, standardize, convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from kael import kernels, shapes
from kael.errors import KaelValueError
from kael.ops.arguments import Arguments, one_dim, require_floating, require_integers, shift_dim
from kael.ops.declare import Operation, composite
from kael.ops.linalg import matmul
from kael.ops.math import add, mul
from kael.ops.reduce import mean, sum
from kael.ops.samples import Sample, normal
from kael.ops.view import movedim, reshape, squeeze, transpose, unsqueeze
from kael.tensors import Tensor, as_array

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _row_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((normal(rng, (3,)),), {"dim": 0}),
        Sample((normal(rng, (2, 4)),), {"dim": 1}),
        Sample((normal(rng, (2, 3, 2)),), {"dim": -2}),
        Sample((normal(rng, (2, 0)),), {"dim": 1}),
    ]


def _prepare_cross_entropy(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    logits, targets = inputs
    require_floating("cross_entropy_losses", logits)
    require_integers("cross_entropy_losses", targets, "targets")
    if logits.ndim == 0 or logits.shape[:-1] != targets.shape:
        raise KaelValueError(
            f"cross_entropy_losses: logits {shapes.text(logits.shape)} and targets "
            f"{shapes.text(targets.shape)} do not match: targets hold one class for each row "
            f"of logits, shape {shapes.text(logits.shape[:-1])}"
        )
    return arguments


def _cross_entropy(logits: Array, targets: Array) -> Array:
    # Where many calls are computed at once, the logits alone have the leading axis.
    targets = np.broadcast_to(targets, logits.shape[:-1])
    return kernels.cross_entropy(logits, targets)


softmax = Operation(
    "softmax(x, dim)", kernels.softmax,
    vjp={"x": lambda g, out, dim: kernels.softmax_backward(g, out, dim)},
    text={"x": "out * (g - sum(g * out, dim, True))"},
    prepare=one_dim("softmax", floating=True), batch=shift_dim(), analytic=True,
    samples=_row_samples, family="nn", convention="a slice that is all -inf is NaN",
    doc="Return exp(x) / sum(exp(x)) along a dim, shifted by the maximum.",
)  # fmt: skip
log_softmax = Operation(
    "log_softmax(x, dim)", kernels.log_softmax,
    vjp={"x": lambda g, out, dim: kernels.log_softmax_backward(g, out, dim)},
    text={"x": "g - exp(out) * sum(g, dim, True)"},
    prepare=one_dim("log_softmax", floating=True), batch=shift_dim(), analytic=True,
    samples=_row_samples, family="nn", convention="a slice that is all -inf is NaN",
    doc="Return log(softmax(x)) along a dim without forming the softmax.",
)  # fmt: skip
cross_entropy_losses = Operation(
    "cross_entropy_losses(logits, targets)", _cross_entropy,
    vjp={
        "logits": lambda g, logits, targets: kernels.cross_entropy_backward(g, logits, targets),
        "targets": None,
    },
    text={"logits": "unsqueeze(g, -1) * (softmax(logits, -1) - "
                    "one_hot(targets, shape(logits)[-1]))"},
    node="CrossEntropyBackward", prepare=_prepare_cross_entropy,
    batch=lambda arguments, _: arguments, method=False,
    samples=lambda rng: [
        Sample((normal(rng, (3, 4)), rng.integers(0, 4, 3))),
        Sample((normal(rng, (2, 2, 3)), rng.integers(0, 3, (2, 2)))),
        Sample((normal(rng, (3,)), np.array(1))),
        Sample((normal(rng, (0, 3)), np.zeros(0, np.int64))),
    ],
    family="nn",
    doc="Return -log(softmax(logits))[target] for each row; targets are class indices.",
)  # fmt: skip


def _prepare_standardize(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x = inputs[0]
    require_floating("standardize", x)
    count = shapes.as_index(arguments[0], "standardize", "normalized_dims")
    if not 1 <= count <= x.ndim:
        raise KaelValueError(
            f"standardize: normalized_dims is how many trailing dims, 1 to {x.ndim} for shape "
            f"{shapes.text(x.shape)}, got {count}"
        )
    return count, arguments[1]


def _spatial(name: str, value: object, count: int) -> tuple[int, ...]:
    """Return one number for each spatial dim, given as one for all or as a list."""
    given = shapes.as_sizes(value, name)
    if len(given) not in (1, count):
        raise KaelValueError(
            f"{name}: {shapes.text(given)} must hold one number, or one for each of {count} dims"
        )
    return given * count if len(given) == 1 else given


def _prepare_convolution(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    x, weight = inputs
    require_floating("convolution", x)
    require_floating("convolution", weight)
    count = weight.ndim - 2
    if count < 1 or x.ndim != weight.ndim:
        raise KaelValueError(
            f"convolution: x {shapes.text(x.shape)} and weight {shapes.text(weight.shape)} must be "
            "[batch, channels, *sizes] and [out channels, channels, *sizes]"
        )
    if x.shape[1] != weight.shape[1]:
        raise KaelValueError(
            f"convolution: x {shapes.text(x.shape)} has {x.shape[1]} channels, and weight "
            f"{shapes.text(weight.shape)} reads {weight.shape[1]}"
        )
    stride = _spatial("convolution", arguments[0], count)
    padding = _spatial("convolution", arguments[1], count)
    if min(stride) < 1 or min(padding) < 0:
        raise KaelValueError(
            f"convolution: stride {shapes.text(stride)} must be at least 1 and padding "
            f"{shapes.text(padding)} at least 0"
        )
    for size, window, border in zip(x.shape[2:], weight.shape[2:], padding, strict=True):
        if window > size + 2 * border or window == 0:
            raise KaelValueError(
                f"convolution: a window of {shapes.text(weight.shape[2:])} does not fit sizes "
                f"{shapes.text(x.shape[2:])} with padding {shapes.text(padding)}"
            )
    return stride, padding


def _windows(x: Array, sizes: Dims, stride: Dims, padding: Dims) -> Array:
    """Return the windows of the padded operand: [batch, channels, *places, *sizes], a view."""
    border = [(0, 0), (0, 0), *((n, n) for n in padding)]
    padded = np.pad(x, border) if any(padding) else x
    windows = sliding_window_view(padded, sizes, axis=tuple(range(2, x.ndim)))
    at: tuple[Any, ...] = (..., *(np.s_[::step] for step in stride), *(np.s_[:],) * len(sizes))
    seen: Array = windows[at]
    return seen


def _convolution(x: Array, weight: Array, stride: Dims, padding: Dims) -> Array:
    count = len(stride)
    if weight.ndim > count + 2:  # a leading axis: each row is a call of its own
        return np.stack(
            [_convolution(*row, stride, padding) for row in zip(x, weight, strict=True)]
        )
    windows = _windows(x, weight.shape[2:], stride, padding)
    # Channels and window meet in one matrix product; out channels come last, and move to 1.
    over = (1, *range(2 + count, 2 + 2 * count))
    out = np.tensordot(windows, weight, (over, range(1, 2 + count)))
    return np.ascontiguousarray(np.moveaxis(out, -1, 1))


def _convolution_x(g: Array, x_shape: Dims, weight: Array, stride: Dims, padding: Dims) -> Array:
    """Add each window's gradient up where windows overlap: one pass for each place in a window."""
    sizes = weight.shape[2:]
    padded = tuple(n + 2 * border for n, border in zip(x_shape[2:], padding, strict=True))
    out = np.zeros((*x_shape[:2], *padded), g.dtype)
    columns = np.moveaxis(np.tensordot(g, weight, (1, 0)), weight.ndim - 1, 1)
    for place in np.ndindex(*sizes):
        at: list[Any] = [
            np.s_[start : start + step * (n - 1) + 1 : step]
            for start, step, n in zip(place, stride, g.shape[2:], strict=True)
        ]
        out[(..., *at)] += columns[(..., *place)]
    inside: list[Any] = [np.s_[n : n + size] for n, size in zip(padding, x_shape[2:], strict=True)]
    return out[(..., *inside)]


def _convolution_weight(
    g: Array, x: Array, weight_shape: Dims, stride: Dims, padding: Dims
) -> Array:
    windows = _windows(x, weight_shape[2:], stride, padding)
    places = (0, *range(2, g.ndim))
    return np.tensordot(g, windows, (places, places))


standardize = Operation(
    "standardize(x, normalized_dims, eps=1e-5)", kernels.standardize,
    vjp={
        "x": lambda g, x, out, normalized_dims, eps: kernels.standardize_backward(
            g, x, out, normalized_dims, eps
        )
    },
    text={"x": "(g - mean(g) - out * mean(g * out)) / sqrt(var(x, correction=0) + eps), "
               "means over the normalized dims"},
    prose=True, prepare=_prepare_standardize, batch=lambda arguments, _: arguments, analytic=True,
    samples=lambda rng: [
        Sample((normal(rng, (4,)),), {"normalized_dims": 1}),
        Sample((normal(rng, (2, 3)),), {"normalized_dims": 1, "eps": 1e-3}),
        Sample((normal(rng, (2, 3, 2)),), {"normalized_dims": 2}),
        Sample((normal(rng, (0, 3)),), {"normalized_dims": 1}),
    ],
    family="nn",
    doc="Return (x - mean) / sqrt(var + eps) over the last normalized_dims dims, var uncorrected.",
)  # fmt: skip
convolution = Operation(
    "convolution(x, weight, stride=1, padding=0)", _convolution,
    vjp={"x": _convolution_x, "weight": _convolution_weight},
    text={"x": "g times weight, added up where windows overlap", "weight": "g times the windows"},
    prose=True, prepare=_prepare_convolution, broadcasts=True, promotes=("x", "weight"),
    batch=lambda arguments, _: arguments, analytic=True, method=False,
    samples=lambda rng: [
        Sample((normal(rng, (2, 2, 5)), normal(rng, (3, 2, 2)))),
        Sample((normal(rng, (1, 2, 6)), normal(rng, (1, 2, 3))), {"stride": 2, "padding": 1}),
        Sample((normal(rng, (1, 2, 4, 5)), normal(rng, (2, 2, 2, 3))),
               {"stride": (2, 1), "padding": (0, 1)}),
    ],
    family="nn",
    doc="Return the cross-correlation of [batch, channels, *sizes] with windows of weight.",
)  # fmt: skip


def _as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(as_array(x))


def _convolved(
    name: str, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, count: int
) -> Tensor:
    x, weight = _as_tensor(x), _as_tensor(weight)
    if weight.ndim != count + 2 or x.ndim not in (count + 1, count + 2):
        raise KaelValueError(
            f"{name}: x {shapes.text(x.shape)} and weight {shapes.text(weight.shape)} must have "
            f"{count + 2} dims (x one less without a batch)"
        )
    single = x.ndim == count + 1
    out = convolution(unsqueeze(x, 0) if single else x, weight, stride, padding)
    if bias is not None:
        bias = _as_tensor(bias)
        if bias.shape != weight.shape[:1]:
            raise KaelValueError(
                f"{name}: bias of shape {shapes.text(bias.shape)} must hold one number for each of "
                f"{weight.shape[0]} out channels"
            )
        out = add(out, reshape(bias, -1, *(1,) * count))
    return squeeze(out, 0) if single else out


@composite(
    "conv1d(x, weight, bias=None, stride=1, padding=0)", family="nn", method=False,
    doc="Return the cross-correlation of [batch, channels, size] with weight [out, channels, n].",
)  # fmt: skip
def conv1d(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0) -> Tensor:
    return _convolved("conv1d", x, weight, bias, stride, padding, 1)


@composite(
    "conv2d(x, weight, bias=None, stride=1, padding=0)", family="nn", method=False,
    doc="Return the cross-correlation of [batch, channels, h, w] with [out, channels, n, m].",
)  # fmt: skip
def conv2d(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0) -> Tensor:
    return _convolved("conv2d", x, weight, bias, stride, padding, 2)


@composite(
    "linear(x, weight, bias=None)", family="nn", method=False,
    doc="Return x @ weight.T + bias; weight is [out, in].",
)  # fmt: skip
def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    x, weight = _as_tensor(x), _as_tensor(weight)
    if weight.ndim not in (1, 2) or x.ndim == 0 or x.shape[-1] != weight.shape[-1]:
        raise KaelValueError(
            f"linear: x {shapes.text(x.shape)} and weight {shapes.text(weight.shape)} do not "
            "match: weight is [out, in], and in is the last size of x"
        )
    out = matmul(x, transpose(weight, 0, 1) if weight.ndim == 2 else weight)
    return out if bias is None else add(out, bias)


@composite(
    "layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5)", family="nn", method=False,
    doc="Return standardize(x) * weight + bias over trailing dims of shape normalized_shape.",
)  # fmt: skip
def layer_norm(
    x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    x = _as_tensor(x)
    trailing = shapes.as_sizes(normalized_shape, "layer_norm")
    if not trailing or x.shape[-len(trailing) :] != trailing:
        raise KaelValueError(
            f"layer_norm: shape {shapes.text(x.shape)} does not end in normalized_shape "
            f"{shapes.text(trailing)}"
        )
    out = standardize(x, len(trailing), eps)
    if weight is not None:
        out = mul(out, weight)
    return out if bias is None else add(out, bias)


@composite(
    "cross_entropy(logits, targets, reduction='mean')", family="nn", method=False,
    strings=("reduction",),
    doc="Return the mean, the sum or all of -log(softmax(logits))[target]; classes are dim 1.",
)  # fmt: skip
def cross_entropy(logits: Any, targets: Any, reduction: str = "mean") -> Tensor:
    logits = _as_tensor(logits)
    if reduction not in ("mean", "sum", "none"):
        raise KaelValueError(
            f"cross_entropy: reduction must be 'mean', 'sum' or 'none', got {reduction!r}"
        )
    if logits.ndim > 2:
        logits = movedim(logits, 1, -1)
    losses = cross_entropy_losses(logits, targets)
    return losses if reduction == "none" else (mean if reduction == "mean" else sum)(losses)
