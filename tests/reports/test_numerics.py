# ruff: noqa: E501 (a table reads best with one row a line)
"""Values and gradients at zeros, ties, infinities and the ends of the floating range."""

import math

import numpy as np
import pytest
from doors import INF, NAN, Case, each_door, functions, holds, same, yaml_text

import kael as k
from kael.kernels import only

HALF = math.sqrt(0.5)
THIRD = 1 / 3

# A1: a product with one zero entry. source: tinygrad #17404, drjit #528
PRODUCTS = [
    Case("prod(x)", {"x": [0, 2, 3]}, 0, {"x": [6, 0, 0]}),
    Case("prod(x)", {"x": [2, 0, 4]}, 0, {"x": [0, 8, 0]}),
    Case("prod(x)", {"x": [2, 0, 0]}, 0, {"x": [0, 0, 0]}),
    Case("prod(x, dim=1)", {"x": [[0, 2, 3], [2, 0, 4]]}, [0, 0], {"x": [[6, 0, 0], [0, 8, 0]]}),
    Case("prod(x, dim=0, keepdim=True)", {"x": [[0, 2], [5, 0]]}, [[0, 0]], {"x": [[5, 0], [0, 2]]}),
    Case("cumprod(x, 0)", {"x": [2, 0, 4]}, [2, 0, 0], {"x": [1, 10, 0]}),
    Case("det(x)", {"x": [[0, 2], [3, 4]]}, -6, {"x": [[4, -3], [-2, 0]]}),
    Case("det(x)", {"x": [[0, 0], [3, 4]]}, 0, {"x": [[4, -3], [0, 0]]}),
    Case("det(x)", {"x": [[1, 1, 1], [1, 1, 1], [1, 1, 1]]}, 0, {"x": 0}),
    Case("x[0] * x[1] * x[2]", {"x": [0, 2, 3]}, 0, {"x": [6, 0, 0]}),
]  # fmt: skip

# A2: the norm at the origin. source: pytorch #2421, autograd #151, jax #39792, casadi #3898
ORIGIN = [
    *(
        Case(text, {"x": [0, 0, 0]}, 0, {"x": [0, 0, 0]})
        for text in (
            "norm(x)", "norm(x)**2", "norm(x, 1)", "norm(x, 1.5)", "norm(x, 3)", "norm(x, inf)",
            "norm(x, dim=0)", "std(x)", "std(x)**2", "std(x, correction=0)", "hypot(x[0], x[1])",
        )
    ),
    Case("norm(x, dim=1)", {"x": [[0, 0], [3, 4]]}, [0, 5], {"x": [[0, 0], [0.6, 0.8]]}),
    Case("hypot(x, y)", {"x": [0, 3], "y": [0, 4]}, [0, 5], {"x": [0, 0.6], "y": [0, 0.8]}),
    Case("atan2(x, y)", {"x": [0], "y": [0]}, [0], {"x": [0], "y": [0]}),
    Case("std(x)", {"x": [2, 2]}, 0, {"x": [0, 0]}),
    # An infinite upstream gradient is stopped like every other one.
    Case("sqrt(norm(x))", {"x": [0, 0]}, 0, {"x": [0, 0]}),
    Case("sqrt(norm(x, 1))", {"x": [0, 0]}, 0, {"x": [0, 0]}),
    Case("sqrt(std(x))", {"x": [2, 2]}, 0, {"x": [0, 0]}),
]  # fmt: skip

