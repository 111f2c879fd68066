"""Backward functions that are wrong, each in a way somebody has been wrong, and hard right ones.

`WRONG` pairs a function with the code that names its fault (None: no code is due). `RIGHT` are
correct but hard: kinks, ties, extreme scales, cancellation, edges of domains, branches.
"""

from typing import Any, NamedTuple

import numpy as np

import kael
from kael.autograd import Function, sum_to_shape


class Mutant(NamedTuple):
    """A wrong function, its inputs, and what a diagnosis has to call it."""

    name: str
    function: Any
    inputs: tuple[Any, ...]
    code: str | None


class Right(NamedTuple):
    """A right function that a careless checker calls wrong."""

    name: str
    function: Any
    inputs: tuple[Any, ...]


def rule(forward, backward):
    """A function with a hand-written backward(g, *tensors) that returns one gradient an input."""

    class Handwritten(Function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.save_for_backward(*tensors)
            return forward(*tensors)

        @staticmethod
        def backward(ctx, g):
            returned = backward(g, *ctx.saved_tensors)
            return returned if isinstance(returned, tuple) else (returned,)

    return Handwritten.apply


def drawn(*shape, seed=0, low=0.3, high=1.9, signs=True):
    """Numbers of both signs, none of them small or round."""
    rng = np.random.default_rng([seed, *shape])
    values = rng.uniform(low, high, shape)
    return values * rng.choice((-1.0, 1.0), shape) if signs else values


V = drawn(6)
P = drawn(6, signs=False)
M = drawn(3, 3, seed=1)
N = drawn(3, 4, seed=2)
where, sin, cos, exp, tanh = kael.where, kael.sin, kael.cos, kael.exp, kael.tanh


def put(g, index, shape):
    """Zeros of a shape with g written at an index."""
    full = np.zeros(shape)
    full[index] = g.numpy()
    return kael.tensor(full)


def scaled_at(g, index, factor):
    """A gradient with one entry scaled."""
    wrong = g.numpy().copy()
    wrong[index] *= factor
    return kael.tensor(wrong)


def cast(mask):
    """A mask as numbers."""
    return mask.to(kael.float64)


def sinc(x):
    """sin(x) / x, whose value at 0 is 1."""
    return where(x == 0, 1.0, sin(x) / where(x == 0, 1.0, x))


SIGN = [
    ("cos without its minus", rule(cos, lambda g, x: g * sin(x)), (V,)),
    ("reciprocal", rule(lambda x: 1 / x, lambda g, x: g / (x * x)), (V,)),
    ("exp of minus", rule(lambda x: exp(-x), lambda g, x: g * exp(-x)), (V,)),
    ("second of a difference", rule(lambda x, y: x - y, lambda g, x, y: (g, g)), (V, P)),
    ("quotient", rule(lambda x, y: x / y, lambda g, x, y: (g / y, g * x / (y * y))), (V, P)),
    ("negation of a scalar", rule(lambda x: -x, lambda g, x: g), (0.7,)),
    (
        "target minus prediction",
        rule(lambda p: ((p - 0.5) ** 2).sum(), lambda g, p: g * (1 - 2 * p)),
        (V,),
    ),
    (
        "one term of a product rule",
        rule(lambda x: x * cos(x), lambda g, x: g * (cos(x) + x * sin(x))),
        (V,),
    ),
    ("acos", rule(kael.acos, lambda g, x: g * (1 - x * x) ** -0.5), (V / 3,)),
]
FACTOR = [
    ("square without its 2", rule(lambda x: x**2, lambda g, x: g * x), (V,)),
    ("half a square with a 2", rule(lambda x: x**2 / 2, lambda g, x: g * 2 * x), (V,)),
    ("mean taken for a sum", rule(lambda x: x.mean(), lambda g, x: g * kael.ones_like(x)), (V,)),
    ("sum taken for a mean", rule(lambda x: x.sum(), lambda g, x: g * kael.ones_like(x) / 6), (V,)),
    ("inner derivative", rule(lambda x: sin(3 * x), lambda g, x: g * cos(3 * x)), (V,)),
    ("log2 taken for log", rule(kael.log2, lambda g, x: g / x), (P,)),
    ("rounded pi", rule(lambda x: x * np.pi, lambda g, x: g * 3.1), (V,)),
    ("cube", rule(lambda x: x**3, lambda g, x: g * 2 * x**2), (V,)),
    (
        "variance with n",
        rule(lambda x: ((x - x.mean()) ** 2).sum() / 5, lambda g, x: g * 2 * (x - x.mean()) / 6),
        (V,),
    ),
    ("sqrt without half", rule(kael.sqrt, lambda g, x: g / kael.sqrt(x)), (P,)),
    ("a scalar", rule(lambda x: x**2, lambda g, x: g * x), (1.3,)),
    ("two percent", rule(tanh, lambda g, x: g * 1.02 * (1 - tanh(x) ** 2)), (V,)),
]
ZERO = [
    ("detached", lambda x: tanh(x.detach()) + 0 * x, (V,)),
    ("through numpy", lambda x: kael.tensor(np.tanh(x.numpy())) * 2 + 0 * x, (V,)),
    ("returns zeros", rule(lambda x, y: x * y, lambda g, x, y: (g * y, 0 * g)), (V, P)),
    ("returns None", rule(lambda x, y: x * y, lambda g, x, y: (g * y, None)), (V, P)),
    (
        "a parameter left out",
        rule(lambda x, w: sin(x) * w, lambda g, x, w: (g * cos(x) * w, None)),
        (V, 0.4),
    ),
    ("behind no_grad", lambda x: kael.no_grad(lambda: exp(x))() + 0 * x, (V,)),
]
TRANSPOSED = [
    ("gradient of a square matrix", rule(lambda x: x.T, lambda g, x: g), (M,)),
    (
        "matrix vector",
        rule(lambda w, x: w @ x, lambda g, w, x: (g[:, None] * x, w @ g)),
        (M, drawn(3, seed=5)),
    ),
    (
        "matrix product, left",
        rule(lambda a, b: a @ b, lambda g, a, b: (g @ b, a.T @ g)),
        (M, drawn(3, 3, seed=6)),
    ),
    (
        "weights of a layer",
        rule(lambda w, x: x @ w, lambda g, w, x: ((x.T @ g).T, g @ w.T)),
        (M, drawn(4, 3, seed=7)),
    ),
    ("shape turned over", rule(lambda x: x * 2, lambda g, x: 2 * g.T), (N,)),
    (
        "row instead of column",
        rule(lambda w, x: x @ w, lambda g, w, x: (x.T @ g, g @ w)),
        (M, drawn(4, 3, seed=8)),
    ),
]
SWAPPED = [
    ("factors", rule(lambda x, y: x * y, lambda g, x, y: (g * x, g * y)), (V, P)),
    (
        "order of the results",
        rule(lambda x, y: x**2 * y, lambda g, x, y: (g * x**2, g * 2 * x * y)),
        (V, P),
    ),
    ("quotient's parts", rule(lambda x, y: x / y, lambda g, x, y: (-g * x / y**2, g / y)), (V, P)),
    ("both get the first", rule(lambda x, y: x * y, lambda g, x, y: (g * y, g * y)), (V, P)),
]
UPSTREAM = [
    ("ignored", rule(sin, lambda g, x: cos(x)), (V,), "upstream-ignored"),
    (
        "ignored by a scalar",
        rule(lambda x: (x**2).sum(), lambda g, x: 2 * x),
        (V,),
        "upstream-ignored",
    ),
    (
        "ignored by one input",
        rule(lambda x, y: x * y, lambda g, x, y: (g * y, x)),
        (V, P),
        "upstream-ignored",
    ),
    ("squared", rule(sin, lambda g, x: g * g * cos(x)), (V,), "upstream-squared"),
    (
        "squared in a clamp",
        rule(lambda x: kael.clamp(x, -1, 1), lambda g, x: where(kael.abs(x) < 1, g * g, 0 * g)),
        ([0.5],),
        "upstream-squared",
    ),
    ("sign lost", rule(lambda x: x * 1.0, lambda g, x: kael.abs(g)), (V,), "not-linear"),
    ("clipped", rule(lambda x: x * 1.0, lambda g, x: kael.clamp(g, -0.5, 0.5)), (V,), "not-linear"),
    ("divided by", rule(lambda x: x * 1.0, lambda g, x: 1 / g), (V,), "not-linear"),
    ("with a constant", rule(exp, lambda g, x: g * exp(x) + 0.1), (V,), "not-linear"),
    ("normalized", rule(lambda x: 2 * x, lambda g, x: 2 * g / kael.norm(g)), (V,), "not-linear"),
]
NOT_SUMMED = [
    (
        "bias with the output's shape",
        rule(lambda x, b: x + b, lambda g, x, b: (g, g)),
        (N, drawn(4, seed=9)),
    ),
    ("first row of it", rule(lambda x, b: x + b, lambda g, x, b: (g, g[0])), (N, drawn(4, seed=9))),
    (
        "last row of a scale",
        rule(lambda x, s: x * s, lambda g, x, s: (g * s, (g * x)[-1])),
        (N, drawn(4, seed=9)),
    ),
    (
        "a column",
        rule(lambda x, c: x * c, lambda g, x, c: (g * c, (g * x)[:, :1])),
        (N, drawn(3, 1, seed=3)),
    ),
    ("a number", rule(lambda x, a: x * a, lambda g, x, a: (g * a, (g * x)[0])), (V, 0.7)),
]
SHIFTED = [
    ("slice written one early", rule(lambda x: x[1:4], lambda g, x: put(g, slice(0, 3), 6)), (V,)),
    ("slice written one late", rule(lambda x: x[:4], lambda g, x: put(g, slice(1, 5), 6)), (V,)),
    (
        "rolled the same way",
        rule(lambda x: kael.roll(x, 1, 0) * 2, lambda g, x: 2 * kael.roll(g, 1, 0)),
        (drawn(7),),
    ),
    (
        "columns",
        rule(lambda x: x[:, 1:3], lambda g, x: put(g, (slice(None), slice(0, 2)), (3, 4))),
        (N,),
    ),
    (
        "not rolled back",
        rule(lambda x: kael.roll(x, 1, 0) ** 3, lambda g, x: 3 * kael.roll(x, 1, 0) ** 2 * g),
        (V,),
    ),
]
MISSING = [
    ("product rule", rule(lambda x: x * tanh(x), lambda g, x: g * tanh(x)), (V,)),
    (
        "residual left out",
        rule(lambda x: x + sin(x) ** 2, lambda g, x: g * 2 * sin(x) * cos(x)),
        (V,),
    ),
    ("normalization by a constant", rule(lambda x: x / x.sum(), lambda g, x: g / x.sum()), (P,)),
    ("mean held fixed", rule(lambda x: x * exp(-x.mean()), lambda g, x: g * exp(-x.mean())), (V,)),
    ("one use detached", lambda x: x * sin(x).detach(), (V,)),
    ("one use through numpy", lambda x: x + kael.tensor(x.numpy() ** 2), (V,)),
]
VALUES = [
    ("abs as 1", rule(kael.abs, lambda g, x: g), (V,), "only-negative"),
    ("relu without mask", rule(kael.relu, lambda g, x: g), (V,), "only-negative"),
    (
        "leaky slope forgotten",
        rule(lambda x: where(x > 0, x, 0.1 * x), lambda g, x: where(x > 0, g, 0 * g)),
        (V,),
        "only-negative",
    ),
    (
        "square root of a square",
        rule(lambda x: kael.sqrt(x * x), lambda g, x: g),
        (V,),
        "only-negative",
    ),
    (
        "positive slope of the other side",
        rule(lambda x: where(x > 0, x, 0.1 * x), lambda g, x: 0.1 * g),
        (V,),
        "only-positive",
    ),
    (
        "sinc guarded",
        rule(
            lambda x: (1 + x) * sinc(x),
            lambda g, x: where(
                x == 0, 0 * g, g * (sinc(x) + (1 + x) * (cos(x) - sinc(x)) / where(x == 0, 1, x))
            ),
        ),
        ([0.0, 0.5, 1.2],),
        "only-zero",
    ),
    (
        "expm1 over x guarded",
        rule(lambda x: x * exp(x), lambda g, x: where(x == 0, 0 * g, g * (1 + x) * exp(x))),
        ([0.0, 0.7, -1.1],),
        "only-zero",
    ),
    (
        "product by division",
        rule(
            lambda x: x.prod(),
            lambda g, x: where(x == 0, 0 * x, g * x.prod() / where(x == 0, 1, x)),
        ),
        ([0.0, 2.0, 3.0],),
        "only-zero",
    ),
    (
        "maximum to all of the tied",
        rule(lambda x: x.max(), lambda g, x: g * cast(x == x.max())),
        ([2.0, 1.0, 2.0, 2.0],),
        "only-tied",
    ),
    (
        "maximum to all, two tied",
        rule(lambda x: x.max(), lambda g, x: g * cast(x == x.max())),
        ([1.0, 1.0],),
        "only-tied",
    ),
    (
        "minimum to all of the tied",
        rule(lambda x: x.min(), lambda g, x: g * cast(x == x.min())),
        ([1.0, 3.0, 1.0],),
        "only-tied",
    ),
    (
        "saturated too early",
        rule(
            lambda x: x + x**3 / 10,
            lambda g, x: where(kael.abs(x) < 2.5, g * (1 + 0.3 * x**2), 0 * g),
        ),
        ([0.5, -1.0, 3.0, -4.0, 1.5, 2.9],),
        "only-large",
    ),
    (
        "series cut off",
        rule(sin, lambda g, x: where(kael.abs(x) < 2, g * cos(x), g)),
        ([0.5, -1.2, 2.5, -4.0],),
        "only-large",
    ),
    (
        "abs outside of its slopes",
        rule(kael.abs, lambda g, x: where(x == 0, 1.5 * g, g * kael.sign(x))),
        ([0.0, 1.0, -2.0],),
        "at-kink",
    ),
    (
        "softplus of kinked parts",
        lambda x: kael.relu(x) + kael.log(1 + exp(-kael.abs(x))),
        (0.0,),
        "at-kink",
    ),
    (
        "relu at its kink",
        rule(kael.relu, lambda g, x: where(x == 0, -g, where(x > 0, g, 0 * g))),
        ([0.0, 1.0, -1.0],),
        "at-kink",
    ),
]
FEW = [
    (
        "one entry of a matrix",
        rule(lambda x: x * 2, lambda g, x: scaled_at(2 * g, (1, 2), 1.01)),
        (N,),
    ),
    (
        "the last of a row",
        rule(tanh, lambda g, x: scaled_at(g * (1 - tanh(x) ** 2), -1, 0)),
        (drawn(9),),
    ),
    (
        "a border",
        rule(lambda x: x**2, lambda g, x: scaled_at(2 * g * x, (0, 0), 2)),
        (drawn(4, 4),),
    ),
    (
        "an index that occurs twice",
        rule(lambda x: x[[0, 2, 2, 3, 4, 5]], lambda g, x: put(g, [0, 2, 2, 3, 4, 5], 6)),
        (V,),
    ),
    ("3 of 400", rule(sin, lambda g, x: scaled_at(g * cos(x), [17, 200, 399], 1.5)), (drawn(400),)),
]
OTHER = [
    ("another function's derivative", rule(tanh, lambda g, x: g * (1 - x * x)), (V,)),
    (
        "two slips at once",
        rule(lambda x: x * sin(x), lambda g, x: g * (2 * sin(x) - x * cos(x) / 3)),
        (V,),
    ),
    ("derivative at another point", rule(exp, lambda g, x: g * exp(x + 0.1 * x)), (V,)),
    ("the value", rule(sin, lambda g, x: g * sin(x)), (V,)),
    (
        "softmax as elementwise",
        rule(
            lambda x: kael.softmax(x, 0),
            lambda g, x: g * kael.softmax(x, 0) * (1 - kael.softmax(x, 0)),
        ),
        (V,),
    ),
    (
        "power of base and exponent",
        rule(lambda x: x**x, lambda g, x: g * x * x ** (x - 1) * 1.0 + 0.01 * g * x),
        (P,),
    ),
    ("another exponent", rule(lambda x: x**3, lambda g, x: 3 * g * x), (V,)),
]


def _listed(cases, code):
    return [Mutant(f"{code or 'other'}: {name}", f, inputs, code) for name, f, inputs in cases]


WRONG: list[Mutant] = [
    *_listed(SIGN, "sign-flipped"),
    *_listed(FACTOR, "factor"),
    *_listed(ZERO, "zero"),
    *_listed(TRANSPOSED, "transposed"),
    *_listed(SWAPPED, "swapped"),
    *(Mutant(f"{code}: {name}", f, inputs, code) for name, f, inputs, code in UPSTREAM),
    *_listed(NOT_SUMMED, "not-summed"),
    *_listed(SHIFTED, "shifted"),
    *_listed(MISSING, "missing-term"),
    *(Mutant(f"{code}: {name}", f, inputs, code) for name, f, inputs, code in VALUES),
    *_listed(FEW, "few-elements"),
    *_listed(OTHER, None),
]


def scaled_dropout(x):
    """Dropout with a mask that was drawn once."""
    return x * kael.tensor([2.0, 0.0, 2.0, 2.0, 0.0, 2.0])


def branching(x):
    """Python control flow over values."""
    return x[0] ** 2 if x[0].item() > 0 else -x[0]


def newton(x):
    """A root by iteration: sqrt(x)."""
    y = x * 0 + 1.0
    for _ in range(20):
        y = (y + x / y) / 2
    return y


class Round(Function):
    """A straight-through identity with an integer argument beside the tensor."""

    @staticmethod
    def forward(ctx, x, times):
        ctx.times = times
        return x * times

    @staticmethod
    def backward(ctx, g):
        return g * ctx.times, None


IDS = kael.tensor(np.array([0, 2, 2]))
MASK = kael.tensor(np.array([True, False, True, True, False, True]))
RIGHT: list[Right] = [
    # Kinks.
    Right("relu at 0", kael.relu, ([0.0, 1.0, -1.0],)),
    Right("relu beside its kink", kael.relu, (1e-8,)),
    Right("relu just below", kael.relu, (-1e-9,)),
    Right("abs at 0", kael.abs, ([0.0, -2.0],)),
    Right("clamp at both bounds", lambda x: kael.clamp(x, 0, 1), ([0.0, 1.0, 0.5],)),
    Right("clamp near a bound", lambda x: kael.clamp(x, 0, 1), ([1e-7, 1 - 1e-7],)),
    Right("leaky relu at 0", kael.leaky_relu, ([0.0, -1.0],)),
    Right("hardtanh at 1", kael.hardtanh, ([1.0, -1.0, 0.0],)),
    Right("maximum with 0", lambda x: kael.maximum(x, 0.0), ([0.0, 2.0],)),
    Right("hinge at its corner", lambda x: kael.relu(1 - x).sum(), ([1.0, 0.5],)),
    Right("norm at the origin", kael.norm, ([0.0, 0.0, 0.0],)),
    Right("norm squared at the origin", lambda x: kael.norm(x) ** 2, ([0.0, 0.0, 0.0],)),
    Right("l1 at zeros", lambda x: kael.abs(x).sum(), ([0.0, 0.0, 1.0],)),
    Right(
        "huber at its bend",
        lambda x: where(kael.abs(x) < 1, x**2 / 2, kael.abs(x) - 0.5),
        ([1.0, -1.0, 0.2],),
    ),
    Right("x abs x at 0 is smooth", lambda x: x * kael.abs(x), (0.0,)),
    Right("cube at 0", lambda x: x**3, (0.0,)),
    Right("power 1.5 at 0", lambda x: kael.abs(x) ** 1.5, (0.0,)),
    Right("cusp", lambda x: kael.sqrt(kael.abs(x) + 1e-3), (0.0,)),
    # Ties.
    Right("max of three tied", lambda x: x.max(), ([2.0, 2.0, 2.0],)),
    Right("max of two nearly tied", lambda x: x.max(), ([1.0, 1 + 1e-7],)),
    Right("min tied over a dim", lambda x: x.amin(dim=0), ([[1.0, 2.0], [1.0, 3.0]],)),
    Right("maximum of equals", kael.maximum, ([1.0, 2.0], [1.0, 3.0])),
    Right("range of a vector with ties", lambda x: x.max() - x.min(), ([3.0, 1.0, 3.0, 1.0],)),
    Right("sorted values", lambda x: kael.sort(x) * kael.arange(4.0), ([3.0, 1.0, 2.0, -1.0],)),
    Right("median", lambda x: kael.median(x), ([3.0, 1.0, 2.0],)),
    # Scales.
    Right("sin far out", sin, (1e10,)),
    Right("square far out", lambda x: x**2, (1e10,)),
    Right("tiny inputs", lambda x: x**2, ([1e-8, -3e-8],)),
    Right("tiny outputs", lambda x: 1e-8 * sin(x), (V,)),
    Right("a million times", lambda x: 1e6 * tanh(x), (V,)),
    Right("mixed scales", lambda x: (x**2).sum(), ([1e-5, 1.0, 1e5],)),
    Right("gradients of many sizes", exp, ([-20.0, 0.0, 5.0, 12.0],)),
    Right("gradient below the tolerance", lambda x: 1e-9 * x, (V,)),
    Right("norm of the very large", kael.norm, ([1e150, 1e150],)),
    # Cancellation and steepness.
    Right("x + 1e8 - 1e8", lambda x: ((x + 1e8) - 1e8).sum(), (V,)),
    Right("lost to rounding", lambda x: (x + 1e12) - 1e12, (1.0,)),
    Right("1 - cos near 0", lambda x: 1 - cos(x), (1e-4,)),
    Right("softplus of large", kael.softplus, ([30.0, -30.0, 0.0],)),
    Right("log1p near 0", kael.log1p, (1e-9,)),
    Right("steep sigmoid", lambda x: kael.sigmoid(200 * x), ([0.001, -0.02],)),
    Right("fast oscillation", lambda x: sin(300 * x), (V,)),
    Right("steep exponential", lambda x: exp(30 * x), ([0.5, 1.0],)),
    Right("logsumexp of large", lambda x: kael.logsumexp(x, 0), ([1000.0, 1001.0],)),
    Right("standardized", lambda x: (x - x.mean()) / kael.sqrt(x.var() + 1e-5), (V,)),
    Right("sum of a softmax", lambda x: kael.softmax(x, 0).sum(), (V,)),
    # Edges of domains.
    Right("log near 0", kael.log, ([1e-7, 1e-5, 1e-3],)),
    Right("sqrt near 0", kael.sqrt, ([1e-10, 1e-6],)),
    Right("reciprocal near the pole", lambda x: 1 / x, ([1e-6, -1e-5],)),
    Right("acos near 1", kael.acos, ([0.9999999, -0.99999],)),
    Right("atanh near 1", kael.atanh, (0.99999,)),
    Right("entropy near 0", lambda x: -(x * kael.log(x)).sum(), ([1e-6, 0.5, 0.999999],)),
    Right("power of a small base", lambda x: x**0.3, ([1e-5, 0.2],)),
    Right("log2 of large", kael.log2, ([1e9, 1e-9],)),
    # Branches and control flow.
    Right(
        "where with a masked log",
        lambda x: where(x > 0, kael.log(where(x > 0, x, 1.0)), x),
        ([-1.0, 2.0, 3.0],),
    ),
    Right("control flow", branching, ([0.7, 1.0],)),
    Right("other side of it", branching, ([-0.7, 1.0],)),
    Right("iteration", newton, ([2.0, 5.0],)),
    Right("periodic", lambda x: kael.sin(x) * kael.cos(2 * x), (V,)),
    Right("piecewise polynomial", lambda x: where(x < 0, x**3, x**2), ([0.0, -1.0, 1.0],)),
    Right("fixed mask", scaled_dropout, (V,)),
    # Outputs that are not scalars, arguments that are not differentiable.
    Right("softmax", lambda x: kael.softmax(x, 1), (N,)),
    Right("log softmax", lambda x: kael.log_softmax(x, 0), (N,)),
    Right("matrix product", lambda a, b: a @ b, (M, N)),
    Right("outer product", lambda x, y: x[:, None] * y, (V, drawn(4))),
    Right("gathered rows", lambda x: x[IDS] ** 2, (N,)),
    Right("masked", lambda x: x[MASK] ** 3, (V,)),
    Right("cumulative sum", lambda x: kael.cumsum(x, 0) ** 2, (V,)),
    Right("cumulative product with a zero", lambda x: kael.cumprod(x, 0), ([1.0, 0.0, 2.0, 3.0],)),
    Right("product with zeros", lambda x: x.prod(), ([0.0, 2.0, 0.0, 3.0],)),
    Right("broadcast of all kinds", lambda x, y: x * y + y, (N, drawn(4, seed=4))),
    Right("expanded and summed", lambda x: x[:, None] + x, (V,)),
    Right("norms of rows", lambda x: kael.norm(x, dim=1), (N,)),
    Right("determinant", kael.det, (M,)),
    Right("inverse", kael.inv, (M + 2 * np.eye(3),)),
    Right("concatenation of itself", lambda x: kael.cat([x, x * 2, x]), (V,)),
    Right("an integer beside the tensor", lambda x: Round.apply(x, 3), (V,)),
    Right(
        "hand-written with summed bias",
        rule(lambda x, b: x + b, lambda g, x, b: (g, sum_to_shape(g, b.shape))),
        (N, drawn(4)),
    ),
    Right("hand-written square", rule(lambda x: x * x, lambda g, x: g * 2 * x), (V,)),
    Right("an input that does not matter", lambda x, y: sin(x) + 0 * y, (V, P)),
    Right("an input that is not used", lambda x, y: sin(x), (V, P)),
    Right("a view of a view", lambda x: x.T[1:, :2].reshape(-1) ** 2, (N,)),
    Right("500 entries", lambda x: tanh(x) * kael.cumsum(x, 0), (drawn(500),)),
]
