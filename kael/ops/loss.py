"""Losses: elementwise formulas with a reduction, and the negative log likelihood of classes.

Cross entropy of logits is in `nn.py`. In the formulas `g` is the upstream gradient of each element:
what arrives for reduction "none" and "sum", and divided by the count for "mean"
(`_each`), which for an empty loss is NaN, as its value is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from kael import kernels, shapes
from kael.engine.node import sum_to_shape
from kael.errors import KaelIndexError, KaelTypeError, KaelValueError
from kael.ops.declare import Operation
from kael.ops.samples import Domain, Sample, broadcast_samples, normal, positive, uniform
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

REDUCTIONS = ("none", "mean", "sum")
EACH = 'g is per element: with reduction "mean", the upstream gradient divided by the count'


def _reduce(losses: Array, reduction: str) -> Array:
    if reduction == "none":
        return losses
    total = np.sum(losses)
    # Not np.mean, which warns of an empty loss; its NaN says the same.
    return np.asarray(total / losses.size if reduction == "mean" else total)


def _each(g: Array, reduction: str, *operands: Array) -> Array:
    """The upstream gradient of each element, in the shape of the elementwise loss."""
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    count = math.prod(shape) if reduction == "mean" else 1
    if reduction == "batchmean":
        count = shape[0] if shape else 1
    return np.broadcast_to(g / count if count > 1 else g, shape)


def _alike(g: Array, *operands: Array) -> tuple[Array, ...]:
    """The operands in the dtype the loss was computed in, which is that of `g`."""
    return tuple(operand.astype(g.dtype, copy=False) for operand in operands)


def _known(
    name: str, at: int = 0, also: tuple[str, ...] = ()
) -> Callable[[tuple[Tensor, ...], tuple[Any, ...]], tuple[Any, ...]]:
    """Return the check that argument `at` is a reduction."""

    def prepare(inputs: tuple[Tensor, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        del inputs
        if arguments[at] not in (*REDUCTIONS, *also):
            listed = ", ".join((*REDUCTIONS, *also))
            raise KaelValueError(f"{name}: reduction is one of {listed}, got {arguments[at]!r}")
        return arguments

    return prepare


def _positive(
    name: str, argument: str, *, zero: bool
) -> Callable[[tuple[Tensor, ...], tuple[Any, ...]], tuple[Any, ...]]:
    """Return the check of a reduction and of a width after it."""
    known = _known(name)

    def prepare(inputs: tuple[Tensor, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        width = arguments[1]
        if not isinstance(width, (int, float)):
            raise KaelTypeError(f"{name}: {argument} must be a number, got {width!r}")
        if width < 0 or (width == 0 and not zero):
            limit = "not be negative" if zero else "be positive"
            raise KaelValueError(f"{name}: {argument} must {limit}, got {width}")
        return known(inputs, arguments)

    return prepare


def _settings(*others: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple({"reduction": reduction} for reduction in REDUCTIONS) + others


def elementwise(
    signature: str,
    kernel: Callable[..., Any],
    domains: tuple[Domain, ...],
    *settings: Mapping[str, Any],
    prepare: Any = None,
    convention: str = "",
    **facts: Any,
) -> Operation:
    """Declare a loss of operands that broadcast, with its reduction among the arguments."""
    operands = tuple(facts["vjp"])
    return Operation(
        signature, kernel,
        broadcasts=True, promotes=operands, real=True, strings=("reduction",), family="loss",
        prepare=prepare or _known(signature.partition("(")[0]),
        samples=lambda rng: broadcast_samples(rng, *domains, settings=_settings(*settings)),
        convention=f"{convention}; {EACH}" if convention else EACH,
        **facts,
    )  # fmt: skip


def _mse(input: Array, target: Array, reduction: str) -> Array:
    return _reduce(np.square(input - target), reduction)


def _l1(input: Array, target: Array, reduction: str) -> Array:
    return _reduce(np.abs(input - target), reduction)


def _huber(input: Array, target: Array, reduction: str, delta: float) -> Array:
    size = np.abs(input - target)
    return _reduce(
        np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta)), reduction
    )


def _smooth_l1(input: Array, target: Array, reduction: str, beta: float) -> Array:
    size = np.abs(input - target)
    if beta == 0:
        return _reduce(size, reduction)
    return _reduce(np.where(size < beta, size * size * (0.5 / beta), size - 0.5 * beta), reduction)


def _tie(input: Array, target: Array, _reduction: str, beta: float = 0) -> tuple[Array, ...]:
    return () if beta else (input - target,)


def _mse_gradient(g: Array, input: Array, target: Array, reduction: str) -> Array:
    return np.asarray(_each(g, reduction, input, target) * (2 * (input - target)))


def _l1_gradient(g: Array, input: Array, target: Array, reduction: str) -> Array:
    return kernels.abs_backward(_each(g, reduction, input, target), np.asarray(input - target))


def _huber_gradient(g: Array, input: Array, target: Array, reduction: str, delta: float) -> Array:
    return np.asarray(_each(g, reduction, input, target) * np.clip(input - target, -delta, delta))


def _smooth_l1_gradient(
    g: Array, input: Array, target: Array, reduction: str, beta: float
) -> Array:
    if beta == 0:
        return _l1_gradient(g, input, target, reduction)
    return np.asarray(
        _each(g, reduction, input, target) * (np.clip(input - target, -beta, beta) / beta)
    )


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _times(weight: Array, value: Array) -> Array:
    """weight * value, and 0 where the weight is 0, also beside an infinite value."""
    return np.where(weight == 0, 0.0, weight * value)


def _bce_each(input: Array, target: Array, weight: Array, pos_weight: Array) -> Array:
    positives = pos_weight * _times(target, _softplus(-input))
    return np.asarray(weight * (_times(1 - target, _softplus(input)) + positives))


def _bce(input: Array, target: Array, weight: Array, pos_weight: Array, reduction: str) -> Array:
    return _reduce(_bce_each(input, target, weight, pos_weight), reduction)


def _bce_input(
    g: Array, input: Array, target: Array, weight: Array, pos_weight: Array, reduction: str
) -> Array:
    input, target, weight, pos_weight = _alike(g, input, target, weight, pos_weight)
    # Each sigmoid from its own side: 1 - sigmoid would lose the digits of a small remainder.
    negatives = (1 - target) * kernels.sigmoid(input)
    slope = negatives - pos_weight * target * kernels.sigmoid(np.asarray(-input))
    return np.asarray(_each(g, reduction, input, target, weight, pos_weight) * weight * slope)


def _bce_target(
    g: Array, input: Array, target: Array, weight: Array, pos_weight: Array, reduction: str
) -> Array:
    input, target, weight, pos_weight = _alike(g, input, target, weight, pos_weight)
    slope = pos_weight * _softplus(-input) - _softplus(input)
    return np.asarray(_each(g, reduction, input, target, weight, pos_weight) * weight * slope)


def _bce_weight(
    g: Array, input: Array, target: Array, weight: Array, pos_weight: Array, reduction: str
) -> Array:
    input, target, weight, pos_weight = _alike(g, input, target, weight, pos_weight)
    each = _bce_each(input, target, np.ones((), input.dtype), pos_weight)
    return np.asarray(_each(g, reduction, input, target, weight, pos_weight) * each)


def _bce_pos_weight(
    g: Array, input: Array, target: Array, weight: Array, pos_weight: Array, reduction: str
) -> Array:
    input, target, weight, pos_weight = _alike(g, input, target, weight, pos_weight)
    slope = _times(target, _softplus(-input))
    return np.asarray(_each(g, reduction, input, target, weight, pos_weight) * weight * slope)


def _kl_each(input: Array, target: Array, log_target: bool) -> Array:
    if log_target:
        return np.asarray(np.exp(target) * (target - input))
    logs = np.log(np.where(target == 0, 1.0, target))
    return np.asarray(_times(target, logs - input))


def _kl(input: Array, target: Array, reduction: str, log_target: bool) -> Array:
    each = _kl_each(input, target, log_target)
    if reduction == "batchmean":
        return np.asarray(np.sum(each) / (each.shape[0] if each.ndim else 1))
    return _reduce(each, reduction)


def _kl_input(g: Array, input: Array, target: Array, reduction: str, log_target: bool) -> Array:
    input, target = _alike(g, input, target)
    probability = np.exp(target) if log_target else target
    return np.asarray(_each(g, reduction, input, target) * -probability)


def _kl_target(g: Array, input: Array, target: Array, reduction: str, log_target: bool) -> Array:
    input, target = _alike(g, input, target)
    logs = target if log_target else np.log(target)
    slope = (np.exp(target) if log_target else 1) * (logs - input + 1)
    return np.asarray(_each(g, reduction, input, target) * slope)


def _classes(inputs: tuple[Tensor, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check the operands of nll_loss and name what does not fit."""
    input, target, weight = inputs
    if target.dtype.kind not in "iu":
        raise KaelTypeError(f"nll_loss: target holds class indices, got {target.dtype}")
    if input.ndim == 0:
        raise KaelValueError("nll_loss: input has a dim of classes, got a 0-d tensor")
    at = min(1, input.ndim - 1)
    if input.shape[:at] + input.shape[at + 1 :] != target.shape:
        raise KaelValueError(
            f"nll_loss: input {shapes.text(input.shape)} and target {shapes.text(target.shape)} do "
            "not match\ninput is [C], [N, C] or [N, C, ...], target the same without C"
        )
    classes = input.shape[at]
    if weight.ndim and weight.shape != (classes,):
        raise KaelValueError(
            f"nll_loss: weight {shapes.text(weight.shape)} must have one entry a class, {classes}"
        )
    ignored = shapes.as_index(arguments[0], "nll_loss", "ignore_index")
    values = target._array[target._array != ignored]
    wrong = values[(values < 0) | (values >= classes)]
    if wrong.size:
        raise KaelIndexError(f"nll_loss: target {wrong[0]} is out of range for {classes} classes")
    return _known("nll_loss", at=1)(inputs, (ignored, arguments[1]))


