"""Leaves and hand-written backward functions for the checker's tests."""

import kael
from kael.autograd import Function


def leaf(values):
    """A float64 leaf that requires a gradient."""
    return kael.tensor(values, dtype=kael.float64, requires_grad=True)


def made(forward, backward):
    """A function of one tensor with a hand-written backward(x, g)."""

    class Made(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return backward(x, g)

    return Made.apply