# A3: sums of squares beyond the range. source: pytorch #193006
ROW = [-4 / math.sqrt(14), -1 / math.sqrt(14), 5 / math.sqrt(14)]  # (1, 2, 4), standardized
SLOPE = np.array([2, -3, 1]) / 7 * 3 / math.sqrt(14)  # under the upstream gradient (1, 0, 0)
UP = [1, 0, 0]
SCALED = [
    Case("norm(x)", {"x": [1e200, 1, 1]}, 1e200, {"x": [1, 1e-200, 1e-200]}),
    Case("norm(x)", {"x": [1e-200, 1e-200]}, 1.4142135623730951e-200, {"x": [HALF, HALF]}),
    Case("norm(x, dim=1)", {"x": [[1e200, 0], [3, 4]]}, [1e200, 5], {"x": [[1, 0], [0.6, 0.8]]}),
    Case("norm(x, 3)", {"x": [1e200, 1e200]}, 2 ** (1 / 3) * 1e200, {"x": 2 ** (-2 / 3)}),
    Case("hypot(x, y)", {"x": [3e200], "y": [4e200]}, [5e200], {"x": [0.6], "y": [0.8]}),
    Case("hypot(x, y)", {"x": [3e-200], "y": [4e-200]}, [5e-200], {"x": [0.6], "y": [0.8]}),
    *(
        Case("std(x)", {"x": [s, 3 * s]}, math.sqrt(2) * s, {"x": [-HALF, HALF]})
        for s in (1e200, 4e307, 1e-200, 1e-300)
    ),
    *(
        Case("standardize(x, 1, eps=0)", {"x": [s, 2 * s, 4 * s]}, ROW, {"x": SLOPE / s}, UP)
        for s in (1e155, 1e200, 4e307, 1e-200)
    ),
    Case("standardize(x, 1)", {"x": [1e200, 2e200, 4e200]}, ROW, {"x": SLOPE / 1e200}, UP),
    Case("layer_norm(x, 3)", {"x": [1e200, 2e200, 4e200]}, ROW, {"x": SLOPE / 1e200}, UP),
    Case("logsumexp(x, dim=0)", {"x": [1e300, 1e300]}, 1e300, {"x": [1, 1]}),
    Case("logsumexp(x, dim=0)", {"x": [1000, 1000]}, 1000 + math.log(2), {"x": [0.5, 0.5]}),
    Case("log_softmax(x, dim=0)[0]", {"x": [1e300, -1e300]}, 0, {"x": [0, 0]}),
    Case("logaddexp(x, y)", {"x": [800], "y": [0]}, [800], {"x": [1], "y": [0]}),
    Case("softplus(x)", {"x": [800, -800]}, [800, 0], {"x": [1, 0]}),
    Case("x / y", {"x": [1e200], "y": [2e200]}, [0.5], {"x": [5e-201], "y": [-2.5e-201]}),
    Case("prod(x)", {"x": [1e200, 1e200, 1e-200]}, INF, {"x": [1, 1, INF]}),
    Case("asinh(x)", {"x": [1e200]}, [math.asinh(1e200)], {"x": [1e-200]}),
]  # fmt: skip

# A4: tied extremes. source: Theano #4568, pytorch #43519, onnxruntime #7217
TIES = [
    Case("max(x)", {"x": [1, 1]}, 1, {"x": [0.5, 0.5]}),
    Case("max(x)", {"x": [2, 2, 2, 1]}, 2, {"x": [THIRD, THIRD, THIRD, 0]}),
    Case("amax(x)", {"x": [2, 2, 2, 1]}, 2, {"x": [THIRD, THIRD, THIRD, 0]}),
    Case("min(x)", {"x": [1, 1, 2]}, 1, {"x": [0.5, 0.5, 0]}),
    Case("amin(x, dim=0)", {"x": [[1, 5], [1, 4]]}, [1, 4], {"x": [[0.5, 0], [0.5, 1]]}),
    Case("max(x, dim=1)", {"x": [[1, 1], [2, 1]]}, [1, 2], {"x": [[0.5, 0.5], [1, 0]]}),
    Case("max(x, dim=0, keepdim=True)", {"x": [[3, 1], [3, 2]]}, [[3, 2]], {"x": [[0.5, 0], [0.5, 1]]}),
    Case("amax(x, dim=(0, 2))", {"x": [[[1, 3]], [[3, 3]]]}, [3], {"x": [[[0, THIRD]], [[THIRD, THIRD]]]}),
    Case("max(x)", {"x": [0.0, -0.0]}, 0, {"x": [0.5, 0.5]}),
    Case("max(x)", {"x": [-INF, -INF]}, -INF, {"x": [0.5, 0.5]}),
    Case("median(x)", {"x": [2, 2, 1, 5, 2]}, 2, {"x": [THIRD, THIRD, 0, 0, THIRD]}),
    Case("norm(x, inf)", {"x": [2, -2, 1]}, 2, {"x": [0.5, -0.5, 0]}),
    # What picks an entry gives it all: the parts still sum to 1.
    Case("sum(sort(x)[-1:])", {"x": [2, 2, 1]}, 2, {"x": [0, 1, 0]}),
    Case("sum(topk(x, 1))", {"x": [2, 2, 1]}, 2, {"x": [1, 0, 0]}),
]  # fmt: skip