def _nll_parts(
    shape: tuple[int, ...], target: Array, weight: Array, ignore_index: int
) -> tuple[int, Array, Array]:
    """The dim of classes, the target with that dim, and the weight of each element."""
    at = min(1, len(shape) - 1)
    counted = target != ignore_index
    classes = np.where(counted, target, 0)
    each = weight[classes] if weight.ndim else np.broadcast_to(weight, target.shape)
    return at, np.expand_dims(classes, at), np.where(counted, each, 0.0)


def _picked(input: Array, classes: Array, at: int) -> Array:
    if input.shape[at] == 0:
        return np.zeros(input.shape[:at] + input.shape[at + 1 :], input.dtype)
    return np.take_along_axis(input, classes, at).squeeze(at)


def _nll(input: Array, target: Array, weight: Array, ignore_index: int, reduction: str) -> Array:
    at, classes, each = _nll_parts(input.shape, target, weight, ignore_index)
    losses = _times(each, -_picked(input, classes, at))
    if reduction == "none":
        return losses
    total = np.sum(losses)
    return np.asarray(total / np.sum(each) if reduction == "mean" else total)


def _nll_input(
    g: Array,
    target: Array,
    weight: Array,
    input_shape: tuple[int, ...],
    input_dtype: Any,
    ignore_index: int,
    reduction: str,
) -> Array:
    at, classes, each = _nll_parts(input_shape, target, weight, ignore_index)
    upstream = g / np.sum(each) if reduction == "mean" else g
    gradient = np.zeros(input_shape, input_dtype)
    if gradient.size:
        slopes = np.where(each == 0, 0.0, -(upstream * each)).astype(input_dtype, copy=False)
        np.put_along_axis(gradient, classes, np.expand_dims(slopes, at), at)
    return gradient


