"""Backward formulas written by hand as `Function`s, and Python control flow, under check."""

import kael


class LogAddExp(kael.autograd.Function):
    """log(exp(a) + exp(b)), shifted by the larger of the two so that nothing overflows."""

    @staticmethod
    def forward(ctx, a, b):
        top = kael.maximum(a, b)
        y = top + kael.log(kael.exp(a - top) + kael.exp(b - top))
        ctx.save_for_backward(a, b, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        a, b, y = ctx.saved_tensors
        return grad * kael.exp(a - y), grad * kael.exp(b - y)


class StraightLine(kael.autograd.Function):
    """x * w + b in one node, with a plain number that gets no gradient: scale."""

    @staticmethod
    def forward(ctx, x, w, b, scale):
        ctx.save_for_backward(x, w)
        ctx.scale = scale
        return scale * (x * w + b)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        grad = grad * ctx.scale
        return grad * w, grad * x, grad, None


@kael.spec(
    a=[0.5, -1.0, 3.0],
    b=[1.5, -1.0, -2.0],
    upstream="ones",
    tags=["function"],
    description="The two slopes are the softmax of (a, b), so they sum to 1, at a tie 1/2 each.",
    cases={"huge": {"a": [900.0, -900.0, 0.0], "b": [899.0, -901.0, 0.0]}},
)
def log_add_exp(a, b):
    return LogAddExp.apply(a, b)


@kael.spec(
    x=kael.randn(4),
    w=kael.randn(4),
    b=kael.randn(4),
    tags=["function"],
    description="One gradient an argument, None for the one that is not a tensor.",
)
def straight_line(x, w, b):
    return StraightLine.apply(x, w, b, 2.5).sum()


@kael.spec(
    x=[0.3, -0.7, 1.1],
    steps=kael.Input(value=5, dtype="int64"),
    tags=["loop"],
    description="Python decides how often the map is applied; the graph records what ran.",
)
def logistic_map(x, steps):
    y = kael.sigmoid(x)
    for _ in range(int(steps)):
        y = 3.2 * y * (1 - y)
    return y.sum()