# A5: equal operands. source: pytorch #56734, jax #37821
EQUAL = [
    Case("maximum(a, b)", {"a": [1], "b": [1]}, [1], {"a": [0.5], "b": [0.5]}),
    Case("minimum(a, b)", {"a": [1], "b": [1]}, [1], {"a": [0.5], "b": [0.5]}),
    Case("max(a, b)", {"a": [1], "b": [1]}, [1], {"a": [0.5], "b": [0.5]}),
    Case("maximum(x, 0)", {"x": [0, 1]}, [0, 1], {"x": [0.5, 1]}),
    Case("maximum(0, x)", {"x": [0, 1]}, [0, 1], {"x": [0.5, 1]}),
    Case("relu(x)", {"x": [0, 1]}, [0, 1], {"x": [0, 1]}),
    Case("maximum(x, x)", {"x": [1]}, [1], {"x": [1]}),
    Case("maximum(a, b)", {"a": [1, 2], "b": [[1], [1]]}, [[1, 2], [1, 2]], {"a": [1, 2], "b": [[0.5], [0.5]]}),
    Case("abs(x)", {"x": [0.0, -0.0, -2]}, [0, 0, 2], {"x": [0, 0, -1]}),
    Case("leaky_relu(x, 0.25)", {"x": [0]}, [0], {"x": [0.25]}),
]  # fmt: skip

# A6: clipping at its bounds. source: pytorch #7002, pytorch #184574, chainer #5876
CLIPPED = [
    Case("clamp(x, min=0, max=1)", {"x": [0, 1, 0.5, -1, 2]}, [0, 1, 0.5, 0, 1], {"x": [1, 1, 1, 0, 0]}),
    Case("clip(x, 0, 1)", {"x": [0, 1, 0.5, -1, 2]}, [0, 1, 0.5, 0, 1], {"x": [1, 1, 1, 0, 0]}),
    Case("clamp(x, min=0)", {"x": [0, -1, 2]}, [0, 0, 2], {"x": [1, 0, 1]}),
    Case("clamp(x, max=1)", {"x": [1, -1, 2]}, [1, -1, 1], {"x": [1, 1, 0]}),
    Case("relu6(x)", {"x": [0, 6, 3]}, [0, 6, 3], {"x": [0, 0, 1]}),
    Case("hardtanh(x)", {"x": [-1, 1, 0.5]}, [-1, 1, 0.5], {"x": [0, 0, 1]}),
]  # fmt: skip

# A7: a smooth function of kinked parts follows the conventions. source: jax #2107, jax #2140
LOG2 = math.log(2)
SOFTPLUS = [
    Case(f"{part} + log(1 + exp(-abs(x)))", {"x": 0}, LOG2, {"x": slope})
    for part, slope in (("relu(x)", 0), ("maximum(x, 0)", 0.5), ("clamp(x, min=0)", 1))
] + [
    Case("softplus(x)", {"x": 0}, LOG2, {"x": 0.5}),
    Case("-logsigmoid(-x)", {"x": 0}, LOG2, {"x": 0.5}),
]

# A8: an infinite slope in the branch not taken. source: pytorch #108618, jax #5798, casadi #1878
TRAPS = [
    Case("sum(where(x > 2, log(x), 2*x))", {"x": [0, 2, 3]}, 4 + math.log(3), {"x": [NAN, 2, THIRD]}),
    Case("sum(where(x > 2, log(where(x > 2, x, 1)), 2*x))", {"x": [0, 2, 3]}, 4 + math.log(3), {"x": [2, 2, THIRD]}),
    Case("sum(where(x > 0, sqrt(x), 0))", {"x": [0, 4]}, 2, {"x": [NAN, 0.25]}),
    Case("sum(where(x > 0, sqrt(where(x > 0, x, 1)), 0))", {"x": [0, 4]}, 2, {"x": [0, 0.25]}),
    Case("sum(masked_fill(1/x, x == 0, 0))", {"x": [0, 2]}, 0.5, {"x": [NAN, -0.25]}),
]  # fmt: skip

