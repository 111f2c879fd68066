"""Makes `tests/golden/ops_more.json`: operations with PyTorch's values and gradients.

Run once, with PyTorch installed; `test_golden.py` reads only the file. Its format is that of
`ops.json`. A case that carries a `note` follows a convention of kael, stated in the note, where
PyTorch has another one or none; everything else is what PyTorch computed.
"""

import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

HERE = Path(__file__).parent
INF, NAN = math.inf, math.nan
NON_FINITE = {"Infinity": INF, "-Infinity": -INF, "NaN": NAN}
DTYPES = {name: getattr(torch, name) for name in ("float64", "float32", "int64", "bool")}


@dataclass(frozen=True)
class Leaf:
    """An input: a literal, or numbers of four digits drawn from [low, high)."""

    value: object = None
    shape: tuple[int, ...] | None = None
    low: float = -2.0
    high: float = 2.0
    dtype: str = "float64"
    grad: bool = True
    via: tuple[str, object] | None = None

    def tensor(self, rng: np.random.Generator) -> torch.Tensor:
        value = self.value
        if value is None:
            value = np.round(rng.uniform(self.low, self.high, self.shape), 4).tolist()
        made = torch.tensor(value, dtype=DTYPES[self.dtype])
        if self.shape is not None:
            made = made.reshape(self.shape)
        return made.requires_grad_(self.grad and made.dtype.is_floating_point)


def draw(*shape, **settings):
    return Leaf(shape=shape, **settings)


def of(value, **settings):
    return Leaf(value=value, **settings)


def index(value):
    return Leaf(value=value, dtype="int64", grad=False)


def mask(value):
    return Leaf(value=value, dtype="bool", grad=False)


def window(start=None, stop=None, step=None):
    return {"slice": [start, stop, step]}


ELLIPSIS = {"ellipsis": True}

# ---------------------------------------------------------------- what PyTorch computes


def _extreme(name):
    def reference(x, dim=None, keepdim=False):
        full = getattr(torch, name)
        return full(x) if dim is None else full(x, dim, keepdim=keepdim).values

    return reference


def _getitem(x, items):
    return x[tuple(items)]


def _slice(x, dim, start, end, step=1):
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def _standardize(x, normalized_dims, eps=1e-5):
    return functional.layer_norm(x, x.shape[x.ndim - normalized_dims :], eps=eps)


def _polygamma(n, x):
    return torch.special.zeta(2.0, x) if n == 1 else torch.polygamma(n, x)


REFERENCES = {
    "max": _extreme("max"),
    "min": _extreme("min"),
    "median": _extreme("median"),
    "sort": lambda *args, **kwargs: torch.sort(*args, **kwargs).values,
    "topk": lambda *args, **kwargs: torch.topk(*args, **kwargs).values,
    "norm": lambda x, p=2, dim=None, keepdim=False: torch.linalg.vector_norm(x, p, dim, keepdim),
    "slogdet": lambda x: torch.linalg.slogdet(x).logabsdet,
    "solve": torch.linalg.solve,
    "cholesky": torch.linalg.cholesky,
    "inverse": torch.linalg.inv,
    "unfold": torch.Tensor.unfold,
    "repeat": torch.Tensor.repeat,
    "expand": torch.Tensor.expand,
    "view": torch.Tensor.view,
    "to": torch.Tensor.to,
    "slice": _slice,
    "standardize": _standardize,
    "cross_entropy_losses": lambda x, t: functional.cross_entropy(x, t, reduction="none"),
    "getitem": _getitem,
    "floor_divide": torch.floor_divide,
    # PyTorch's own have constants of float32 precision, or a short series.
    "hardsigmoid": lambda x: functional.relu6(x + 3) / 6,
    "celu": lambda x, alpha=1.0: torch.where(x > 0, x, alpha * torch.expm1(x.clamp(max=0) / alpha)),
    "polygamma": _polygamma,
    "binary_cross_entropy_with_logits": functional.binary_cross_entropy_with_logits,
    "kl_div": functional.kl_div,
    "cat": torch.cat,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "@": lambda a, b: a @ b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
}


def reference_of(op):
    if op in REFERENCES:
        return REFERENCES[op]
    return getattr(torch, op, None) or getattr(functional, op)


# ---------------------------------------------------------------- writing