def _nll_weight(
    g: Array,
    input: Array,
    target: Array,
    weight: Array,
    out: Array,
    ignore_index: int,
    reduction: str,
) -> Array:
    at, classes, each = _nll_parts(input.shape, target, weight, ignore_index)
    losses = -_picked(input, classes, at)
    mean = reduction == "mean"
    slopes = (losses - out) * (g / np.sum(each)) if mean else losses * g
    slopes = np.where(target == ignore_index, 0.0, slopes)
    gradient = np.zeros(input.shape[at], input.dtype)
    np.add.at(gradient, classes.ravel(), slopes.ravel())
    return sum_to_shape(gradient, weight.shape).astype(weight.dtype, copy=False)


def _nll_samples(rng: np.random.Generator) -> Iterator[Sample]:
    for arguments in _settings({"ignore_index": 1}):
        empty = () if arguments.get("reduction", "mean") == "mean" else ((0, 3),)
        for shape in ((4,), (3, 4), (2, 3, 2), *empty):
            classes = shape[min(1, len(shape) - 1)]
            without = shape[:1] + shape[2:] if len(shape) > 1 else ()
            target = np.asarray(rng.integers(0, classes, without))
            if "ignore_index" in arguments and target.size:
                target.flat[0] = 0  # not every element is ignored
            weight = positive(rng, (classes,))
            yield Sample((normal(rng, shape), target, weight), arguments)
    yield Sample((normal(rng, (3, 4)), np.array([0, 3, 3]), np.array(1.0)), {})