# A9: what passes or stops a gradient selects, it does not multiply. source: jax #23649, jax #15798
PI = math.pi
SELECTED = [
    Case("acos(clamp(x, -1, 1))", {"x": 10}, 0, {"x": 0}),
    Case("acos(clamp(x, -1, 1))", {"x": [10, -10]}, [0, PI], {"x": [0, 0]}),
    Case("acos(clamp(x, max=1))", {"x": 10}, 0, {"x": 0}),
    Case("acos(hardtanh(x))", {"x": 10}, 0, {"x": 0}),
    Case("acos(minimum(x, 1))", {"x": 10}, 0, {"x": 0}),
    Case("acos(where(x > 1, 1, x))", {"x": 10}, 0, {"x": 0}),
    Case("acos(masked_fill(x, x > 1, 1))", {"x": 10}, 0, {"x": 0}),
    *(
        Case(f"sqrt({part})", {"x": [-10, 4]}, [0, 2], {"x": [0, 0.25]})
        for part in (
            "relu(x)", "maximum(x, 0)", "clamp(x, min=0)", "leaky_relu(x, 0)", "relu6(x)",
            "where(x > 0, x, 0)", "masked_fill(x, x < 0, 0)", "elu(x, 0)",
        )
    ),
    Case("sqrt(hardsigmoid(x))", {"x": -10}, 0, {"x": 0}),
    Case("sqrt(hardswish(x))", {"x": -10}, 0, {"x": 0}),
    Case("sqrt(abs(x))", {"x": 0}, 0, {"x": 0}),
    Case("sqrt(max(x) - 4)", {"x": [1, 4]}, 0, {"x": [0, INF]}),
    Case("sqrt(median(x) - 4)", {"x": [1, 4, 5]}, 0, {"x": [0, INF, 0]}),
    Case("sqrt(norm(x, inf) - 4)", {"x": [1, -4]}, 0, {"x": [0, -INF]}),
    Case("sqrt(sort(x)[1] - 4)", {"x": [1, 4]}, 0, {"x": [0, INF]}),
    Case("sqrt(topk(x, 1) - 4)", {"x": [1, 4]}, [0], {"x": [0, INF]}),
    Case("sqrt(triu(x))", {"x": [[1, 1], [4, 1]]}, [[1, 1], [0, 1]], {"x": [[0.5, 0.5], [0, 0.5]]}),
    Case("sqrt(masked_select(x, m))", {"x": [0, 1]}, [1], {"x": [0, 0.5]}, None, {"m": [False, True]}),
    Case("sqrt(gather(x, 0, [1]))", {"x": [0, 1]}, [1], {"x": [0, 0.5]}),
    Case("sqrt(scatter(x, 0, [0], 0))", {"x": [7, 1]}, [0, 1], {"x": [0, 0.5]}),
    Case("sqrt(pad(x, (1, 0)))", {"x": [1]}, [0, 1], {"x": [0.5]}),
]  # fmt: skip

# A10 and A11: powers of 0. source: stan-math #3031, tensorflow #3937, drake #23862, pytorch #27134
POWERS = [
    *(
        Case(form, {"x": 0.0}, value, {"x": slope})
        for e, value, slope in (
            (3, 0, 0), (2, 0, 0), (1, 0, 1), (0, 1, 0), (0.5, 0, INF), (-1, INF, -INF), (1.5, 0, 0),
            (-0.5, INF, -INF), (2.5, 0, 0),
        )
        for form in (f"x ** {e}", f"pow(x, {e})")
    ),
    Case("x ** e", {"x": [0, 0, 0, 0, 0, 0]}, [0, 0, 0, 1, 0, INF], {"x": [0, 0, 1, 0, INF, -INF]}, None,
         {"e": [3, 2, 1, 0, 0.5, -1]}),
    Case("sum(a ** b)", {"a": [0, 2], "b": [1, 1]}, 2, {"a": [1, 1], "b": [0, 2 * LOG2]}),
    Case("a ** b", {"a": [0, 0], "b": [0, 2]}, [1, 0], {"a": [0, 0], "b": [0, 0]}),
    Case("0 ** x", {"x": [0, 1]}, [1, 0], {"x": [0, 0]}),
    Case("2 ** x", {"x": [0, 1]}, [1, 2], {"x": [LOG2, 2 * LOG2]}),
    Case("square(x)", {"x": 0}, 0, {"x": 0}),
    Case("sqrt(x)", {"x": 0}, 0, {"x": INF}),
    Case("reciprocal(x)", {"x": 0}, INF, {"x": -INF}),
    Case("rsqrt(x)", {"x": 0}, INF, {"x": -INF}),
    Case("xlogy(x, y)", {"x": [0, 0], "y": [0, 2]}, [0, 0], {"x": [0, LOG2], "y": [0, 0]}),
    Case("x ** 0.5", {"x": [-INF, 0.0, 4]}, [INF, 0, 2], {"x": [0, INF, 0.25]}),
    Case("x ** e", {"x": [-INF, 4]}, [INF, 2], {"x": [0, 0.25]}, None, {"e": 0.5}),
    Case("x ** e", {"x": [[-INF], [4]]}, [[INF], [2]], {"x": [[0], [0.25]]}, None, {"e": [[0.5], [0.5]]}),
]  # fmt: skip

