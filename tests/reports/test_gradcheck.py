# ruff: noqa: E501 (a table reads best with one row a line)
"""Verdicts at kinks, steps, scales and edges, on the command line and in spec files.

The same kinds are held for the checker's own interface in `tests/checker`.
"""

import json
import shlex
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from doors import INF, Case, Prefixed, literal, python, rewritten, yaml_text

import kael as k


def by_expression(case, folder):
    options = [w for n, v in case.inputs.items() for w in ("-i", f"{n}={literal(v)}")]
    return (*options, "--", case.text)


def by_yaml(case, folder):
    (folder / "case.yaml").write_text(yaml_text(case), encoding="utf-8")
    return (str(folder / "case.yaml"),)


def by_python(case, folder):
    inputs = ", ".join(f"{name}={python(v)}" for name, v in case.inputs.items())
    (folder / "case.py").write_text(
        f"import kael\n\n@kael.spec({inputs})\ndef case({', '.join(case.inputs)}):\n"
        f"    return {rewritten(case.text, Prefixed)}\n",
        encoding="utf-8",
    )
    return (str(folder / "case.py"),)


each_way = pytest.mark.parametrize("way", [by_expression, by_yaml, by_python])


def formula(text, **inputs):
    return Case(text, inputs, None, {})


def checked(kael, *arguments):
    ran = kael("gradcheck", "--format", "json", *arguments)
    (row,) = json.loads(ran.out)["results"]
    return row, ran.code


def notes(row):
    return [check["note"] for check in row["checks"] if check["note"]]


# B1: kinks. source: caffe #1334, chainer #3551, pytorch #114234

KINKS = {
    "relu": [formula("relu(x)", x=0), formula("relu(x - 1)", x=[3, 1])],
    "clamp": [formula("clamp(x, 0, 1)", x=0), formula("clamp(x, 0, 1)", x=[0, 1, 0.5])],
    "max": [
        formula("max(x)", x=[2, 2, 2]), formula("max(x)", x=[1, 1]),
        formula("max(x, dim=0)", x=[[1, 2], [1, 3]]),
    ],
    "min": [formula("min(x)", x=[2, 2, 3])],
    "amax": [formula("amax(x, dim=1)", x=[[1, 1], [1, 2]])],
    "maximum": [formula("maximum(x, 0)", x=0), formula("maximum(x, y)", x=[1], y=[1])],
    "minimum": [formula("minimum(x, y)", x=[1, 2], y=[1, 3])],
    "abs": [formula("abs(x)", x=0), formula("abs(x - y)", x=[1, 2], y=[1, 3])],
    "leaky_relu": [formula("leaky_relu(x)", x=[0, 1])],
    "hardtanh": [formula("hardtanh(x)", x=[1, -1])],
    "relu6": [formula("relu6(x)", x=[0, 6])],
    "norm": [formula("norm(x)", x=[0, 0]), formula("norm(x, 1)", x=[0, 1])],
    "hypot": [formula("hypot(x, y)", x=0, y=0)],
    "l1_loss": [formula("l1_loss(x, y)", x=[1, 2], y=[1, 3])],
}  # fmt: skip


@each_way
@pytest.mark.parametrize(
    ("name", "case"),
    [pytest.param(n, c, id=f"{c.text} {c.inputs}") for n, cases in KINKS.items() for c in cases],
)
def test_a_right_convention_at_a_kink_passes_and_the_note_names_it(name, case, way, kael, tmp_path):
    row, code = checked(kael, *way(case, tmp_path))
    assert (row["status"], code) == ("passed", 0)
    assert any(name in note and "kink" in note for note in notes(row)), notes(row)


@each_way
@pytest.mark.parametrize(
    "case",
    [
        formula("max(x)", x=[1, 1 + 1e-7]), formula("relu(x)", x=1e-8),
        formula("clamp(x, 0, 1)", x=1e-9), formula("abs(x - y)", x=1, y=1 - 1e-8),
        formula("maximum(x, y)", x=[1], y=[1 + 1e-9]), formula("hypot(x, y)", x=1e-8, y=1e-9),
    ],
    ids=lambda case: case.text,
)  # fmt: skip
def test_a_kink_nearer_than_the_step_is_none_here(case, way, kael, tmp_path):
    row, code = checked(kael, *way(case, tmp_path))
    assert (row["status"], code) == ("passed", 0)


