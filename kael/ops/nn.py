"""Operations of neural networks: softmax, cross entropy, standardize, convolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from kael import kernels, shapes
from kael.errors import KaelValueError
from kael.ops.arguments import Arguments, one_dim, require_floating, require_integers, shift_dim
from kael.ops.declare import Operation
from kael.ops.samples import Sample, normal
from kael.tensors import Tensor

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