def plain(value):
    """Nested lists that JSON can hold: NaN and infinities as strings."""
    if isinstance(value, torch.Tensor):
        return plain(value.detach().tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def view_of(leaf, tensor):
    if leaf.via is None:
        return tensor
    kind, argument = leaf.via
    if kind == "permute":
        return tensor.permute(argument)
    if kind == "expand":
        return tensor.expand(argument)
    return tensor[tuple(slice(*window) for window in argument)]


class Table:
    def __init__(self):
        self.cases = []
        self.counts = {}

    def add(self, op, label, *args, gradient="random", reference=None, expect=None, **kwargs):
        """One case.

        `gradient` is the upstream gradient: drawn, a literal, None for `backward()` without one,
        or "none" for an operation without a gradient. `expect` overrides what PyTorch gives, and
        holds the `note` that says why.
        """
        self.counts[op] = self.counts.get(op, 0) + 1
        name = f"{op}/m{self.counts[op]:02d}-{label}"
        rng = np.random.default_rng(zlib.crc32(f"{op} {label}".encode()))
        leaves, tensors, views = [], [], []

        def written(argument):
            if isinstance(argument, Leaf):
                leaves.append(argument)
                tensors.append(argument.tensor(rng))
                views.append(view_of(argument, tensors[-1]))
                return f"${len(leaves) - 1}"
            if isinstance(argument, (list, tuple)):
                return [written(item) for item in argument]
            return plain(argument)

        def passed(argument):
            if isinstance(argument, str) and argument.startswith("$"):
                return views[int(argument[1:])]
            if isinstance(argument, list):
                return [passed(item) for item in argument]
            if isinstance(argument, dict):
                if "slice" in argument:
                    return slice(*argument["slice"])
                return ... if "ellipsis" in argument else DTYPES[argument["dtype"]]
            return NON_FINITE.get(argument, argument) if isinstance(argument, str) else argument

        written_args = [written(argument) for argument in args]
        written_kwargs = {key: written(argument) for key, argument in kwargs.items()}
        call = reference or reference_of(op)
        result = call(
            *map(passed, written_args), **{key: passed(v) for key, v in written_kwargs.items()}
        )
        outputs = list(result) if isinstance(result, (list, tuple)) else [result]
        several = isinstance(result, (list, tuple))

        case = {"id": name, "op": op, "inputs": [], "args": written_args}
        for leaf, tensor in zip(leaves, tensors, strict=True):
            entry = {
                "value": plain(tensor),
                "shape": list(tensor.shape),
                "dtype": dtype_name(tensor),
                "requires_grad": tensor.requires_grad,
            }
            if leaf.via is not None:
                entry["via"] = {leaf.via[0]: plain(leaf.via[1])}
            case["inputs"].append(entry)
        if written_kwargs:
            case["kwargs"] = written_kwargs

        def each(values):
            return values if several else values[0]

        case["expect"] = {
            "value": each([plain(output) for output in outputs]),
            "shape": each([list(output.shape) for output in outputs]),
            "dtype": each([dtype_name(output) for output in outputs]),
        }
        if isinstance(gradient, str) and gradient == "none":
            pass
        else:
            upstreams = self.upstreams(gradient, outputs, several, rng)
            case["gradient"] = None if gradient is None else each([plain(u) for u in upstreams])
            torch.autograd.backward(outputs, upstreams)
            case["expect"]["grads"] = [
                None
                if not tensor.requires_grad
                else plain(torch.zeros_like(tensor) if tensor.grad is None else tensor.grad)
                for tensor in tensors
            ]
        if expect:
            expect = dict(expect)
            case["note"] = expect.pop("note")
            case["expect"] |= {key: plain(value) for key, value in expect.items()}
        self.cases.append(case)

    @staticmethod
    def upstreams(gradient, outputs, several, rng):
        if gradient is None:
            return [torch.ones_like(output) for output in outputs]
        if isinstance(gradient, str):
            drawn = [np.round(rng.standard_normal(tuple(o.shape)), 3).tolist() for o in outputs]
        else:
            drawn = gradient if several else [gradient]
        return [
            torch.tensor(value, dtype=output.dtype).reshape(output.shape)
            for value, output in zip(drawn, outputs, strict=True)
        ]

    def write(self, path):
        provenance = (
            f"values computed with PyTorch {torch.__version__} in float64 by make_ops.py; "
            "cases with a note follow the convention it states"
        )
        lines = ",\n".join(json.dumps(case, allow_nan=False) for case in self.cases)
        path.write_text(f'{{"provenance": {json.dumps(provenance)},\n"cases": [\n{lines}\n]}}\n')


# ---------------------------------------------------------------- elementwise

# operation: (low, high, keyword arguments)
UNARY = {
    "neg": (-2, 2, {}),
    "abs": (0.2, 2, {}),
    "exp": (-2, 2, {}),
    "expm1": (-2, 2, {}),
    "exp2": (-2, 2, {}),
    "log": (0.5, 2.5, {}),
    "log1p": (-0.5, 2.5, {}),
    "log2": (0.5, 2.5, {}),
    "log10": (0.5, 2.5, {}),
    "sqrt": (0.5, 2.5, {}),
    "rsqrt": (0.5, 2.5, {}),
    "square": (-2, 2, {}),
    "reciprocal": (0.5, 2.5, {}),
    "sin": (-3, 3, {}),
    "cos": (-3, 3, {}),
    "tan": (-1.2, 1.2, {}),
    "asin": (-0.9, 0.9, {}),
    "acos": (-0.9, 0.9, {}),
    "atan": (-3, 3, {}),
    "sinh": (-2, 2, {}),
    "cosh": (-2, 2, {}),
    "tanh": (-2, 2, {}),
    "asinh": (-3, 3, {}),
    "acosh": (1.2, 3, {}),
    "atanh": (-0.9, 0.9, {}),
    "sigmoid": (-3, 3, {}),
    "erf": (-2, 2, {}),
    "erfc": (-2, 2, {}),
    "erfinv": (-0.9, 0.9, {}),
    "lgamma": (2.2, 5, {}),
    "digamma": (2.2, 5, {}),
    "relu": (0.2, 2, {}),
    "gelu": (-2, 2, {}),
    "softplus": (-3, 3, {}),
    "silu": (-3, 3, {}),
    "mish": (-3, 3, {}),
    "elu": (-3, 3, {}),
    "leaky_relu": (-3, 3, {}),
    "selu": (-3, 3, {}),
    "hardtanh": (-0.9, 0.9, {}),
    "softsign": (-3, 3, {}),
    "logsigmoid": (-3, 3, {}),
    "logit": (0.1, 0.9, {}),
    "relu6": (0.2, 5.8, {}),
    "hardsigmoid": (-2.9, 2.9, {}),
    "hardswish": (-2.9, 2.9, {}),
    "celu": (-3, 3, {}),
    "clamp": (-2, 2, {"min": -1.0, "max": 0.5}),
    "clone": (-2, 2, {}),
}

# Special points: ends of the domain, kinks, overflow.
POINTS = {
    "abs": [0.0, -0.0, -3.0],
    "exp": [-1000.0, 0.0, 1000.0],
    "exp2": [-2000.0, 0.0, 10.0],
    "expm1": [-1000.0, 0.0, 1e-10],
    "log": [0.0, 1.0, INF],
    "log1p": [-1.0, 0.0, 1e-10],
    "log2": [0.0, 1.0, 1024.0],
    "log10": [0.0, 1.0, 1000.0],
    "sqrt": [0.0, 4.0, INF],
    "rsqrt": [0.0, 4.0, INF],
    "square": [0.0, -1e160, 3.0],
    "reciprocal": [0.0, -0.5, INF],
    "asin": [-1.0, 0.0, 1.0],
    "acos": [-1.0, 0.0, 1.0],
    "atan": [-INF, 0.0, INF],
    "sinh": [-1000.0, 0.0, 1.0],
    "cosh": [-1000.0, 0.0, 1.0],
    "tanh": [-1000.0, 0.0, 1000.0],
    "asinh": [-1e3, 0.0, 1e-5],
    "acosh": [1.0, 2.0, 1e3],
    "atanh": [-1.0, 0.0, 1.0],
    "sigmoid": [-1000.0, 0.0, 1000.0],
    "erf": [-INF, 0.0, 6.0],
    "erfc": [-6.0, 0.0, 3.0],
    "erfinv": [-1.0, 0.0, 1.0],
    "lgamma": [-0.5, 0.5, 100.0],
    "digamma": [-0.5, 0.5, 100.0],
    "relu": [-1.0, 0.0, 1000.0],
    "gelu": [-40.0, 0.0, 40.0],
    "softplus": [-800.0, 0.0, 800.0],
    "silu": [-800.0, 0.0, 800.0],
    "mish": [-800.0, 0.0, 800.0],
    "elu": [-800.0, 0.0, 800.0],
    "leaky_relu": [-800.0, 0.0, 800.0],
    "selu": [-800.0, 0.0, 800.0],
    "hardtanh": [-1.0, 1.0, 3.0],
    "softsign": [-1e3, 0.0, 1e3],
    "logsigmoid": [-1000.0, 0.0, 1000.0],
    "logit": [0.0, 0.5, 1.0],
    "relu6": [0.0, 6.0, 7.0],
    "hardsigmoid": [-3.0, 3.0, 4.0],
    "hardswish": [-4.0, 0.0, 4.0],
    "celu": [-800.0, 0.0, 800.0],
}


def unary(table):
    for op, (low, high, kwargs) in UNARY.items():
        limits = {"low": low, "high": high}
        table.add(op, "2x3", draw(2, 3, **limits), **kwargs)
        table.add(op, "0d", draw(**limits), **kwargs)
        table.add(op, "empty", draw(0, 3, **limits), **kwargs)
        table.add(op, "size-1", draw(1, 1, **limits), gradient=None, **kwargs)
        table.add(op, "float32", draw(4, dtype="float32", **limits), **kwargs)
        table.add(op, "permuted", draw(3, 2, via=("permute", [1, 0]), **limits), **kwargs)
        table.add(op, "strided", draw(7, via=("slice", [[1, 7, 2]]), **limits), **kwargs)
    for op, values in POINTS.items():
        table.add(op, "points", of(values), gradient=[2.0, 3.0, -4.0])
    table.add("gelu", "tanh-points", of([-40.0, 0.0, 40.0]), approximate="tanh")
    table.add("softplus", "beta", draw(2, 3), beta=2.5)
    table.add("softplus", "threshold", of([1.0, 30.0, -30.0]), beta=1.0, threshold=20.0)
    table.add("elu", "alpha", draw(2, 3), alpha=0.7)
    table.add("celu", "alpha", draw(2, 3), alpha=0.7)
    table.add("logit", "eps", of([-1.0, 0.05, 0.5, 0.97]), eps=0.1)
    for order in (0, 1, 2):
        table.add("polygamma", f"order-{order}", order, draw(2, 3, low=0.5, high=3.0))
    table.add("polygamma", "points", 1, of([0.5, 2.3, 0.2]))
    table.add("digamma", "negative", of([-0.5, -2.3, 0.2]))
    table.add("leaky_relu", "slope", draw(2, 3), negative_slope=0.2)
    table.add("hardtanh", "limits", of([-3.0, -0.4, 0.9, 2.6]), min_val=-0.5, max_val=2.5)
    table.add("clamp", "at-bounds", of([0.0, 1.0, 0.5, -1.0, 2.0]), min=0.0, max=1.0)
    table.add("clamp", "only-min", of([-2.0, 0.0, 2.0]), min=-1.0)
    table.add("clamp", "only-max", of([-2.0, 0.0, 2.0]), max=1.0)
    table.add("clamp", "positional", of([-2.0, 0.3, 2.0]), -1.0, 1.0)
    for op in ("exp", "sqrt", "tanh"):
        table.add(op, "int64", index([0, 1, 4]), gradient="none")


# operation: (low, high) of both operands
BINARY = {
    "add": (-2, 2),
    "sub": (-2, 2),
    "mul": (-2, 2),
    "div": (0.5, 2.5),
    "pow": (0.5, 2.5),
    "maximum": (-2, 2),
    "minimum": (-2, 2),
    "atan2": (0.5, 2.5),
    "hypot": (0.5, 2.5),
    "logaddexp": (-2, 2),
    "xlogy": (0.5, 2.5),
}


def in_float64(op):
    """PyTorch refuses some mixed operands; the gradients still come back in the input's dtype."""
    call = reference_of(op)
    return lambda a, b: call(a.double(), b.double())


def binary(table):
    for op, (low, high) in BINARY.items():
        limits = {"low": low, "high": high}
        a, b = draw(2, 3, **limits), draw(2, 3, **limits)
        table.add(op, "2x3", a, b)
        table.add(op, "0d", draw(**limits), draw(**limits))
        table.add(op, "row", a, draw(3, **limits))
        table.add(op, "column-row", draw(2, 1, **limits), draw(3, **limits))
        table.add(op, "leading", draw(3, **limits), draw(2, 1, 3, **limits))
        table.add(op, "0d-left", draw(**limits), b)
        table.add(op, "size-1", draw(1, 1, **limits), draw(2, **limits))
        table.add(op, "empty", draw(0, 3, **limits), draw(3, **limits))
        table.add(op, "empty-0d", draw(0, **limits), draw(**limits))
        single = draw(3, dtype="float32", **limits)
        table.add(op, "float32", single, draw(3, dtype="float32", **limits))
        table.add(op, "mixed", single, draw(3, **limits), reference=in_float64(op))
        table.add(op, "mixed-row", draw(2, 3, **limits), single, reference=in_float64(op))
        table.add(op, "constant-left", draw(2, grad=False, **limits), draw(2, **limits))
        table.add(op, "constant-right", draw(2, **limits), draw(2, grad=False, **limits))
        strided = draw(3, 4, via=("slice", [[None, None, 2], [1, 4, 1]]), **limits)
        table.add(op, "strided", strided, draw(3, 2, via=("permute", [1, 0]), **limits))
        table.add(op, "expanded", draw(1, 3, via=("expand", [2, 3]), **limits), b)
    for op in ("+", "-", "*", "/", "**"):
        table.add(op, "number-right", draw(2, 2, low=0.5, high=2.5), 2.5)
        table.add(op, "number-left", 2.5, draw(2, 2, low=0.5, high=2.5))
        table.add(op, "float32-number", draw(3, low=0.5, high=2.5, dtype="float32"), 2)
    for op in ("+", "-", "*"):
        table.add(op, "int64", index([1, 2]), index([3, 4]), gradient="none")
        table.add(op, "int64-float64", index([1, 2]), draw(2))
        table.add(op, "int64-float32", index([1, 2]), draw(2, dtype="float32"))
    table.add("*", "bool-float64", mask([True, False]), draw(2))
    table.add("/", "int64", index([1, 2]), index([4, 5]), gradient="none")
    table.add("/", "by-zero", of([1.0, 2.0, 3.0]), of([1.0, 0.0, 2.0]), gradient=[1.0, 1.0, 1.0])
    table.add("-", "same-operand", of([1.0, INF]), of([INF, 1.0]))
    binary_points(table)


def binary_points(table):
    powers = of([3.0, 2.0, 1.0, 0.0, 0.5, -1.0], grad=False)
    table.add("pow", "zero-base", of([0.0] * 6), powers, gradient=[1.0] * 6)
    table.add("pow", "zero-base-number-0", of([0.0, 2.0]), 0, gradient=[2.0, 3.0])
    table.add("pow", "zero-base-number-1", of([0.0, 2.0]), 1, gradient=[2.0, 3.0])
    table.add("pow", "zero-base-number-half", of([0.0, 4.0]), 0.5, gradient=[2.0, 3.0])
    table.add("pow", "zero-base-number-negative", of([0.0, 4.0]), -2, gradient=[2.0, 3.0])
    table.add("pow", "both-at-zero", of([0.0, 2.0, 0.0]), of([1.0, 1.0, 0.0]), gradient=[1.0] * 3)
    table.add("pow", "negative-base", of([-2.0, -0.5, -1.5]), of([3.0, -2.0, 0.0], grad=False))
    table.add("pow", "negative-base-fraction", of([-2.0, 4.0]), 0.5, gradient=[1.0, 1.0])
    table.add("pow", "number-base", 2.0, of([0.0, -1.0, 3.0]), reference=lambda a, b: a**b)
    for op in ("remainder", "fmod"):
        table.add(op, "signs", of([7.5, -7.5, 7.5, -7.5]), of([2.0, 2.0, -2.0, -2.0]))
        table.add(op, "row", draw(2, 3), draw(3, low=0.5, high=2.5))
    a, b, c = draw(2, 3), draw(3), draw(2, 1, low=0.5, high=2.5)
    table.add("addcdiv", "broadcast", a, b, c)
    table.add("addcdiv", "value", a, b, c, value=-0.5)
    table.add("maximum", "tie", of([1.0, 2.0]), of([1.0, 3.0]), gradient=[3.0, 5.0])
    table.add("minimum", "tie", of([1.0, 2.0]), of([1.0, 3.0]), gradient=[3.0, 5.0])
    table.add("maximum", "tie-broadcast", of([[1.0], [2.0]]), of([1.0, 2.0]))
    signs = of([1.0, -1.0, -1.0, 0.0, 0.0]), of([-1.0, 1.0, -1.0, 2.0, -2.0])
    table.add("atan2", "quadrants", *signs)
    table.add("atan2", "origin", of([0.0]), of([0.0]), gradient=[3.0])
    table.add("hypot", "large", of([3e200, 3.0]), of([4e200, -4.0]), gradient=[1.0, 2.0])
    table.add("hypot", "one-zero", of([0.0, 3.0]), of([-2.0, 0.0]), gradient=[1.0, 2.0])
    table.add("logaddexp", "huge", of([1000.0, -1000.0]), of([999.0, -1001.0]))
    table.add("logaddexp", "one-minus-infinity", of([-INF, 2.0]), of([1.0, -INF]))
    table.add("xlogy", "zero-x", of([0.0, 0.0]), of([0.0, 2.0], grad=False), gradient=[1.0, 2.0])
    table.add("xlogy", "zero-x-slope", of([0.0, 2.0]), of([3.0, 0.5]))
    a, b = draw(2, 3), draw(2, 3)
    table.add("lerp", "number", a, b, 0.3)
    table.add("lerp", "tensor", a, b, draw(2, 3, low=0, high=1))
    table.add("lerp", "broadcast", draw(3), draw(2, 1), draw(1, low=0, high=1))
    table.add("lerp", "ends", of([1.0, 2.0]), of([3.0, 5.0]), of([0.0, 1.0]))
    table.add("lerp", "float32", draw(3, dtype="float32"), draw(3, dtype="float32"), 0.25)
    table.add("addcmul", "plain", a, b, draw(2, 3))
    table.add("addcmul", "value", a, b, draw(2, 3), value=0.5)
    table.add("addcmul", "broadcast", draw(3), draw(2, 1), draw(), value=-2.0)


# ---------------------------------------------------------------- reductions


def reductions(table):
    cube = draw(2, 3, 2)
    for op in ("sum", "mean", "prod", "amax", "amin", "std", "logsumexp", "var", "norm"):
        if op not in ("prod", "logsumexp"):
            table.add(op, "dims", cube, dim=[0, 2])
            table.add(op, "dims-keep", cube, dim=[0, -1], keepdim=True)
        table.add(op, "keep", cube, dim=1, keepdim=True)
        table.add(op, "permuted", draw(4, 3, via=("permute", [1, 0])), dim=0)
        table.add(op, "float32", draw(3, 4, dtype="float32"), dim=-1)
        table.add(op, "expanded", draw(3, 1, via=("expand", [3, 4])), dim=0)
    for op in ("sum", "mean", "prod", "amax", "amin", "norm"):
        table.add(op, "size-1", draw(3, 1), dim=1)
    for op in ("max", "min"):
        table.add(op, "keep", cube, dim=1, keepdim=True)
        table.add(op, "size-1", draw(3, 1), dim=1)
    for op in ("sum", "mean", "prod", "max", "min", "norm"):
        table.add(op, "0d", draw(), gradient=3.0)
        table.add(op, "all", draw(2, 3), gradient=None)
    for op in ("sum", "prod", "norm"):
        table.add(op, "empty", draw(0), gradient=2.0)
    for op in ("sum", "prod"):
        table.add(op, "empty-dim", draw(2, 0), dim=1)
        table.add(op, "empty-rows", draw(0, 2), dim=0)
        table.add(op, "int64", index([[1, 2], [3, 4]]), dim=1, gradient="none")
    table.add("sum", "bool", mask([True, False, True]), gradient="none")
    table.add("mean", "empty", draw(0), gradient=2.0)
    table.add("std", "all", draw(2, 3), gradient=2.0)
    table.add("std", "correction-0", draw(2, 3), dim=1, correction=0)
    table.add("std", "constant", of([2.0, 2.0, 2.0]), gradient=3.0)
    table.add("var", "constant", of([2.0, 2.0, 2.0]), gradient=3.0)
    table.add("var", "shifted", of([1e8 + 1, 1e8 + 2, 1e8 + 4]), gradient=1.0)
    for op in ("amax", "amin"):
        table.add(op, "ties", of([[3.0, 3.0, 1.0], [1.0, 1.0, 2.0]]), dim=1, gradient=[6.0, 4.0])
        table.add(op, "ties-all", of([2.0, 2.0, 2.0, 2.0]), dim=0, gradient=4.0)
    even = "over a dim, too, tied elements share the gradient evenly"
    table.add(
        "max",
        "ties-dim",
        of([[3.0, 3.0, 1.0], [0.0, 2.0, 1.0]]),
        dim=1,
        gradient=[6.0, 5.0],
        expect={"note": even, "grads": [[[3.0, 3.0, 0.0], [0.0, 5.0, 0.0]]]},
    )
    table.add(
        "min",
        "ties-dim",
        of([[3.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
        dim=1,
        gradient=[6.0, 3.0],
        expect={"note": even, "grads": [[[0.0, 3.0, 3.0], [1.0, 1.0, 1.0]]]},
    )
    table.add("max", "ties", of([2.0, 2.0, 2.0, 1.0]), gradient=3.0)
    table.add("min", "ties", of([[1.0, 1.0], [2.0, 1.0]]), gradient=3.0)
    table.add("prod", "one-zero", of([2.0, 0.0, 4.0]), gradient=3.0)
    table.add("prod", "two-zeros", of([0.0, 5.0, 0.0]), gradient=3.0)
    table.add("prod", "zeros-dim", of([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]), dim=1)
    table.add("norm", "p1", of([[1.0, -2.0], [0.5, 3.0]]), p=1, dim=1)
    table.add("norm", "p3", draw(2, 3), p=3, dim=1)
    table.add("norm", "p-infinity", of([[1.0, -2.0, 0.5], [3.0, 1.0, -1.0]]), p=INF, dim=1)
    table.add("norm", "zero-row", of([[0.0, 0.0], [3.0, 4.0]]), dim=1, gradient=[2.0, 5.0])
    scaled = "scaled by the largest magnitude first, so that no square overflows or underflows"
    table.add(
        "norm",
        "huge",
        of([1e200, 1.0, 1.0]),
        gradient=1.0,
        expect={"note": scaled, "value": 1e200, "grads": [[1.0, 1e-200, 1e-200]]},
    )
    half = math.sqrt(0.5)
    table.add(
        "norm",
        "tiny",
        of([1e-200, 1e-200]),
        gradient=1.0,
        expect={"note": scaled, "value": 1.4142135623730951e-200, "grads": [[half, half]]},
    )
    nothing = "a sum of exponentials that are all zero: the value is -inf, the gradient 0"
    table.add(
        "logsumexp",
        "all-minus-infinity",
        of([-INF, -INF]),
        dim=0,
        gradient=2.0,
        expect={"note": nothing, "grads": [[0.0, 0.0]]},
    )
    table.add(
        "logsumexp",
        "row-minus-infinity",
        of([[-INF, -INF], [-INF, 1.0]]),
        dim=1,
        gradient=[2.0, 3.0],
        expect={"note": nothing, "grads": [[[0.0, 0.0], [0.0, 3.0]]]},
    )
    table.add("logsumexp", "huge", of([1000.0, 1000.0, -1000.0]), dim=0, gradient=1.0)
    table.add("logsumexp", "0d", draw(), dim=0)
    ordered(table)
    running(table)


def ordered(table):
    table.add("median", "odd", draw(5), gradient=2.0)
    table.add("median", "even", draw(6), gradient=2.0)
    table.add("median", "dim", draw(3, 4), dim=1)
    table.add("median", "dim-keep", draw(3, 5), dim=0, keepdim=True)
    table.add("median", "0d", draw(), gradient=2.0)
    table.add("sort", "last", draw(3, 4))
    table.add("sort", "dim", draw(3, 4), dim=0)
    table.add("sort", "descending", draw(2, 5), dim=1, descending=True)
    table.add("sort", "permuted", draw(3, 4, via=("permute", [1, 0])), dim=0)
    table.add("sort", "0d", draw())
    table.add("sort", "empty", draw(0))
    table.add("topk", "last", draw(3, 5), 2)
    table.add("topk", "dim", draw(4, 3), 2, dim=0)
    table.add("topk", "smallest", draw(6), 3, largest=False)
    table.add("topk", "all", draw(4), 4)
    table.add("argsort", "last", draw(3, 4), gradient="none")
    table.add("argsort", "descending", draw(3, 4), dim=0, descending=True, gradient="none")


def running(table):
    for op in ("cumsum", "cumprod", "logcumsumexp"):
        table.add(op, "rows", draw(2, 4), dim=1)
        table.add(op, "columns", draw(4, 2), dim=0)
        table.add(op, "middle", draw(2, 3, 2), dim=-2)
        table.add(op, "permuted", draw(3, 4, via=("permute", [1, 0])), dim=0)
        table.add(op, "float32", draw(5, dtype="float32"), dim=0)
        table.add(op, "0d", draw(), dim=0)
        table.add(op, "empty", draw(0), dim=0)
        table.add(op, "size-1", draw(3, 1), dim=1)
    table.add("cumprod", "one-zero", of([2.0, 0.0, 3.0, 4.0]), dim=0)
    table.add("cumprod", "two-zeros", of([2.0, 0.0, 3.0, 0.0, 5.0]), dim=0)
    table.add("cumprod", "zeros-dim", of([[0.0, 2.0], [3.0, 0.0], [5.0, 7.0]]), dim=0)
    table.add("logcumsumexp", "huge", of([1000.0, 999.0, -1000.0]), dim=0)
    table.add("diff", "plain", draw(5))
    table.add("diff", "twice", draw(5), n=2)
    table.add("diff", "dim", draw(3, 4), dim=0)
    table.add("diff", "last", draw(3, 4))


def softmaxes(table):
    for op in ("softmax", "log_softmax"):
        table.add(op, "columns", draw(3, 4), dim=0)
        table.add(op, "middle", draw(2, 3, 2), dim=1)
        table.add(op, "0d", draw(), dim=0)
        table.add(op, "size-1", draw(2, 1), dim=1)
        table.add(op, "empty", draw(0, 3), dim=1)
        table.add(op, "float32", draw(2, 3, dtype="float32"), dim=-1)
        table.add(op, "permuted", draw(3, 4, via=("permute", [1, 0])), dim=1)
        table.add(op, "huge", of([[1000.0, 1001.0, -1000.0]]), dim=1)
        table.add(op, "minus-infinity", of([[-INF, 0.0, 1.0], [2.0, -INF, -INF]]), dim=1)
        table.add(op, "all-minus-infinity", of([-INF, -INF]), dim=0)
    table.add("standardize", "one-dim", draw(3, 4), 1)
    table.add("standardize", "two-dims", draw(2, 3, 2), 2)
    table.add("standardize", "eps", draw(2, 5), 1, eps=0.1)
    table.add("standardize", "constant-row", of([[2.0, 2.0, 2.0], [1.0, 2.0, 4.0]]), 1)
    table.add("standardize", "float32", draw(2, 4, dtype="float32"), 1)
    table.add("standardize", "permuted", draw(3, 4, via=("permute", [1, 0])), 1)
    huge = of([[1000.0, 0.0, -1000.0], [-INF, 0.0, 1.0]])
    table.add("cross_entropy_losses", "huge", huge, index([1, 2]))
    table.add("cross_entropy_losses", "float32", draw(3, 4, dtype="float32"), index([3, 0, 1]))
    table.add("cross_entropy_losses", "one-class", draw(2, 1), index([0, 0]))
    permuted = draw(4, 3, via=("permute", [1, 0]))
    table.add("cross_entropy_losses", "permuted", permuted, index([3, 0, 1]))
    table.add("cross_entropy_losses", "empty", draw(0, 3), index([]))


# ---------------------------------------------------------------- shapes and indexing


def shapes(table):
    cube = draw(2, 3, 2)
    table.add("view", "inferred", cube, [-1, 4])
    table.add("view", "0d", draw(1, 1), [])
    table.add("reshape", "inferred", cube, [3, -1])
    table.add("reshape", "empty", draw(0, 3), [3, 0])
    table.add("transpose", "negative", cube, -1, 0)
    table.add("permute", "negative", cube, [-1, 0, 1])
    table.add("squeeze", "not-1", cube, 0)
    table.add("squeeze", "all-1", draw(1, 1))
    table.add("unsqueeze", "last", cube, -1)
    table.add("unsqueeze", "0d", draw(), 0)
    table.add("expand", "kept", draw(3, 1), [-1, 4])
    table.add("expand", "0d", draw(), [2, 2])
    table.add("select", "negative", cube, 1, -1)
    table.add("narrow", "negative", draw(3, 4), -1, 1, 2)
    table.add("slice", "step", draw(7, 2), 0, 1, 6, 2)
    table.add("slice", "negative", draw(2, 5), 1, -3, -1)
    table.add("to", "widen", draw(3, dtype="float32"), {"dtype": "float64"})
    table.add("mT", "batch", cube)
    for number, pieces in enumerate(([1, 3, 2], 4)):
        table.add("split", f"sizes-{number}", draw(6), pieces, 0)
    table.add("split", "dim", draw(2, 5), 2, dim=1)
    table.add("chunk", "uneven", draw(7), 3)
    table.add("chunk", "dim", draw(2, 4), 2, dim=1)
    table.add("unbind", "rows", draw(3, 2))
    table.add("unbind", "columns", draw(3, 2), dim=1)
    table.add("cat", "columns", [draw(2, 1), draw(2, 3)], dim=-1)
    table.add("cat", "one-empty", [draw(0, 2), draw(3, 2)], dim=0)
    table.add("cat", "constant", [draw(2), draw(3, grad=False), draw(1)], dim=0)
    table.add("cat", "mixed", [draw(2, dtype="float32"), draw(3)], dim=0)
    table.add("stack", "rows", [draw(3), draw(3)])
    table.add("stack", "last", [draw(2, 2), draw(2, 2), draw(2, 2)], dim=-1)
    table.add("stack", "0d", [draw(), draw()])
    table.add("repeat", "more-dims", draw(2, 3), [2, 1, 3])
    table.add("repeat", "none", draw(2), [0])
    table.add("tile", "fewer-dims", draw(2, 3), [2])
    table.add("tile", "more-dims", draw(3), [2, 2])
    table.add("flip", "one", draw(2, 3), [1])
    table.add("flip", "both", draw(2, 3), [0, -1])
    table.add("roll", "flat", draw(2, 3), 2)
    table.add("roll", "dim", draw(2, 3), 1, 1)
    table.add("roll", "dims", draw(3, 4), [1, -2], [0, 1])
    for op in ("triu", "tril"):
        table.add(op, "square", draw(3, 3))
        table.add(op, "above", draw(3, 4), diagonal=1)
        table.add(op, "below", draw(4, 3), diagonal=-1)
        table.add(op, "batch", draw(2, 2, 2))
    table.add("diagonal", "square", draw(3, 3))
    table.add("diagonal", "offset", draw(3, 4), offset=1)
    table.add("diagonal", "below", draw(3, 4), offset=-1)
    table.add("diagonal", "batch", draw(2, 3, 3), dim1=1, dim2=2)
    table.add("trace", "square", draw(3, 3), gradient=2.0)
    table.add("trace", "wide", draw(2, 4), gradient=2.0)
    table.add("pad", "last", draw(2, 3), [1, 2])
    table.add("pad", "two-dims", draw(2, 3), [1, 0, 2, 1], value=0.5)
    table.add("pad", "mode", draw(3), [0, 2], mode="constant", value=-1.0)
    table.add("unfold", "overlap", draw(7), 0, 3, 2)
    table.add("unfold", "dim", draw(2, 5), 1, 2, 1)


def indexing(table):
    grid, cube = draw(3, 4), draw(2, 3, 2)
    table.add("getitem", "new-axis", draw(3), [None])
    table.add("getitem", "element", grid, [1, -2])
    table.add("getitem", "ellipsis-step", cube, [ELLIPSIS, window(None, None, 2)])
    table.add("getitem", "empty-slice", grid, [window(2, 2)])
    table.add("getitem", "mask-2d", grid, [mask((np.arange(12).reshape(3, 4) % 3 == 0).tolist())])
    table.add("getitem", "mask-rows", grid, [mask([True, False, True])])
    table.add("getitem", "mask-none", grid, [mask([False, False, False])])
    table.add("getitem", "pairs", grid, [index([0, 2, 0]), index([1, -1, 1])])
    table.add("getitem", "broadcast-pairs", grid, [index([[0], [2]]), index([1, 1, 3])])
    table.add("getitem", "columns", grid, [window(), index([3, 0, 3])])
    table.add("getitem", "row-and-index", cube, [1, window(), index([1, 1, 0])])
    table.add("getitem", "permuted", draw(3, 4, via=("permute", [1, 0])), [index([3, 3])])
    table.add("getitem", "0d-index", grid, [index(2)])
    repeated = index([2, 0, 2])
    table.add(
        "index_select", "repeated", of([1.0, 2.0, 3.0]), 0, repeated, gradient=[1.0, 10.0, 100.0]
    )
    table.add("index_select", "columns", grid, 1, index([3, 3, 0]))
    table.add("index_select", "empty", grid, 0, index([]))
    table.add("index_select", "permuted", draw(4, 3, via=("permute", [1, 0])), -1, index([1, 1]))
    table.add("gather", "repeated", of([0.1]), 0, index([0, 0]), gradient=[0.2, 0.3])
    table.add("gather", "rows", grid, 0, index([[0, 2, 2, 1], [1, 2, 0, 1]]))
    table.add("gather", "negative-dim", grid, -1, index([[3], [0], [0]]))
    rows = index([[0, 2, 1], [2, 1, 0]])
    table.add("scatter", "rows", draw(3, 3), 0, rows, draw(2, 3))
    table.add("scatter", "columns", draw(2, 4), 1, index([[3, 0], [1, 2]]), draw(2, 2))
    table.add("scatter_add", "repeated", draw(3), 0, index([1, 1, 2, 1]), draw(4))
    table.add("scatter_add", "columns", draw(2, 3), 1, index([[0, 0], [2, 1]]), draw(2, 2))
    table.add("index_add", "repeated", draw(3), 0, index([2, 0, 2]), draw(3))
    table.add("index_add", "alpha", draw(3, 2), 0, index([1, 1]), draw(2, 2), alpha=0.5)
    table.add("index_add", "columns", draw(2, 3), 1, index([2, 2]), draw(2, 2))
    table.add("take_along_dim", "dim", grid, index([[0, 0], [3, 1], [2, 2]]), dim=1)
    table.add("take_along_dim", "broadcast", grid, index([[1, 0, 2, 2]]), dim=0)
    table.add("take_along_dim", "flat", grid, index([5, 5, 0]))
    table.add("where", "number", mask([True, False]), draw(2), 0.0)
    table.add("where", "hidden-nan", mask([True, False]), of([1.0, NAN]), of([INF, 2.0]))
    table.add("where", "0d", mask(True), draw(2), draw())
    table.add("where", "mixed", mask([True, False]), draw(2, dtype="float32"), draw(2))
    table.add("masked_select", "row", draw(2, 3), mask([True, False, True]))
    table.add("masked_select", "none", draw(2), mask([False, False]))
    table.add("masked_fill", "row", grid, mask([True, False, False, True]), -INF)
    table.add("masked_fill", "all", draw(2), mask(True), 7.0)


# ---------------------------------------------------------------- linear algebra


def matrices(table):
    table.add("matmul", "vectors", draw(3), draw(3))
    table.add("matmul", "vector-matrix", draw(3), draw(3, 2))
    table.add("matmul", "matrix-vector", draw(2, 3), draw(3))
    table.add("matmul", "batch-vector", draw(2, 2, 3), draw(3))
    table.add("matmul", "vector-batch", draw(3), draw(2, 3, 2))
    table.add("matmul", "matrix-batch", draw(2, 3), draw(2, 3, 2))
    table.add("matmul", "batch-broadcast", draw(2, 1, 2, 3), draw(2, 3, 1))
    table.add("matmul", "inner-empty", draw(2, 0), draw(0, 3))
    table.add("matmul", "outer-empty", draw(0, 2), draw(2, 3))
    table.add("matmul", "float32", draw(2, 3, dtype="float32"), draw(3, 2, dtype="float32"))
    mixed = draw(2, 3, dtype="float32"), draw(3, 2)
    table.add("matmul", "mixed", *mixed, reference=in_float64("matmul"))
    permuted = draw(2, 3, via=("permute", [1, 0])), draw(4, 3, via=("slice", [[0, 4, 2]]))
    table.add("matmul", "permuted", *permuted)
    table.add("matmul", "constant", draw(2, 2, grad=False), draw(2, 2))
    table.add("outer", "plain", draw(2), draw(3))
    table.add("dot", "plain", draw(3), draw(3))
    table.add("dot", "empty", draw(0), draw(0))
    table.add("mv", "plain", draw(2, 3), draw(3))
    table.add("mm", "plain", draw(2, 3), draw(3, 4))
    table.add("bmm", "plain", draw(2, 2, 3), draw(2, 3, 2))
    table.add("einsum", "matmul", "ij,jk->ik", draw(2, 3), draw(3, 2))
    table.add("einsum", "batch", "bij,bjk->bik", draw(2, 2, 3), draw(2, 3, 2))
    table.add("einsum", "trace", "ii", draw(3, 3))
    table.add("einsum", "diagonal", "ii->i", draw(3, 3))
    table.add("einsum", "transpose", "ij->ji", draw(2, 3))
    table.add("einsum", "outer", "i,j->ij", draw(2), draw(3))
    table.add("einsum", "inner", "ij,ij->", draw(2, 3), draw(2, 3))
    table.add("einsum", "implicit", "ij,jk", draw(2, 3), draw(3, 2))
    table.add("einsum", "summed-out", "ij,k->k", draw(2, 3), draw(2))
    table.add("einsum", "three", "ij,jk,kl->il", draw(2, 2), draw(2, 3), draw(3, 2))
    table.add("einsum", "ellipsis", "...ij,...jk->...ik", draw(2, 2, 3), draw(1, 3, 2))
    table.add("tensordot", "count", draw(2, 3, 2), draw(3, 2, 4), dims=2)
    table.add("tensordot", "pairs", draw(2, 3), draw(4, 3), dims=[[1], [1]])
    table.add("tensordot", "outer", draw(2), draw(3), dims=0)
    regular = of([[2.0, -1.0, 0.5], [0.3, 1.5, -0.7], [1.0, 0.2, 3.0]])
    pair = of([[[2.0, 1.0], [0.5, 3.0]], [[0.0, 1.0], [-2.0, 1.0]]])
    for op in ("inverse", "det", "slogdet"):
        table.add(op, "3x3", regular)
        table.add(op, "batch", pair)
        table.add(op, "1x1", of([[-2.5]]))
    table.add("slogdet", "negative", of([[1.0, 2.0], [3.0, 4.0]]), gradient=2.0)
    table.add("solve", "matrix", regular, draw(3, 2))
    table.add("solve", "vector", regular, draw(3))
    table.add("solve", "batch", pair, draw(2, 2, 1))
    table.add("cholesky", "2x2", of([[4.0, 1.0], [1.0, 3.0]]))
    table.add("cholesky", "3x3", of([[4.0, 1.0, -0.5], [1.0, 3.0, 0.2], [-0.5, 0.2, 2.0]]))


def convolutions(table):
    signal, kernel = draw(2, 2, 7), draw(3, 2, 3)
    table.add("conv1d", "plain", signal, kernel)
    table.add("conv1d", "bias", signal, kernel, draw(3))
    table.add("conv1d", "stride-padding", signal, kernel, draw(3), stride=2, padding=1)
    table.add("conv1d", "dilation", signal, kernel, dilation=2)
    table.add("conv1d", "groups", draw(1, 4, 5), draw(2, 2, 3), groups=2)
    image, kernel = draw(1, 2, 5, 4), draw(2, 2, 3, 2)
    table.add("conv2d", "plain", image, kernel)
    table.add("conv2d", "bias", image, kernel, draw(2))
    table.add("conv2d", "stride-padding", image, kernel, stride=2, padding=1)
    table.add("conv2d", "pairs", image, kernel, draw(2), stride=[2, 1], padding=[0, 1])
    table.add("conv2d", "dilation", image, draw(2, 2, 2, 2), dilation=[2, 1])
    table.add("conv2d", "groups", image, draw(2, 1, 2, 2), groups=2)


# ---------------------------------------------------------------- losses


def losses(table):
    for reduction in ("none", "mean", "sum"):
        a, b = draw(2, 3), draw(2, 3)
        table.add("mse_loss", reduction, a, b, reduction=reduction)
        table.add("l1_loss", reduction, a, b, reduction=reduction)
        table.add("huber_loss", reduction, a, b, reduction=reduction)
        labels = of([[1.0, 0.0, 0.3], [0.0, 1.0, 1.0]], grad=False)
        table.add("binary_cross_entropy_with_logits", reduction, a, labels, reduction=reduction)
        scores = draw(3, 4, low=-3, high=-0.1)
        table.add("nll_loss", reduction, scores, index([2, 0, 3]), reduction=reduction)
        target = draw(2, 3, low=0.1, high=0.9)
        table.add("kl_div", reduction, draw(2, 3, low=-3, high=-0.1), target, reduction=reduction)
    table.add("mse_loss", "default", draw(4), draw(4, grad=False))
    table.add("mse_loss", "float32", draw(3, dtype="float32"), draw(3, dtype="float32"))
    table.add("l1_loss", "at-zero", of([1.0, 2.0]), of([1.0, 3.0]), reduction="sum")
    seam = of([0.0, 0.5, -0.5, 3.0]), of([0.0, 0.0, 0.0, 0.0])
    table.add("huber_loss", "seam", *seam, reduction="sum", delta=0.5)
    extremes = of([1000.0, -1000.0, 0.0]), of([0.0, 1.0, 0.5], grad=False)
    name = "binary_cross_entropy_with_logits"
    table.add(name, "extremes", *extremes, reduction="none")
    table.add(
        name, "weight", draw(3), of([1.0, 0.0, 1.0], grad=False), of([0.5, 1.0, 2.0], grad=False)
    )
    positive = of([2.0, 0.5, 1.5], grad=False)
    table.add(name, "pos-weight", draw(3), of([1.0, 0.0, 1.0], grad=False), pos_weight=positive)
    weights = of([0.5, 1.0, 2.0, 1.5], grad=False)
    scores = draw(3, 4, low=-3, high=-0.1)
    table.add("nll_loss", "weight", scores, index([2, 0, 3]), weight=weights)
    table.add("nll_loss", "ignored", scores, index([2, -100, 3]))
    table.add(
        "kl_div", "zero-target", of([-1.0, -2.0]), of([0.0, 1.0], grad=False), reduction="sum"
    )
    logs = draw(2, 3, low=-3, high=-0.1), draw(2, 3, low=-3, high=-0.1)
    table.add("kl_div", "log-target", *logs, reduction="sum", log_target=True)
    for label, kwargs in (("mean", {}), ("beta", {"beta": 0.4}), ("beta-0", {"beta": 0.0})):
        table.add("smooth_l1_loss", label, draw(2, 3), draw(3), **kwargs)
    table.add("smooth_l1_loss", "none", draw(2, 3), draw(2, 3), reduction="none")
    table.add("kl_div", "batchmean", logs[0], draw(2, 3, low=0.1, high=0.9), reduction="batchmean")


# ---------------------------------------------------------------- without a gradient


def without_gradient(table):
    points = of([-1.5, -0.5, 0.0, 0.5, 1.5, 2.5])
    for op in ("floor", "ceil", "round", "trunc", "sign"):
        table.add(op, "halves", points, gradient="none")
        table.add(op, "float32", of([-1.5, 2.5], dtype="float32"), gradient="none")
    strange = of([NAN, INF, -INF, 0.0, 1.0])
    for op in ("isnan", "isinf", "isfinite"):
        table.add(op, "strange", strange, gradient="none")
    for op in ("<", "<=", ">", ">=", "==", "!="):
        table.add(op, "broadcast", draw(2, 1), of([0.0, 1.0, -1.0]), gradient="none")
        table.add(op, "number", of([0.0, 1.0, NAN]), 1.0, gradient="none")
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        table.add(op, "equal", of([0.0, 1.0, 2.0]), of([1.0, 1.0, 1.0]), gradient="none")
    for op in ("argmax", "argmin"):
        table.add(op, "flat", draw(2, 3), gradient="none")
        table.add(op, "dim", draw(2, 3), dim=1, gradient="none")
        table.add(op, "keep", draw(2, 3), dim=0, keepdim=True, gradient="none")
        table.add(op, "first-of-ties", of([1.0, 3.0, 3.0, 1.0]), gradient="none")
    table.add("count_nonzero", "flat", of([[0.0, 2.0], [NAN, 0.0]]), gradient="none")
    table.add("count_nonzero", "dim", of([[0.0, 2.0], [1.0, 3.0]]), dim=1, gradient="none")
    for op in ("all", "any"):
        table.add(op, "dim", mask([[True, False], [True, True]]), dim=1, gradient="none")
        table.add(op, "floats", of([0.0, 2.0]), gradient="none")
        table.add(op, "empty", Leaf(value=[], shape=(0,), dtype="bool"), gradient="none")
    truths = mask([True, True, False, False]), mask([True, False, True, False])
    for op in ("and", "or", "xor"):
        table.add(f"logical_{op}", "bool", *truths, gradient="none")
        table.add(f"logical_{op}", "floats", of([0.0, 2.0]), of([1.0, NAN]), gradient="none")
        table.add(f"bitwise_{op}", "bool", *truths, gradient="none")
        table.add(f"bitwise_{op}", "int64", index([12, -3]), index([10, 5]), gradient="none")
    for op in ("logical_not", "bitwise_not"):
        table.add(op, "bool", truths[0], gradient="none")
        table.add(op, "int64", index([0, 5, -1]), gradient="none")
    for op in ("//", "%"):
        table.add(op, "int64", index([7, -7, 7, -7]), index([2, 2, -2, -2]), gradient="none")
    table.add("//", "floats", of([7.5, -7.5]), of([2.0, 2.0]), gradient="none")
    table.add("floor_divide", "number", of([7.5, -7.5]), 2, gradient="none")
    table.add("remainder", "int64", index([7, -7]), index([3, 3]), gradient="none")
    table.add("one_hot", "classes", index([0, 2, 1]), 3, gradient="none")
    table.add("one_hot", "2d", index([[0, 2], [1, 1]]), num_classes=4, gradient="none")
    table.add("one_hot", "inferred", index([0, 2]), gradient="none")


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    table = Table()
    for family in (
        unary,
        binary,
        reductions,
        softmaxes,
        shapes,
        indexing,
        matrices,
        convolutions,
        losses,
        without_gradient,
    ):
        family(table)
    table.write(HERE / "ops_more.json")


if __name__ == "__main__":
    main()