@each_way
@pytest.mark.parametrize(
    "text",
    [
        "relu(x) + log(1 + exp(-abs(x)))",
        "clamp(x, min=0) + log(1 + exp(-abs(x)))",
        "relu(x) - relu(-x)",
        "clamp(x, min=0) - abs(x) / 2",
    ],
)
def test_a_smooth_function_of_kinked_parts_fails(text, way, kael, tmp_path):
    """Both one-sided slopes agree, and the conventions of the parts add up to something else."""
    row, code = checked(kael, *way(formula(text, x=0), tmp_path))
    assert (row["status"], code) == ("failed", 1)


@each_way
@pytest.mark.parametrize("text", ["x**3", "x*abs(x)", "maximum(x, 0) + log(1 + exp(-abs(x)))"])
def test_a_smooth_point_is_called_no_kink(text, way, kael, tmp_path):
    row, code = checked(kael, *way(formula(text, x=0), tmp_path))
    assert (row["status"], code) == ("passed", 0)


@pytest.mark.parametrize(
    ("text", "x", "claim", "code"),
    [
        ("abs(x)", 0, "1.5", 1), ("abs(x)", 0, "-1.01", 1), ("abs(x)", 0, "0.5", 0),
        ("relu(x)", 0, "1", 0), ("relu(x)", 0, "1.1", 1), ("max(x)", [1, 1], "[1, 1]", 1),
        ("max(x)", [1, 1], "[1, 0]", 0), ("max(x)", [2, 2, 2], "[0.5, 0.5, 0.5]", 1),
        ("min(x)", [1, 1], "[1, 1]", 1), ("clamp(x, 0, 1)", 1, "-0.1", 1),
    ],
)  # fmt: skip
def test_a_claim_at_a_kink_must_lie_between_the_slopes(text, x, claim, code, kael, tmp_path):
    case = formula(text, x=x)
    path = tmp_path / "case.yaml"
    path.write_text(yaml_text(case, derivatives=f'{{x: "{claim} + 0*x"}}'), encoding="utf-8")
    if claim.startswith("["):
        numbers = [float(part) for part in claim.strip("[]").split(",")]
        parts = ", ".join(f"x[0]*0 + {number}" for number in numbers)
        path.write_text(yaml_text(case, derivatives=f'{{x: "stack([{parts}])"}}'))
    assert kael("gradcheck", str(path)).code == code


# B2: the upstream gradient. source: nx #1779, dynet #1132

BROKEN = """\
import numpy as np
import kael


class Broken(kael.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {backward}


@kael.spec(x={x}, {more})
def broken(x):
    return {result}
"""


def broken(folder, forward, backward, x, result="Broken.apply(x)", more=""):
    text = BROKEN.format(forward=forward, backward=backward, x=x, result=result, more=more)
    (folder / "broken.py").write_text(text, encoding="utf-8")
    return str(folder / "broken.py")


UPSTREAMS = {
    "g * g": "upstream-squared", "g.abs()": None, "g.clamp(min=0)": None, "g * 0 + 1": "upstream-ignored",
    "1 / g": None, "kael.sign(g)": None,
}  # fmt: skip


@pytest.mark.parametrize("x", ["[0.5]", "0.5", "[0.5, -0.25]", "[0.1, 0.2, 0.3, 0.4, 0.5]"])
@pytest.mark.parametrize("mode", ["projection", "full", "fast"])
@pytest.mark.parametrize("rule", UPSTREAMS)
def test_a_rule_that_is_not_linear_in_the_upstream_gradient_fails(rule, mode, x, kael, tmp_path):
    path = broken(tmp_path, "kael.clamp(x, -1, 1)", rule, x)
    row, code = checked(kael, path, "--mode", mode)
    assert (row["status"], code) == ("failed", 1)
    code = UPSTREAMS[rule]
    found = {diagnosis["code"] for diagnosis in row["diagnosis"]}
    assert code is None or code in found or "not-linear" in found, row["diagnosis"]


