"""Random composed functions of one and two inputs, the same for a seed everywhere.

Scales from 1e-8 to 1e8 meet in one formula, and what turns over fast lies under other operations:
what a checker of gradients finds hardest to tell from a fault.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import kael
from kael.autograd import Function

ONE = (
    kael.sin,
    kael.cos,
    kael.tanh,
    kael.exp,
    kael.sigmoid,
    kael.softplus,
    kael.abs,
    kael.relu,
    kael.atan,
    kael.gelu,
    lambda x: x**2,
    lambda x: x**3,
    lambda x: kael.log(kael.abs(x) + 0.1),
    lambda x: kael.sqrt(x * x + 0.1),
    lambda x: kael.exp(-x * x),
    lambda x: 1 / (1 + x * x),
    lambda x: kael.cumsum(x, 0),
    lambda x: kael.softmax(x, 0),
    lambda x: kael.logsumexp(x, 0) + x,
    lambda x: x - x.mean(),
    lambda x: x - x.max(),
)
TWO = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / (1 + b * b),
    lambda a, b: kael.hypot(a, b + 0.1),
    kael.maximum,
)


@dataclass
class Composed:
    """A function, and values of its inputs at which its gradient is looked at."""

    function: Callable
    values: list

    def leaves(self):
        return [kael.tensor(value, requires_grad=True) for value in self.values]


def composed(seed):
    rng = np.random.default_rng([seed, 5])
    wide = rng.choice([0, 0.3, 0.8])
    count = int(rng.integers(1, 3))
    inner = _draw(rng, count, int(rng.integers(2, 6)), wide)
    scale = float(rng.choice([1, 1, 1e-3, 1e3, 1e-6, 1e6])) if wide else 1.0
    size = int(rng.choice([1, 2, 3, 5]))
    values = [rng.standard_normal(size) * scale for _ in range(count)]
    last = (lambda y: y.sum(), lambda y: y.mean(), lambda y: y)[rng.integers(3)]
    return Composed(lambda *inputs: last(inner(inputs)), values)


def _draw(rng, count, depth, wide):
    if depth == 0 or rng.random() < 0.12:
        which = int(rng.integers(count))
        return lambda inputs: inputs[which]
    kind = rng.random()
    first = _draw(rng, count, depth - 1, wide)
    if kind < 0.26:
        size = 10.0 ** rng.integers(-8, 9) if rng.random() < wide else 10.0 ** rng.integers(-1, 2)
        number = float(np.round(rng.uniform(-9.9, 9.9), 1) * size)
        if kind < 0.18:
            return lambda inputs: number * first(inputs)
        return lambda inputs: number + first(inputs)
    if kind < 0.62:
        one = ONE[rng.integers(len(ONE))]
        return lambda inputs: one(first(inputs))
    two = TWO[rng.integers(len(TWO))]
    second = _draw(rng, count, depth - 1, wide)
    return lambda inputs: two(first(inputs), second(inputs))


class _Scaled(Function):
    """Its input, whose gradient arrives multiplied by a factor for each entry."""

    @staticmethod
    def forward(ctx, x, factors):
        ctx.save_for_backward(factors)
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        (factors,) = ctx.saved_tensors
        return g * factors, None


def planted(one, which, entry, factor):
    """The same function with one entry of its gradient multiplied by a factor."""
    factors = np.ones(one.values[which].shape)
    factors[entry] = factor

    def function(*inputs):
        inputs = list(inputs)
        inputs[which] = _Scaled.apply(inputs[which], kael.tensor(factors))
        return one.function(*inputs)

    return Composed(function, one.values)