# A12: logarithms of zero. source: pytorch #31829, jax #6811, pytorch #49724
LOG_ZEROS = [
    Case("logsumexp(x, dim=0)", {"x": [-INF, -INF]}, -INF, {"x": [0, 0]}),
    Case("logsumexp(x, dim=0)", {"x": [-INF, 1]}, 1, {"x": [0, 1]}),
    Case("logsumexp(x, dim=1)", {"x": [[-INF, -INF], [0, 0]]}, [-INF, LOG2], {"x": [[0, 0], [0.5, 0.5]]}),
    Case("logsumexp(x, dim=(0, 1), keepdim=True)", {"x": [[-INF], [-INF]]}, [[-INF]], {"x": [[0], [0]]}),
    Case("logaddexp(a, b)", {"a": [-INF, -INF], "b": [-INF, 1]}, [-INF, 1], {"a": [0, 0], "b": [0, 1]}),
    Case("logcumsumexp(x, 0)", {"x": [-INF, -INF, 1]}, [-INF, -INF, 1], {"x": [0, 0, 1]}),
    Case("logcumsumexp(x, 0)", {"x": [-INF, -INF]}, [-INF, -INF], {"x": [0, 0]}),
    Case("softmax(x, dim=0)", {"x": [-INF, 1, 1]}, [0, 0.5, 0.5], {"x": [0, 1, -1]}, [9, 5, 1]),
    Case("log_softmax(x, dim=0)[1]", {"x": [-INF, 0, 0]}, -LOG2, {"x": [0, 0.5, -0.5]}),
    Case("cross_entropy_losses(x, [1])", {"x": [[-INF, 0, 0]]}, [LOG2], {"x": [[0, -0.5, 0.5]]}),
    Case("softmax(x, dim=0)", {"x": [-INF, -INF]}, [NAN, NAN], {"x": [NAN, NAN]}),
    Case("log_softmax(x, dim=0)", {"x": [-INF, -INF]}, [NAN, NAN], {"x": [NAN, NAN]}),
    Case("softplus(x)", {"x": [-INF]}, [0], {"x": [0]}),
    Case("logsigmoid(x)", {"x": [-INF, INF]}, [-INF, 0], {"x": [1, 0]}),
    Case("sigmoid(x)", {"x": [-INF, INF]}, [0, 1], {"x": [0, 0]}),
    # Of +inf there is no answer, and none is invented.
    Case("logsumexp(x, dim=0)", {"x": [INF, 1]}, INF, {"x": [NAN, 0]}),
    Case("logcumsumexp(x, 0)", {"x": [INF, 1]}, [INF, INF], {"x": [NAN, 0]}),
]  # fmt: skip

# A13: 0 * -inf in the value, beside a finite gradient. source: optax #896, optax #898
MASKED_LOGITS = [
    Case("-sum(y * log_softmax(z, dim=0))", {"z": [-INF, 0, 0]}, NAN, {"z": [0, -0.5, 0.5]}, None, {"y": [0, 1, 0]}),
    Case("cross_entropy(z, [1])", {"z": [[-INF, 0, 0]]}, LOG2, {"z": [[0, -0.5, 0.5]]}),
    Case("nll_loss(log_softmax(z, dim=1), [1])", {"z": [[-INF, 0, 0]]}, LOG2, {"z": [[0, -0.5, 0.5]]}),
]  # fmt: skip