def test_a_sum_at_the_end_hides_nothing(kael, tmp_path):
    path = broken(tmp_path, "kael.clamp(x, -1, 1)", "g * g", "[0.5, 0.25]", "Broken.apply(x).sum()")
    assert kael("gradcheck", path).code == 1
    path = broken(tmp_path, "kael.softmax(x, 0)", "g * 0", "[1, 2, 3]", "Broken.apply(x).sum()")
    assert kael("gradcheck", path).code == 1


def test_the_gradient_under_an_upstream_of_three(kael, tmp_path):
    path = tmp_path / "case.yaml"
    path.write_text("inputs: {x: [0.5]}\noutput: clamp(x, -1, 1)\nupstream: [3]\n"
                    "expect: {grad: {x: [3]}}\n")  # fmt: skip
    assert kael("gradcheck", str(path)).code == 0
    path.write_text(path.read_text().replace("x: [3]", "x: [9]"))
    assert kael("gradcheck", str(path)).code == 1


# B3: what only the absolute tolerance lets through. source: warp #508


@pytest.mark.parametrize(("claim", "code"), [("2e-6 * x", 0), ("4e-6 * x", 1), ("0 * x", 1)])
def test_a_small_gradient_twice_too_large_fails(claim, code, kael, tmp_path):
    path = tmp_path / "case.yaml"
    text = yaml_text(formula("1e-6 * x**2", x=1), derivatives=f"{{x: {claim}}}")
    path.write_text(text, encoding="utf-8")
    assert kael("gradcheck", str(path)).code == code


@pytest.mark.parametrize("scale", ["1e-6", "1e-9", "1e-12"])
@pytest.mark.parametrize("factor", ["2", "0.5", "-1", "0"])
def test_a_small_wrong_backward_is_not_passed_in_silence(factor, scale, kael, tmp_path):
    path = broken(tmp_path, f"{scale} * x * x", f"g * {factor} * 2 * {scale} * x", "1.0")
    row, code = checked(kael, path)
    assert (row["status"], code) == ("failed", 1)


# B4 and B5: steps for every size, and at the edges of domains. source: tesseract-core #706,
# stan-math #1265, scipy #3945, Calculus.jl #131, StatsFuns.jl #215, nx #270

HARD = [
    formula("sin(x)", x=1e10), formula("cos(x)", x=[1e10, 1]), formula("x**2", x=1e10),
    formula("x**2", x=[1e10, 1e-10]), formula("(x + 1e12) - 1e12", x=1), formula("x**3", x=1e8),
    formula("log(x)", x=1e-7), formula("log(x)", x=1e-5), formula("log(x)", x=[1e-7, 1, 1e5]),
    formula("log(x)", x=1e-30), formula("sqrt(x)", x=1e-8), formula("1/x", x=1e-6),
    formula("rsqrt(x)", x=1e-6), formula("x**0.5", x=1e-9), formula("log1p(x)", x=-0.9999999),
    formula("atanh(x)", x=0.9999999), formula("acos(x)", x=0.9999999), formula("exp(x)", x=700),
    formula("xlogy(x, x)", x=1e-8), formula("sum(log(softmax(x, dim=0)))", x=[30, -30, 0]),
    formula("lgamma(x)", x=1e-6), formula("tan(x)", x=1.5707), formula("x / y", x=1e10, y=1e-6),
    formula("logsumexp(x, dim=0)", x=[1e4, -1e4]), formula("std(x)", x=[1e6, 1e6 + 1]),
]  # fmt: skip


@each_way
@pytest.mark.parametrize("case", HARD, ids=lambda case: f"{case.text} {case.inputs}")
def test_a_right_gradient_at_any_scale_is_not_failed(case, way, kael, tmp_path):
    row, code = checked(kael, *way(case, tmp_path))
    assert row["status"] in ("passed", "inconclusive"), notes(row)
    assert code == (0 if row["status"] == "passed" else 1)
    if row["status"] == "inconclusive":
        assert kael("gradcheck", *way(case, tmp_path)[:1], "--allow-inconclusive").code in (0, 2)


