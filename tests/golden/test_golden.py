"""Every golden case: value, shape, dtype and gradients of one operation against PyTorch's.

`ops.json` and `ops_more.json` hold the cases; the second is made by `make_ops.py`. Random inputs
and finite differences are elsewhere (`tests/ops`).
"""

import json
import operator
import os
from pathlib import Path

import numpy as np
import pytest

import kael
from kael.kernels import tiers
from kael.ops import lookup

HERE = Path(__file__).parent
FILES = ("ops.json", "ops_more.json")
CASES = {
    case["id"]: case for name in FILES for case in json.loads((HERE / name).read_text())["cases"]
}
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "getitem": lambda x, items: x[tuple(items)],
    "T": operator.attrgetter("T"),
    "mT": operator.attrgetter("mT"),
}
NON_FINITE = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
# dtype: (relative, absolute) for values, then for gradients
TOLERANCES = {
    "float64": ((1e-10, 1e-12), (1e-8, 1e-11)),
    "float32": ((2e-5, 2e-6), (2e-5, 2e-6)),
}


def numbers(value):
    if isinstance(value, list):
        return [numbers(item) for item in value]
    return NON_FINITE.get(value, value) if isinstance(value, str) else value


def array(value, shape, dtype):
    return np.array(numbers(value), dtype=dtype).reshape(shape)


def seen_through(leaf, via):
    """The operand: the leaf itself, or the view of it that the case asks for."""
    if not via:
        return leaf
    ((kind, argument),) = via.items()
    if kind == "permute":
        return leaf.permute(argument)
    if kind == "expand":
        return leaf.expand(argument)
    assert kind == "slice"
    return leaf[tuple(slice(*window) for window in argument)]


def argument(written, operands):
    if isinstance(written, str):
        if written.startswith("$"):
            return operands[int(written[1:])]
        return NON_FINITE.get(written, written)
    if isinstance(written, list):
        return [argument(item, operands) for item in written]
    if isinstance(written, dict):
        if "slice" in written:
            return slice(*written["slice"])
        return ... if "ellipsis" in written else np.dtype(written["dtype"])
    return written


def run(case):
    """Evaluate the case: its leaves and its outputs, always as a list."""
    leaves = [
        kael.tensor(
            array(given["value"], given["shape"], given["dtype"]),
            requires_grad=given["requires_grad"],
        )
        for given in case["inputs"]
    ]
    operands = [
        seen_through(leaf, given.get("via"))
        for leaf, given in zip(leaves, case["inputs"], strict=True)
    ]
    call = OPERATORS.get(case["op"]) or lookup(case["op"])
    assert call is not None, f"kael has no operation {case['op']!r}"
    result = call(
        *(argument(written, operands) for written in case["args"]),
        **{name: argument(v, operands) for name, v in case.get("kwargs", {}).items()},
    )
    return leaves, list(result) if isinstance(result, (list, tuple)) else [result]


def expected_outputs(case):
    """(value, shape, dtype) of every output."""
    expect = case["expect"]
    keys = ("value", "shape", "dtype")
    if isinstance(expect["dtype"], list):
        return list(zip(*(expect[key] for key in keys), strict=True))
    return [tuple(expect[key] for key in keys)]


def compare(got, value, shape, dtype, what, *, gradient=False):
    assert got.shape == tuple(shape), f"{what}: shape"
    assert got.dtype == np.dtype(dtype), f"{what}: dtype"
    expected = array(value, shape, dtype)
    if dtype not in TOLERANCES:
        np.testing.assert_array_equal(got.numpy(), expected, err_msg=what)
        return
    rtol, atol = TOLERANCES[dtype][gradient]
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=atol, err_msg=what)


def send_back(case, outputs, expected):
    """Run backward from the outputs with the upstream gradients of the case."""
    upstream = case["gradient"]
    if upstream is None:
        (output,) = outputs
        output.backward()
        return
    several = isinstance(case["expect"]["dtype"], list)
    for output, g, (_, shape, dtype) in zip(
        outputs, upstream if several else [upstream], expected, strict=True
    ):
        # Outputs of one operation may share a node, which a first backward would release.
        output.backward(kael.tensor(array(g, shape, dtype)), retain_graph=several)


@pytest.mark.parametrize("tier", ["auto", "numpy", "numba"])
@pytest.mark.parametrize("name", CASES)
def test_operation_matches_pytorch(name, tier):
    with tiers.only(tier):
        check(CASES[name])
    # A twin that fails hands over to NumPy, and the numbers would be right all the same.
    assert tiers.failure() is None or os.environ.get("NUMBA_DISABLE_JIT")


def check(case):
    leaves, outputs = run(case)
    expected = expected_outputs(case)
    assert len(outputs) == len(expected)
    for output, (value, shape, dtype) in zip(outputs, expected, strict=True):
        compare(output, value, shape, dtype, "value")
    if "gradient" not in case:
        for output in outputs:
            assert not output.requires_grad
            assert output.grad_fn is None
        return
    send_back(case, outputs, expected)
    for k, (leaf, given, grad) in enumerate(
        zip(leaves, case["inputs"], case["expect"]["grads"], strict=True)
    ):
        if grad is None:
            assert leaf.grad is None, f"input {k} requires no gradient"
            continue
        assert leaf.grad is not None, f"input {k} got no gradient"
        compare(leaf.grad, grad, given["shape"], given["dtype"], f"gradient {k}", gradient=True)


def test_ids_are_unique():
    total = sum(len(json.loads((HERE / name).read_text())["cases"]) for name in FILES)
    assert len(CASES) == total


@pytest.mark.parametrize("key", ["value", "grads"])
def test_a_wrong_number_is_noticed(key):
    case = json.loads(json.dumps(CASES["tanh/m01-2x3"]))
    wrong = case["expect"]["value"] if key == "value" else case["expect"]["grads"][0]
    wrong[1][2] *= 1 + 1e-7
    with pytest.raises(AssertionError):
        check(case)
