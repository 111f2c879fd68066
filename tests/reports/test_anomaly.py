# ruff: noqa: E501 (a table reads best with one row a line)
"""`kael anomaly` and anomaly mode: origins, operands, grades, and what overwrote a saved value.

The search itself is held in `tests/inspect`; here it goes through the command line and spec files.
"""

import json
import math

import pytest
from doors import INF, NAN, Case, Prefixed, literal, python, rewritten, yaml_text

import kael as k


def by_expression(case, folder):
    options = [w for n, v in case.inputs.items() for w in ("-i", f"{n}={literal(v)}")]
    options += [w for n, v in case.constants.items() for w in ("-c", f"{n}={literal(v)}")]
    return (*options, "--", case.text)


def by_yaml(case, folder):
    (folder / "case.yaml").write_text(yaml_text(case), encoding="utf-8")
    return (str(folder / "case.yaml"),)


def by_python(case, folder):
    inputs = [f"{name}={python(v)}" for name, v in case.inputs.items()]
    inputs += [
        f"{n}=kael.Input({python(v)}, requires_grad=False)" for n, v in case.constants.items()
    ]
    names = ", ".join([*case.inputs, *case.constants])
    (folder / "case.py").write_text(
        f"import kael\n\n@kael.spec({', '.join(inputs)})\ndef case({names}):\n"
        f"    return {rewritten(case.text, Prefixed)}\n",
        encoding="utf-8",
    )
    return (str(folder / "case.py"),)


each_way = pytest.mark.parametrize("way", [by_expression, by_yaml, by_python])


def found(kael, *arguments):
    ran = kael("anomaly", "--format", "json", *arguments)
    (row,) = json.loads(ran.out)["results"]
    assert row["error"] is None, row["error"]
    return row["findings"], ran.code


def formula(text, constants=None, **inputs):
    return Case(text, inputs, None, {}, None, constants or {})


# C1: both passes, NaN and infinities, where they are born.
# source: pytorch #160016, pytorch #83537, pytorch #1274

ORIGINS = [
    (formula("sum(sqrt(x))", x=[0, 4]), "backward", "sqrt", "Infinity", [0]),
    (formula("sum(1/x)", x=[0]), "forward", "div", "Infinity", [0]),
    (formula("sum(log(x))", x=[-1]), "forward", "log", "NaN", [0]),
    (formula("max(x)", x=[1, NAN, 2]), "forward", "input", "NaN", [1]),
    (formula("exp(x)", x=[1000]), "forward", "exp", "Infinity", [0]),
    (formula("exp(x)[0]/sum(exp(x))", x=[1000, 0]), "forward", "exp", "Infinity", [0]),
    (formula("sum(x ** 0.5)", x=[0, 4]), "backward", "pow", "Infinity", [0]),
    (formula("sum(x ** -1)", x=[2, 0]), "forward", "pow", "Infinity", [1]),
    (formula("sum(acos(x))", x=[0, 1]), "backward", "acos", "Infinity", [1]),
    (formula("sum(rsqrt(x))", x=[1, 0]), "forward", "rsqrt", "Infinity", [1]),
    (formula("min(x)", x=[1, NAN, 2]), "forward", "input", "NaN", [1]),
    (formula("sum(x)", x=[1, INF]), "forward", "input", "Infinity", [1]),
    (formula("prod(x)", x=[1e200, 1e200]), "forward", "prod", "Infinity", []),
    (formula("sum(x @ y)", x=[[1e200]], y=[[1e200]]), "forward", "matmul", "Infinity", [0, 0]),
    (formula("sum(softmax(x, dim=0))", x=[-INF, -INF]), "forward", "input", "Infinity", [0]),
    (formula("log(sum(exp(x)))", x=[-1000, -2000]), "forward", "log", "Infinity", []),
    (formula("log(softmax(x, dim=0)).sum()", x=[0, -1000]), "forward", "log", "Infinity", [1]),
    (formula("sqrt(var(x))", x=[2, 2]), "backward", "sqrt", "Infinity", []),
    (formula("sqrt(sum(x**2))", x=[0, 0]), "backward", "sqrt", "Infinity", []),
    (formula("sum(a / b)", a=[1, 2, 3], b=[1, 0, 2]), "forward", "div", "Infinity", [1]),
]  # fmt: skip


@each_way
@pytest.mark.parametrize(
    ("case", "phase", "op", "kind", "index"), ORIGINS, ids=[row[0].text for row in ORIGINS]
)
def test_the_first_finding_is_the_origin(case, phase, op, kind, index, way, kael, tmp_path):
    findings, code = found(kael, *way(case, tmp_path))
    assert code == 1
    first = findings[0]
    assert (first["grade"], first["phase"], first["op"]) == ("error", phase, op)
    assert (first["kind"], first["indices"][0]) == (kind, index)
    assert (first["node"] is None) == (op == "input")
    assert first["reaches"]
    assert first["reason"]