mse_loss = elementwise(
    "mse_loss(input, target, reduction='mean')", _mse, (normal, normal),
    vjp={
        "input": _mse_gradient,
        "target": lambda g, input, target, reduction: -_mse_gradient(g, input, target, reduction),
    },
    text={"input": "g * 2 * (input - target)", "target": "-g * 2 * (input - target)"},
    analytic=True,
    doc="Return the squared error, (input - target)**2.",
)  # fmt: skip
l1_loss = elementwise(
    "l1_loss(input, target, reduction='mean')", _l1, (uniform(-2, -0.2), uniform(0.2, 2)),
    vjp={
        "input": _l1_gradient,
        "target": lambda g, input, target, reduction: -_l1_gradient(g, input, target, reduction),
    },
    text={"input": "g * sign(input - target)", "target": "-g * sign(input - target)"},
    kink=_tie, at_kink="0",
    doc="Return the absolute error, abs(input - target).",
)  # fmt: skip
huber_loss = elementwise(
    "huber_loss(input, target, reduction='mean', delta=1.0)", _huber, (normal, normal),
    {"delta": 0.4},
    vjp={
        "input": _huber_gradient,
        "target": lambda g, input, target, reduction, delta: -_huber_gradient(
            g, input, target, reduction, delta
        ),
    },
    text={
        "input": "g * clamp(input - target, -delta, delta)",
        "target": "-g * clamp(input - target, -delta, delta)",
    },
    prepare=_positive("huber_loss", "delta", zero=False),
    doc="Return half the squared error up to delta, and delta * (error - delta / 2) beyond.",
)  # fmt: skip
smooth_l1_loss = elementwise(
    "smooth_l1_loss(input, target, reduction='mean', beta=1.0)", _smooth_l1, (normal, normal),
    {"beta": 0.4},
    vjp={
        "input": _smooth_l1_gradient,
        "target": lambda g, input, target, reduction, beta: -_smooth_l1_gradient(
            g, input, target, reduction, beta
        ),
    },
    text={
        "input": "g * clamp(input - target, -beta, beta) / beta",
        "target": "-g * clamp(input - target, -beta, beta) / beta",
    },
    prepare=_positive("smooth_l1_loss", "beta", zero=True),
    kink=_tie, at_kink="0, where beta is 0",
    doc="Return squared error / (2 * beta) up to beta, and error - beta / 2 beyond.",
)  # fmt: skip
binary_cross_entropy_with_logits = elementwise(
    "binary_cross_entropy_with_logits(input, target, weight=1.0, reduction='mean', pos_weight=1.0)",
    _bce, (normal, uniform(0.1, 0.9), positive, positive),
    vjp={
        "input": _bce_input, "target": _bce_target,
        "weight": _bce_weight, "pos_weight": _bce_pos_weight,
    },
    text={
        "input": "g * weight * ((1 - target) * sigmoid(input)"
                 " - pos_weight * target * sigmoid(-input))",
        "target": "g * weight * (pos_weight * softplus(-input) - softplus(input))",
        "weight": "g * ((1 - target) * softplus(input) + pos_weight * target * softplus(-input))",
        "pos_weight": "g * weight * target * softplus(-input)",
    },
    convention="an infinite logit on the target's side costs 0",
    doc="Return the cross entropy of sigmoid(input) and target, computed from the logits.",
)  # fmt: skip
kl_div = elementwise(
    "kl_div(input, target, reduction='mean', log_target=False)", _kl,
    (normal, uniform(0.1, 0.9)),
    {"reduction": "batchmean"}, {"log_target": True},
    vjp={"input": _kl_input, "target": _kl_target},
    text={
        "input": "-g * where(log_target, exp(target), target)",
        "target": "where(log_target, g * exp(target) * (target - input + 1), "
                  "g * (log(target) + 1 - input))",
    },
    prepare=_known("kl_div", also=("batchmean",)),
    convention="0 * log(0) is 0; the gradient of target is -inf there",
    doc="Return target * (log(target) - input), where input is a logarithm of probabilities.",
)  # fmt: skip
nll_loss = Operation(
    "nll_loss(input, target, weight=1.0, ignore_index=-100, reduction='mean')", _nll,
    vjp={"input": _nll_input, "target": None, "weight": _nll_weight},
    text={
        "input": "-g * weight[target] at the target's class, 0 elsewhere; mean: / sum of weights",
        "weight": "-g * input[target], summed by class; mean: (that - g * out) / sum of weights",
    },
    prose=True, prepare=_classes, promotes=("input", "weight"), strings=("reduction",),
    samples=_nll_samples, family="loss",
    convention="targets equal to ignore_index count for nothing; a mean of none is NaN",
    doc="Return -weight[target] * input[target] of each row; the mean divides by the weights.",
)  # fmt: skip