# A14: repeated positions add. source: pytorch #1631, pytorch #1528
REPEATED = [
    Case("gather(x, 0, [0, 0])", {"x": [0.1]}, [0.1, 0.1], {"x": [0.5]}, [0.2, 0.3]),
    *(
        Case(form, {"x": [1, 2, 3]}, [3, 1, 3], {"x": [10, 0, 101]}, [1, 10, 100])
        for form in ("index_select(x, 0, [2, 0, 2])", "x[[2, 0, 2]]", "x[[-1, 0, 2]]", "gather(x, 0, [2, 0, 2])")
    ),
    Case("index_select(x, 1, [1, 1])", {"x": [[1, 2], [3, 4]]}, [[2, 2], [4, 4]], {"x": [[0, 11], [0, 1100]]},
         [[1, 10], [100, 1000]]),
    Case("gather(x, 1, [[0, 0, 1], [1, 1, 1]])", {"x": [[1, 2], [3, 4]]}, [[1, 1, 2], [4, 4, 4]],
         {"x": [[11, 100], [0, 111]]}, [[1, 10, 100], [1, 10, 100]]),
    Case("x[[0, 0], [1, 1]]", {"x": [[1, 2]]}, [2, 2], {"x": [[0, 11]]}, [1, 10]),
    Case("x[:, [1, 1]]", {"x": [[1, 2]]}, [[2, 2]], {"x": [[0, 11]]}, [[1, 10]]),
    Case("x[0] + x[0]", {"x": [1, 2]}, 2, {"x": [2, 0]}),
    Case("masked_select(x, m)", {"x": [1, 2]}, [1, 1, 2], {"x": [11, 100]}, [1, 10, 100],
         {"m": [[True, False], [True, True]]}),
    Case("index_add(x, 0, [0, 0], s)", {"x": [1, 2], "s": [3, 4]}, [8, 2], {"x": [5, 7], "s": [5, 5]}, [5, 7]),
    Case("scatter_add(x, 0, [0, 0, 1], s)", {"x": [0, 0], "s": [1, 2, 3]}, [3, 3], {"x": [5, 7], "s": [5, 5, 7]}, [5, 7]),
    Case("scatter(x, 0, [0, 0, 1], s)", {"x": [0, 0], "s": [1, 2, 3]}, [2, 3], {"x": [0, 0], "s": [0, 5, 7]}, [5, 7]),
    Case("expand(x, (2, 2))", {"x": [1, 2]}, [[1, 2], [1, 2]], {"x": [11, 22]}, [[1, 2], [10, 20]]),
    Case("repeat(x, (2,))", {"x": [1, 2]}, [1, 2, 1, 2], {"x": [11, 22]}, [1, 2, 10, 20]),
    Case("unfold(x, 0, 2, 1)", {"x": [1, 2, 3]}, [[1, 2], [2, 3]], {"x": [1, 110, 1000]}, [[1, 10], [100, 1000]]),
    Case("cat([x, x])", {"x": [1]}, [1, 1], {"x": [11]}, [1, 10]),
    Case("stack([x, x])", {"x": 1}, [1, 1], {"x": 11}, [1, 10]),
    Case("pad(x, (1, 1), 'circular')", {"x": [1, 2, 3]}, [3, 1, 2, 3, 1], {"x": [10010, 100, 1001]},
         [1, 10, 100, 1000, 10000]),
    Case("nll_loss(x, [0, 0])", {"x": [[1, 2], [3, 4]]}, -2, {"x": [[-0.5, 0], [-0.5, 0]]}),
]  # fmt: skip