@each_way
def test_a_masked_logit_breaks_the_value_alone_and_still_exits_1(way, kael, tmp_path):
    case = formula("-sum(y * log_softmax(z, dim=0))", {"y": [0, 1, 0]}, z=[-INF, 0, 0])
    findings, code = found(kael, *way(case, tmp_path))
    assert code == 1
    origin, product = findings
    assert (origin["op"], origin["kind"]) == ("input", "Infinity")
    assert (product["op"], product["kind"], product["reason"]) == ("mul", "NaN", "0 * inf")
    assert product["reaches"] == ["output"]


@each_way
@pytest.mark.parametrize(
    "case",
    [
        formula("tanh(x*w + x).sum()", x=[1, 2], w=[0.5, -1]), formula("norm(x)", x=[0, 0]),
        formula("norm(x)", x=[1e200, 1]), formula("softmax(x, dim=0)[0]", x=[1000, 0]),
        formula("logsumexp(x, dim=0)", x=[1e4, 1e4]), formula("prod(x)", x=[0, 2, 3]),
        formula("sum(x ** 2)", x=[0, 1]),
        formula("layer_norm(x, 3).sum()", x=[1e200, 2e200, 4e200]),
        formula("sum(where(x > 2, log(where(x > 2, x, 1)), 2*x))", x=[0, 2, 3]),
    ],
    ids=lambda case: case.text,
)  # fmt: skip
def test_what_is_finite_has_no_finding(case, way, kael, tmp_path):
    assert found(kael, *way(case, tmp_path)) == ([], 0)


@pytest.mark.parametrize("command", ["backward", "trace", "gradcheck"])
def test_the_option_stops_at_nan_in_other_commands(command, kael):
    trap = ("where(x > 2, log(x), 2*x).sum()", "-i", "x=[0, 3]")
    assert kael(command, *trap, "--anomaly").code == 1


def test_the_mode_in_python_stays_with_nan_unless_asked():
    x = k.tensor([0.0, 4.0], requires_grad=True)
    with k.debug.set_anomaly_detection(True):
        k.sqrt(x).sum().backward()
        assert x.grad.tolist() == [INF, 0.25]
        for quiet in (
            k.log(k.tensor([-1.0], requires_grad=True)),
            k.max(k.tensor([1.0, NAN], requires_grad=True)),
        ):
            quiet.sum().backward()
    for function, value in ((k.sqrt, 0.0), (k.reciprocal, 0.0), (k.exp, 1000.0), (k.acos, 1.0)):
        out = function(k.tensor([value], requires_grad=True)).sum()
        with (
            k.debug.set_anomaly_detection(True, check_inf=True),
            pytest.raises(k.KaelError, match="returned Infinity in its gradient"),
        ):
            out.backward()


# C2: the elements, their operands and shapes. source: pytorch #143658


@each_way
def test_operands_values_and_shapes(way, kael, tmp_path):
    case = formula("sum(a / b)", a=[1, 2, 3], b=[1, 0, 2])
    findings, code = found(kael, *way(case, tmp_path))
    assert code == 1
    (first,) = findings
    assert [(o["name"], o["value"], o["shape"]) for o in first["operands"]] == [
        ("a", 2.0, [3]),
        ("b", 0.0, [3]),
    ]
    assert (first["count"], first["indices"]) == (1, [[1]])
    text = kael("anomaly", *way(case, tmp_path)).out
    assert "2.0 / 0.0 at [1] is inf" in text
    assert "operands: a float64 [3], b float64 [3]" in text
    ran = kael("backward", "--format", "json", *way(case, tmp_path))
    grads = json.loads(ran.out)["results"][0]["grads"]
    assert grads["a"]["value"] == [1, "Infinity", 0.5]
    assert grads["b"]["value"] == [-1, "-Infinity", -0.75]


@pytest.mark.parametrize(
    ("case", "operands"),
    [
        (formula("sum(log(x - y))", x=[[1, 2]], y=[[1], [0]]), [("x - y", 0.0, [2, 2])]),
        (formula("sum(x ** y)", x=[2, 0], y=-1), [("x", 0.0, [2]), ("y", -1.0, [])]),
        (formula("sum(exp(x))", x=[[1, 800]]), [("x", 800.0, [1, 2])]),
        (formula("sum(atanh(x))", x=[0, 1]), [("x", 1.0, [2])]),
    ],
    ids=lambda value: getattr(value, "text", ""),
)
def test_operands_of_other_operations(case, operands, kael, tmp_path):
    findings, _ = found(kael, *by_yaml(case, tmp_path))
    first = findings[0]["operands"]
    assert [(o["name"], o["value"], o["shape"]) for o in first] == operands


# C3: two grades. source: jax #5698, dxtb #73, pytorch #83117