@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        ("kael.log(x)", "g / x * 1.01", "1e-7"), ("kael.log(x)", "g / x * 1.01", "1e-5"),
        ("kael.log(x)", "-g / x", "1e-30"), ("kael.log(x)", "2 * g / x", "1e-6"),
        ("kael.rsqrt(x)", "-g / x", "1e-6"), ("kael.tanh(x)", "g * float('inf')", "1.0"),
        ("1 / (x - 1)", "g / (x - 1)", "1 + 1e-6"), ("kael.sin(x)", "g * kael.sin(x)", "1e10"),
        ("x * x", "g * x", "1e10"), ("kael.sqrt(x)", "g / kael.sqrt(x)", "1e-8"),
        ("1 / x", "-g / x", "1e-6"), ("kael.exp(x)", "g * 1.01 * kael.exp(x)", "700.0"),
    ],
)  # fmt: skip
def test_a_wrong_gradient_at_such_a_point_does_not_pass(forward, backward, x, kael, tmp_path):
    row, code = checked(kael, broken(tmp_path, forward, backward, x))
    assert row["status"] != "passed"
    assert code == 1


# B6: a point at which the function is undefined. source: pytorch #76780, chainer #6947

UNDEFINED = [
    formula("acosh(x)", x=0.5), formula("log(x)", x=-1), formula("sqrt(x)", x=[4, -1]),
    formula("asin(x)", x=2), formula("x ** 0.5", x=-2), formula("sum(0 / x)", x=[1, 0]),
    formula("sum(log(x))", x=[1, 0]), formula("1 / x", x=0), formula("exp(x)", x=1000),
    formula("softmax(x, dim=0)", x=[-INF, -INF]),
]  # fmt: skip


@each_way
@pytest.mark.parametrize("case", UNDEFINED, ids=lambda case: f"{case.text} {case.inputs}")
def test_an_undefined_point_is_an_error_and_names_the_operation(case, way, kael, tmp_path):
    row, code = checked(kael, *way(case, tmp_path))
    assert (row["status"], code) == ("error", 2)
    message = row["error"]["message"]
    assert "NaN" in message or "inf" in message
    if case.text == "acosh(x)":
        assert "acosh" in message


# B7: functions that draw or keep state. source: pytorch #114333, torch-nn #744

RANDOM = """\
import numpy as np
import kael

state = {{"calls": 0}}
rng = np.random.default_rng(3)


@kael.spec(x=[1.0, 2.0, 3.0, 4.0])
def drops(x):
    {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "return x * kael.tensor(2.0 * (rng.random(4) > 0.5))",
        "return x + kael.randn(4)",
        "state['calls'] += 1; return x * state['calls']",
    ],
)
@pytest.mark.parametrize("mode", ["projection", "full"])
def test_a_function_that_is_not_deterministic_is_told_apart(body, mode, kael, tmp_path):
    (tmp_path / "drops.py").write_text(RANDOM.format(body=body), encoding="utf-8")
    row, code = checked(kael, str(tmp_path / "drops.py"), "--mode", mode)
    assert row["status"] not in ("passed", "skipped")
    assert code != 0
    codes = {diagnosis["code"] for diagnosis in row["diagnosis"]}
    assert codes <= {"not-deterministic"}
    told = json.dumps(row)
    assert "not deterministic" in told or "not-deterministic" in told


# B8: what a failure says. source: pytorch #48764, pytorch #2710, scipy #7766, Paddle #4073

MATMUL = """\
import numpy as np
import kael


class Product(kael.autograd.Function):
    @staticmethod
    def forward(ctx, w, x):
        ctx.save_for_backward(w, x)
        return w @ x

    @staticmethod
    def backward(ctx, g):
        w, x = ctx.saved_tensors
        grad = (g.unsqueeze(1) @ x.unsqueeze(0)).numpy().copy()
        grad[3, 7] *= 2.0
        return kael.tensor(grad), w.T @ g


@kael.spec(W=kael.randn(5, 9), x=kael.randn(9))
def product(W, x):
    return Product.apply(W, x)