# A15: broadcast operands keep their shape. source: pytorch #1787, pytorch #913, burn #181
BROADCAST = [
    Case("sum(a * b)", {"a": [[1], [2]], "b": [[3, 4]]}, 21, {"a": [[7], [7]], "b": [[3, 3]]}),
    Case("sum(a * b)", {"a": 2.0, "b": [[1, 2], [3, 4]]}, 20, {"a": 10, "b": [[2, 2], [2, 2]]}),
    Case("a + b", {"a": [[1], [2]], "b": [3, 4, 5]}, [[4, 5, 6], [5, 6, 7]], {"a": [[3], [3]], "b": [2, 2, 2]}),
    Case("a - b", {"a": 1, "b": [3, 4]}, [-2, -3], {"a": 2, "b": [-1, -1]}),
    Case("a / b", {"a": [8], "b": [2, 4]}, [4, 2], {"a": [0.75], "b": [-2, -0.5]}),
    Case("a ** b", {"a": [2], "b": [1, 2]}, [2, 4], {"a": [5], "b": [2 * LOG2, 4 * LOG2]}),
    Case("maximum(a, b)", {"a": 2, "b": [1, 3]}, [2, 3], {"a": 1, "b": [0, 1]}),
    Case("where(m, a, b)", {"a": [[1], [2]], "b": 3}, [[1, 3], [2, 3]], {"a": [[1], [1]], "b": 2}, None, {"m": [True, False]}),
    Case("lerp(a, b, w)", {"a": [[1], [2]], "b": [[3, 4]], "w": 0.25}, [[1.5, 1.75], [2.25, 2.5]],
         {"a": [[1.5], [1.5]], "b": [[0.5, 0.5]], "w": 8}),
    Case("addcmul(a, b, c)", {"a": 1, "b": [[1], [2]], "c": [[3, 4]]}, [[4, 5], [7, 9]],
         {"a": 4, "b": [[7], [7]], "c": [[3, 3]]}),
    Case("a @ b", {"a": [[[1, 1]], [[1, 1]]], "b": [[1], [2]]}, [[[3]], [[3]]],
         {"a": [[[1, 2]], [[1, 2]]], "b": [[2], [2]]}),
    Case("mse_loss(a, b)", {"a": [[1], [2]], "b": [[3, 4]]}, 4.5, {"a": [[-2.5], [-1.5]], "b": [[1.5, 2.5]]}),
    Case("hypot(a, b)", {"a": 3, "b": [4, 4]}, [5, 5], {"a": 1.2, "b": [0.8, 0.8]}),
    Case("layer_norm(x, 2, w, b, eps=0)", {"x": [[0, 2], [0, 2]], "w": [1, 1], "b": [0, 0]}, [[-1, 1], [-1, 1]],
         {"x": 0, "w": [-2, 2], "b": [2, 2]}),
]  # fmt: skip

KINDS = {
    "product_with_zeros": PRODUCTS, "norm_at_the_origin": ORIGIN, "squares_beyond_the_range": SCALED,
    "tied_extremes": TIES, "equal_operands": EQUAL, "clipping_at_bounds": CLIPPED,
    "softplus_of_kinked_parts": SOFTPLUS, "branch_not_taken": TRAPS,
    "masks_select": SELECTED, "powers_of_zero": POWERS, "log_zeros": LOG_ZEROS,
    "masked_logits": MASKED_LOGITS, "repeated_positions": REPEATED, "broadcast_operands": BROADCAST,
}  # fmt: skip
ALL = [
    pytest.param(case, id=f"{kind}-{number}-{case.text}")
    for kind, cases in KINDS.items()
    for number, case in enumerate(cases)
]


@each_door
@pytest.mark.parametrize("case", ALL)
def test_value_and_gradient(case, door, kael, tmp_path):
    holds(case, door, kael, tmp_path)


# What is right in float64 is right in float32 as well, with its own range and digits.
SINGLE = [
    *PRODUCTS, *ORIGIN, *TIES, *EQUAL, *CLIPPED, *SOFTPLUS, *SELECTED, *LOG_ZEROS, *MASKED_LOGITS,
    *REPEATED, *BROADCAST,
    Case("norm(x)", {"x": [1e30, 1, 1]}, 1e30, {"x": [1, 1e-30, 1e-30]}),
    Case("norm(x)", {"x": [1e-30, 1e-30]}, math.sqrt(2) * 1e-30, {"x": [HALF, HALF]}),
    Case("hypot(x, y)", {"x": [3e30], "y": [4e30]}, [5e30], {"x": [0.6], "y": [0.8]}),
    Case("std(x)", {"x": [1e30, 3e30]}, math.sqrt(2) * 1e30, {"x": [-HALF, HALF]}),
    Case("std(x)", {"x": [1e-30, 3e-30]}, math.sqrt(2) * 1e-30, {"x": [-HALF, HALF]}),
    Case("standardize(x, 1)", {"x": [1e30, 2e30, 4e30]}, ROW, {"x": SLOPE / 1e30}, UP),
    Case("layer_norm(x, 3)", {"x": [1e20, 2e20, 4e20]}, ROW, {"x": SLOPE / 1e20}, UP),
    Case("standardize(x, 1, eps=0)", {"x": [1e-30, 2e-30, 4e-30]}, ROW, {"x": SLOPE / 1e-30}, UP),
    Case("x ** 0.5", {"x": [-INF, 0.0, 4]}, [INF, 0, 2], {"x": [0, INF, 0.25]}),
]  # fmt: skip


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{number}-{case.text}") for number, case in enumerate(SINGLE)]
)
def test_value_and_gradient_in_float32(case, kael, tmp_path):
    holds(case, functions, kael, tmp_path, "float32")


