"""One formula through every door a user has: functions, methods, the command line, spec files.

A `Case` is a formula in the expression language with its inputs, value and gradients; a door
evaluates it in its own way and answers with (value, {input: gradient}).
"""

import ast
import json
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import kael

INF, NAN = math.inf, math.nan


class Case(NamedTuple):
    """A formula, its differentiable inputs, and what is right."""

    text: str
    inputs: dict[str, Any]
    value: Any
    grads: dict[str, Any]
    upstream: Any = None
    constants: dict[str, Any] = {}  # noqa: RUF012 (never written to)


class Names(dict):
    """Leaves first, then kael's own functions."""

    def __missing__(self, name):
        try:
            return getattr(kael, name)
        except AttributeError:
            raise KeyError(name) from None


class AsMethods(ast.NodeTransformer):
    """`f(x, …)` as `x.f(…)` wherever a tensor is what comes first."""

    def visit_Call(self, node):
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        first = node.args[0] if node.args else None
        plain = (ast.Constant, ast.List, ast.Tuple)
        if name == "where" or first is None or isinstance(first, plain):
            return node
        if not hasattr(kael.Tensor, name):
            return node
        return ast.Call(ast.Attribute(first, name, ast.Load()), node.args[1:], node.keywords)


class Prefixed(ast.NodeTransformer):
    """`f(x)` as `kael.f(x)`, and inf and nan as Python has them."""

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name):
            node.func = ast.Attribute(ast.Name("kael", ast.Load()), node.func.id, ast.Load())
        return node

    def visit_Name(self, node):
        if node.id in ("inf", "nan"):
            return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(node.id)], [])
        return node


def rewritten(text, transformer):
    tree = transformer().visit(ast.parse(text, mode="eval"))
    return ast.unparse(ast.fix_missing_locations(tree))


def _in_python(case, dtype, text):
    leaves = {name: kael.tensor(real(v), dtype, True) for name, v in case.inputs.items()}
    constants = {name: kael.tensor(constant(v)) for name, v in case.constants.items()}
    names = Names({**leaves, **constants, "inf": INF, "nan": NAN})
    out = eval(text, {"__builtins__": {}}, names)
    upstream = np.ones(out.shape) if case.upstream is None else np.array(real(case.upstream))
    out.backward(upstream.astype(out.dtype))
    return out.tolist(), {name: leaf.grad.tolist() for name, leaf in leaves.items()}


def functions(case, dtype, kael_command, folder):
    return _in_python(case, dtype, case.text)


def methods(case, dtype, kael_command, folder):
    return _in_python(case, dtype, rewritten(case.text, AsMethods))


def expression(case, dtype, kael_command, folder):
    """`kael backward TEXT`: a result of several numbers is weighted and summed here."""
    value, _ = _in_python(case, dtype, case.text)
    scalar = np.ndim(value) == 0
    ct = np.ones(np.shape(value)) if case.upstream is None else real(case.upstream)
    text = case.text if scalar else f"sum(({case.text}) * ct)"
    options = [w for n, v in case.inputs.items() for w in ("-i", f"{n}={literal(v)}")]
    options += [w for n, v in case.constants.items() for w in ("-c", f"{n}={literal(v)}")]
    if not scalar:
        options += ["-c", f"ct={literal(np.asarray(ct).tolist())}"]
    command = ("backward", *options, "--format", "json", "--dtype", dtype, "--", text)
    found, grads = _printed(kael_command(*command))
    return (found if scalar else value), grads


def yaml(case, dtype, kael_command, folder):
    path = folder / "case.yaml"
    path.write_text(yaml_text(case), encoding="utf-8")
    return _printed(kael_command("backward", str(path), "--format", "json", "--dtype", dtype))


def python_spec(case, dtype, kael_command, folder):
    path = folder / "case.py"
    inputs = [f"{name}={python(v)}" for name, v in case.inputs.items()]
    inputs += [
        f"{n}=kael.Input({python(v)}, requires_grad=False)" for n, v in case.constants.items()
    ]
    upstream = "'ones'" if case.upstream is None else python(case.upstream)
    path.write_text(
        f"import kael\n\n@kael.spec({', '.join(inputs)}, upstream={upstream})\n"
        f"def case({', '.join([*case.inputs, *case.constants])}):\n"
        f"    return {rewritten(case.text, Prefixed)}\n",
        encoding="utf-8",
    )
    return _printed(kael_command("backward", str(path), "--format", "json", "--dtype", dtype))


DOORS = [functions, methods, expression, yaml, python_spec]
each_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)


def yaml_text(case, **more):
    inputs = {name: literal(v) for name, v in case.inputs.items()}
    inputs |= {
        n: f"{{value: {literal(v)}, requires_grad: false}}" for n, v in case.constants.items()
    }
    lines = ["inputs:", *(f"  {name}: {text}" for name, text in inputs.items())]
    lines.append(f"output: {json.dumps(case.text)}")
    lines.append(f"upstream: {'ones' if case.upstream is None else literal(case.upstream)}")
    lines += [f"{key}: {text}" for key, text in more.items()]
    return "\n".join(lines) + "\n"


def real(value):
    """Numbers typed without a point are reals here, as they are in a spec."""
    return np.asarray(value, float)


def constant(value):
    array = np.asarray(value)
    return array if array.dtype.kind == "b" else array.astype(float)


def literal(value):
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(float(value))


def python(value):
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(python(v) for v in value) + "]"
    return str(value) if isinstance(value, bool) else f"float('{float(value)!r}')"


def _printed(ran):
    rows = json.loads(ran.out)["results"]
    assert len(rows) == 1, ran.out
    (row,) = rows
    assert row["error"] is None, row["error"]
    assert ran.code == 0, ran.err
    grads = {name: grad and numbers(grad["value"]) for name, grad in row["grads"].items()}
    return numbers(row["output"]["value"]), grads


def numbers(value):
    if isinstance(value, list):
        return [numbers(v) for v in value]
    return {"NaN": NAN, "Infinity": INF, "-Infinity": -INF}.get(value, value)


def holds(case, door, kael_command, folder, dtype="float64"):
    """Evaluate the case through a door and compare with what is right."""
    value, grads = door(case, dtype, kael_command, folder)
    same(value, case.value, dtype)
    for name, expected in case.grads.items():
        assert np.shape(grads[name]) == np.shape(case.inputs[name])
        same(grads[name], expected, dtype)


def same(found, expected, dtype="float64"):
    tolerance = 1e-13 if dtype == "float64" else 2e-6
    expected = np.broadcast_to(np.asarray(expected, float), np.shape(found))
    np.testing.assert_allclose(np.asarray(found, float), expected, rtol=tolerance, atol=0)