GRADES = [
    (formula("sum(where(x > 0, log(x), x))", x=[-1, 2]), "warning", 0),
    (formula("sum(where(x > 0, x, log(x)))", x=[-1, 2]), "error", 1),
    (formula("sum(masked_fill(log(x), x < 0, 0))", x=[-1, 2]), "warning", 0),
    (formula("log(x)[1]", x=[-1, 2]), "warning", 0),
    (formula("log(x)[0]", x=[-1, 2]), "error", 1),
    (formula("acos(clamp(x, -1, 1))", x=10), "warning", 0),
    (formula("minimum(exp(x), 5)", x=1000), "error", 1),
    (formula("clamp(exp(x), max=5)", x=1000), "error", 1),
    (formula("logsumexp(x, dim=0)", x=[-INF, 1]), "warning", 0),
    (formula("max(x)", x=[-INF, 1]), "warning", 0),
    (formula("relu(x).sum()", x=[-INF, 1]), "warning", 0),
    (formula("sum(x)", x=[-INF, 1]), "error", 1),
    (formula("log_softmax(x, dim=0)[1]", x=[-INF, 1]), "warning", 0),
]  # fmt: skip


@each_way
@pytest.mark.parametrize(("case", "grade", "code"), GRADES, ids=[row[0].text for row in GRADES])
def test_a_value_that_reaches_nothing_is_a_warning(case, grade, code, way, kael, tmp_path):
    findings, exit_code = found(kael, *way(case, tmp_path))
    assert findings[0]["grade"] == grade
    assert exit_code == code
    assert bool(findings[0]["reaches"]) == (grade == "error")


@pytest.mark.parametrize("taken", [False, True])
def test_the_mode_in_python_raises_for_neither_mask(taken):
    x = k.tensor([-1.0, 2.0], requires_grad=True)
    out = k.where(x > 0, x, k.log(x)) if taken else k.where(x > 0, k.log(x), x)
    with k.debug.set_anomaly_detection(True):
        out.sum().backward()
    assert x.grad.tolist() == ([-1, 1] if taken else [1, 0.5])


def test_a_masked_log_has_the_right_value_and_gradient(kael):
    ran = kael("backward", "sum(where(x > 0, log(x), x))", "-i", "x=[-1, 2]", "--format", "json")
    row = json.loads(ran.out)["results"][0]
    assert row["output"]["value"] == pytest.approx(-1 + math.log(2), rel=1e-15)
    assert row["grads"]["x"]["value"] == [1, 0.5]


# C4: both sides of an overwritten value. source: pytorch #86362, pytorch #18523, pytorch #2940

STALE = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: expected version 0, got 1"
)
WRITES = {
    "add_": "y.add_(1)", "sub_": "y.sub_(1)", "mul_": "y.mul_(2)", "div_": "y.div_(2)",
    "fill_": "y.fill_(7)", "zero_": "y.zero_()", "copy_": "y.copy_(kael.ones(3))", "clamp_": "y.clamp_(0, 1)",
    "masked_fill_": "y.masked_fill_(y > 0, 5.0)", "__setitem__": "y[0] = 4.0",
    "index_add_": "y.index_add_(0, kael.tensor([0]), kael.ones(1))",
    "scatter_add_": "y.scatter_add_(0, kael.tensor([0]), kael.ones(1))",
}  # fmt: skip
KEEPERS = ["exp", "sigmoid", "tanh", "sqrt", "tan", "reciprocal", "expm1", "exp2"]


def program(operation, write, through="y"):
    return (
        "import kael\n\n@kael.spec(x=[0.25, 0.5, 0.75])\ndef stale(x):\n"
        f"    kept = {operation}\n    with kael.no_grad():\n        y = {through.replace('y', 'kept')}\n        {write}\n"
        "    return kept.sum()\n"
    )


def overwritten(kael, folder, text, command="backward"):
    (folder / "stale.py").write_text(text, encoding="utf-8")
    ran = kael(command, str(folder / "stale.py"))
    assert ran.code == 2
    return ran.out + ran.err


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("command", ["backward", "gradcheck", "anomaly"])
def test_every_write_is_named_beside_who_saved_the_value(command, name, kael, tmp_path):
    message = overwritten(kael, tmp_path, program("kael.exp(x)", WRITES[name]), command)
    assert STALE in message
    assert f"ExpBackward saved its output; {name} overwrote it" in message


@pytest.mark.parametrize("name", KEEPERS)
def test_every_operation_that_keeps_its_output_says_so(name, kael, tmp_path):
    message = overwritten(kael, tmp_path, program(f"kael.{name}(x)", "y.add_(1)"))
    assert STALE in message
    assert "saved its output; add_ overwrote it" in message


@pytest.mark.parametrize(
    "through", ["y.detach()", "y[1:]", "y.view(3, 1)", "y.T", "y.unsqueeze(0)"]
)
def test_a_write_through_any_view_is_seen(through, kael, tmp_path):
    message = overwritten(kael, tmp_path, program("kael.exp(x)", "y.add_(1)", through))
    assert STALE in message


def test_with_grad_mode_on_the_write_itself_is_refused(kael, tmp_path):
    text = program("kael.exp(x)", "y.add_(1)").replace("kael.no_grad()", "kael.enable_grad()")
    message = overwritten(kael, tmp_path, text)
    assert "add_ is not supported on a tensor with gradient history" in message