@pytest.mark.parametrize("tier", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_both_tiers_of_the_kernels(dtype, tier, kael, tmp_path):
    kinds = (PRODUCTS, ORIGIN, SCALED, TIES, CLIPPED, SELECTED, LOG_ZEROS, REPEATED)
    cases = [case for kind in kinds for case in kind] if dtype == "float64" else SINGLE
    with only(tier):
        for case in cases:
            holds(case, functions, kael, tmp_path, dtype)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e154, 1e155, 1e200, 4e307])
def test_large_rows_are_standardized_alike_at_every_scale(scale):
    """Enough entries for the compiled tier, in the mix of rows that a batch has."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((256, 512))
    values[::2] *= scale / 8
    x = k.tensor(values, requires_grad=True)
    k.standardize(x, 1, eps=0.0).backward(rng.standard_normal(values.shape))
    plain = values / np.where(np.arange(256) % 2 == 0, scale / 8, 1)[:, None]
    own = (plain - plain.mean(1, keepdims=True)) / plain.std(1, keepdims=True)
    np.testing.assert_allclose(k.standardize(x, 1, eps=0.0).numpy(), own, rtol=1e-9, atol=1e-12)
    slopes = x.grad.numpy() * np.where(np.arange(256) % 2 == 0, scale / 8, 1)[:, None]
    g = np.random.default_rng(0)
    g.standard_normal(values.shape)
    g = g.standard_normal(values.shape)
    right = (g - g.mean(1, keepdims=True) - own * (g * own).mean(1, keepdims=True)) / plain.std(
        1, keepdims=True
    )
    np.testing.assert_allclose(slopes, right, rtol=1e-9, atol=1e-12)


def test_a_row_that_is_not_finite_leaves_the_others():
    x = k.tensor([[1.0, NAN, 2.0], [1.0, INF, 2.0], [1.0, 2.0, 4.0], [0.0, 0.0, 0.0]])
    for tier in ("numpy", "numba"):
        with only(tier):
            out = k.standardize(x, 1).numpy()
        assert np.isnan(out[:2]).any(axis=1).all()
        same(out[2], k.standardize(x[2], 1).tolist())
        assert out[3].tolist() == [0, 0, 0]


def test_a_conventions_two_spellings_are_said_where_operations_are_documented(kael):
    assert "relu(x) gives 0 at 0 where maximum(x, 0) gives 1/2" in kael("ops", "relu").out
    assert "maximum(x, 0) gives 1/2 at 0 where relu(x) gives 0" in kael("ops", "maximum").out
    assert "-inf and gradient 0" in kael("ops", "logsumexp").out


# What a gradient check makes of the kinds that have a true derivative, at the very same points.
TRUE = {
    "product_with_zeros": PRODUCTS, "repeated_positions": REPEATED, "broadcast_operands": BROADCAST,
    "clipping_at_bounds": CLIPPED, "tied_extremes": TIES, "equal_operands": EQUAL,
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{kind}-{number}-{case.text}")
        for kind, cases in TRUE.items()
        for number, case in enumerate(cases)
        # Moving one of three tied middles alone moves no median: its slopes say 0, not a third.
        if np.isfinite(np.asarray(case.value, float)).all() and case.text != "median(x)"
    ],
)
def test_a_right_gradient_passes_the_check(case, kael, tmp_path):
    path = tmp_path / "case.yaml"
    path.write_text(yaml_text(case), encoding="utf-8")
    ran = kael("gradcheck", str(path))
    assert ran.code == 0, ran.out


@pytest.mark.parametrize("base", [k.tensor([True, False]), k.tensor([1, 0])], ids=["bool", "int"])
def test_a_square_counts_in_int64(base):
    for out in (k.square(base), base.square(), base**2):
        assert (out.dtype, out.tolist()) == (k.int64, [1, 0])
