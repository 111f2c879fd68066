"""Operations of neural networks: softmax, cross entropy, standardize, layers made of them.

Convolutions are in `convolve.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kael import kernels, shapes
from kael.errors import KaelValueError
from kael.kernels import small
from kael.ops.arguments import Arguments, one_dim, require_floating, require_integers, shift_dim
from kael.ops.declare import Operation, composite
from kael.ops.linalg import matmul
from kael.ops.math import add, mul
from kael.ops.reduce import mean, sum
from kael.ops.samples import Sample, normal
from kael.ops.view import movedim, transpose
from kael.tensors import Tensor, as_array

Array = np.ndarray[Any, Any]


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
            f"{shapes.text(targets.shape)} do not match\ntargets hold one class for each row "
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
    prepare=one_dim("softmax", floating=True), small=small.softmax,
    batch=shift_dim(), analytic=True,
    samples=_row_samples, family="nn", convention="a slice that is all -inf is NaN",
    doc="Return exp(x) / sum(exp(x)) along a dim, shifted by the maximum.",
)  # fmt: skip
log_softmax = Operation(
    "log_softmax(x, dim)", kernels.log_softmax,
    vjp={"x": lambda g, out, dim: kernels.log_softmax_backward(g, out, dim)},
    text={"x": "g - exp(out) * sum(g, dim, True)"},
    prepare=one_dim("log_softmax", floating=True), small=small.log_softmax,
    batch=shift_dim(), analytic=True,
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


def _as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(as_array(x))


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
    if not isinstance(reduction, str) or reduction not in ("mean", "sum", "none"):
        raise KaelValueError(
            f"cross_entropy: reduction must be 'mean', 'sum' or 'none', got {reduction!r}"
        )
    if logits.ndim > 2:
        logits = movedim(logits, 1, -1)
    losses = cross_entropy_losses(logits, targets)
    return losses if reduction == "none" else (mean if reduction == "mean" else sum)(losses)
