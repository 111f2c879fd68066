"""Functions with planted faults, and innocent ones beside them, that a YAML formula cannot hold."""

import numpy as np

import kael
from kael.autograd import Function, is_grad_enabled


def rule(forward, backward):
    """A function with a hand-written backward(g, *tensors)."""

    class Planted(Function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.save_for_backward(*tensors)
            return forward(*tensors)

        @staticmethod
        def backward(ctx, g):
            returned = backward(g, *ctx.saved_tensors)
            return returned if isinstance(returned, tuple) else (returned,)

    return Planted.apply


def written(g, index, size):
    """Zeros with g written at an index."""
    full = np.zeros(size)
    full[index] = g.numpy()
    return kael.tensor(full)


reciprocal_without_minus = rule(lambda x: 1 / x, lambda g, x: g / (x * x))
half_of_a_square = rule(lambda x: x**2, lambda g, x: g * x)
product_without_transpose = rule(lambda w, x: w @ x, lambda g, w, x: (g[:, None] * x, w @ g))
doubled_and_turned = rule(lambda x: 2 * x, lambda g, x: 2 * g.T)
product_with_own_operand = rule(lambda x, y: x * y, lambda g, x, y: (g * x, g * y))
sine_without_upstream = rule(kael.sin, lambda g, x: kael.cos(x))
sine_with_upstream_twice = rule(kael.sin, lambda g, x: g * g * kael.cos(x))
identity_with_abs = rule(lambda x: 1 * x, lambda g, x: kael.abs(g))
identity_with_clip = rule(lambda x: 1 * x, lambda g, x: kael.clamp(g, -0.5, 0.5))
sum_with_the_outputs_shape = rule(lambda x, b: x + b, lambda g, x, b: (g, g))
scale_of_the_first_row = rule(lambda x, b: x * b, lambda g, x, b: (g * b, (g * x)[0]))
slice_written_late = rule(lambda x: x[:3], lambda g, x: written(g, slice(1, 4), 5))
rolled_the_same_way = rule(
    lambda x: kael.roll(x, 1, 0) ** 2, lambda g, x: 2 * g * kael.roll(x, 1, 0)
)
half_of_a_product_rule = rule(lambda x: x * kael.tanh(x), lambda g, x: g * kael.tanh(x))
residual_counted_twice = rule(lambda x: x + kael.sin(x), lambda g, x: g * (2 + kael.cos(x)))
relu_without_mask = rule(kael.relu, lambda g, x: g)
x_exp_x_guarded = rule(
    lambda x: x * kael.exp(x),
    lambda g, x: kael.where(x == 0, 0 * g, g * (1 + x) * kael.exp(x)),
)
maximum_to_all = rule(lambda x: x.max(), lambda g, x: g * (x == x.max()).to(kael.float64))
gathered_with_one_write = rule(
    lambda x: x[[0, 2, 2, 3, 4]] * 1.0,
    lambda g, x: written(g, [0, 2, 2, 3, 4], 5) + written(g[:1] * 0, [1], 5),
)
gradient_without_a_dim = rule(lambda x: x * 2, lambda g, x: (2 * g).sum(dim=1))
softmax_by_elements = rule(
    lambda x: kael.softmax(x, 0), lambda g, x: g * kael.softmax(x, 0) * (1 - kael.softmax(x, 0))
)
_noise = np.random.default_rng(5)
_mask = kael.tensor([2.0, 0.0, 2.0, 2.0])


def detached(x):
    """No history at all."""
    return kael.sin(x.detach()) + 0 * x


def through_numpy(x):
    """No history either."""
    return 0 * x + kael.tensor(np.sin(x.numpy()))


def one_use_detached(x):
    """Half of the history."""
    return x * kael.sin(x).detach()


def dropout(x):
    """A new mask in every call."""
    return x * kael.tensor((_noise.random(4) > 0.5) * 2.0)


def fixed_dropout(x):
    """One mask."""
    return x * _mask


def writes_into_its_input(x):
    """Not what it is given afterwards."""
    with kael.no_grad():
        x.add_(1e-3)
    return 2 * x


def writes_into_a_copy(x):
    """What it is given stays."""
    y = kael.tensor(x.numpy())
    y.add_(1e-3)
    return 2 * x + y - y


def asks_for_the_mode(x):
    """Another value while it is recorded."""
    return 2 * x if is_grad_enabled() else 2 * x + 1e-3


def asks_and_does_not_care(x):
    """One value."""
    return 2 * x if is_grad_enabled() else x + x