"""


@pytest.mark.parametrize(("mode", "size"), [("projection", 45), ("full", 5 * 45)])
def test_the_one_wrong_entry_is_named_with_its_evidence(mode, size, kael, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "product.py").write_text(MATMUL, encoding="utf-8")
    row, code = checked(kael, "product.py", "--mode", mode, "--seed", "4")
    assert (row["status"], code) == ("failed", 1)
    bad = [c for c in row["checks"] if c["status"] == "failed" and c["kind"] == "numeric"]
    assert [check["input"] for check in bad] == ["W"]
    assert (bad[0]["compared"], bad[0]["wrong"]) == (size, 1)
    first = bad[0]["failures"][0]
    assert first["index"] == [3, 7]
    assert abs(first["analytic"] - first["numeric"]) == pytest.approx(bad[0]["max_abs_error"])
    assert 0 <= first["numeric_error"] < 1e-3
    assert bad[0]["max_rel_error"] > 1e-3
    text = kael("gradcheck", "product.py", "--mode", mode, "--seed", "4")
    assert "W" in text.out
    assert "[3, 7]" in text.out
    assert f"1 of {size}" in text.out
    assert "..." not in text.out
    assert f"reproduce: {row['reproduce']}" in text.out
    again, code = checked(kael, *shlex.split(row["reproduce"])[2:])
    assert code == 1
    assert [c["failures"] for c in again["checks"]] == [c["failures"] for c in row["checks"]]


# B9: a check that compared nothing. source: chainer #3541, chainer #3542

NOTHING = {
    "constants": "inputs: {x: {value: 1.0, requires_grad: false}, y: {value: 2.0, requires_grad: false}}\n"
                 "output: x * y\n",
    "integers": "inputs: {x: {value: [1, 2], dtype: int64}}\noutput: sum(x)\n",
    "empty": "inputs: {x: {shape: [0], init: normal}}\noutput: sum(x)\n",
    "no inputs": "inputs: {}\noutput: 1 + 1\n",
    "skipped": "inputs: {x: 1.0}\noutput: x\nskip: later\n",
    "numeric off": "inputs: {x: 1.0}\noutput: x\ngradcheck: {numeric: false}\n",
}  # fmt: skip


@pytest.mark.parametrize("command", ["gradcheck", "check"])
@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING)
def test_nothing_compared_is_no_pass(text, command, kael, tmp_path):
    (tmp_path / "case.yaml").write_text(text, encoding="utf-8")
    ran = kael(command, str(tmp_path))
    assert ran.code == 2
    assert ran.out.strip() or ran.err.strip()


def test_two_flags_that_say_no_compare_nothing_even_in_python():
    class Broken(k.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, g

    pair = [k.tensor(np.ones(2)), k.tensor(np.ones(2))]
    with pytest.raises(k.KaelError, match=r"require"):
        k.autograd.gradcheck(Broken.apply, pair)


# The same verdict in every format.


@pytest.mark.parametrize("way", [by_expression, by_yaml])
def test_junit_has_the_failure_that_text_has(way, kael, tmp_path):
    arguments = way(formula("relu(x) + log(1 + exp(-abs(x)))", x=0), tmp_path)
    ran = kael("gradcheck", "--format", "junit", *arguments)
    assert ran.code == 1
    assert len(list(ElementTree.fromstring(ran.out).iter("failure"))) == 1


@pytest.mark.parametrize("mode", ["projection", "full"])
def test_a_mask_that_comes_twice_alike_is_not_called_a_wrong_gradient(mode):
    """Of two entries, two evaluations agree one time in four; no seed may lead to a failure."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        dropout = lambda x, rng=rng: x * k.tensor(2.0 * (rng.random(3) > 0.5))
        x = k.tensor([1.0, 2.0, 3.0], requires_grad=True)
        result = k.autograd.gradcheck(dropout, [x], mode=mode)
        assert result.status == "inconclusive"
        assert any("not deterministic" in note for note in result.notes), result.notes
        assert {finding.reason for finding in result.findings} == {"nondeterministic"}
