# ruff: noqa: E501 (a table reads best with one row a line)
"""Origins of NaN and infinities: known reports, planted faults, masks, and Python programs."""

import json
import math

import numpy as np
import pytest

import kael
from kael.inspect import anomaly
from kael.inspect.recorder import Recorder
from kael.specs.expression import current_span, parse

NAN, INF = math.nan, math.inf


def evaluated(text, lets=None, constants=(), **inputs):
    names = {}
    for name, value in inputs.items():
        array = np.array(value)
        array = array if array.dtype.kind == "b" else array.astype(float)
        names[name] = kael.tensor(array)
        names[name].requires_grad = array.dtype.kind == "f" and name not in constants
    recorder = Recorder(current_span)
    with recorder.observing():
        for name, formula in (lets or {}).items():
            names[name] = parse(formula).value(names)
        output = parse(text).evaluate(names)
    return recorder, output, names


def found(text, lets=None, constants=(), **inputs):
    recorder, output, names = evaluated(text, lets, constants, **inputs)
    return anomaly.find(recorder, output, names, upstream=np.ones(output.shape))


def brief(findings):
    return [(f.grade, f.phase, f.op, f.expr, f.kind, f.indices) for f in findings]


def test_a_silent_infinite_gradient():
    (finding,) = found("sum(sqrt(x))", x=[0, 4])
    assert brief([finding]) == [("error", "backward", "sqrt", "sqrt(x)", "Infinity", [[0]])]
    assert finding.node == "SqrtBackward"
    assert finding.reason == "the slope of sqrt is infinite at x = 0.0"
    assert finding.reaches == ["gradient of x"]


def test_a_silent_infinite_value():
    (finding,) = found("sum(1/x)", x=[0])
    assert brief([finding]) == [("error", "forward", "div", "1/x", "Infinity", [[0]])]
    assert finding.reason == "division by 0"
    assert finding.reaches == ["output", "gradient of x"]


def test_a_silent_nan_with_a_finite_gradient():
    (finding,) = found("sum(log(x))", x=[-1])
    assert brief([finding]) == [("error", "forward", "log", "log(x)", "NaN", [[0]])]
    assert finding.reason == "log of a negative number"
    assert finding.reaches == ["output"]


def test_a_nan_in_the_input_is_the_inputs():
    (finding,) = found("max(x)", x=[1, NAN, 2])
    assert brief([finding]) == [("error", "forward", "input", "x", "NaN", [[1]])]
    assert finding.node is None
    assert finding.reason == "the input x holds NaN"


def test_a_masked_logit_that_breaks_the_value_alone():
    findings = found(
        "-sum(y * log_softmax(z, dim=0))", constants=["y"], z=[-INF, 0, 0], y=[0, 1, 0]
    )
    assert brief(findings) == [
        ("error", "forward", "input", "z", "Infinity", [[0]]),
        ("error", "forward", "mul", "y * log_softmax(z, dim=0)", "NaN", [[0]]),
    ]
    assert findings[1].reason == "0 * inf"
    assert findings[1].reaches == ["output"]


def test_an_overflow_with_an_infinite_gradient():
    (finding,) = found("exp(x)", x=[1000])
    assert brief([finding]) == [("error", "forward", "exp", "exp(x)", "Infinity", [[0]])]
    assert finding.reason == "overflow in exp: exp(1000) exceeds 1.79769e+308"
    assert finding.reaches == ["output", "gradient of x"]


def test_the_culprit_of_a_naive_softmax_is_exp_in_the_forward_pass():
    findings = found("exp(x)[0]/sum(exp(x))", x=[1000, 0])
    assert brief(findings) == [
        ("error", "forward", "exp", "exp(x)", "Infinity", [[0]]),
        ("error", "forward", "exp", "exp(x)", "Infinity", [[0]]),
        ("error", "forward", "div", "exp(x)[0]/sum(exp(x))", "NaN", [[]]),
    ]
    assert [finding.column for finding in findings] == [1, 15, 1]
    assert findings[0].chain == ["exp(x)[0]", "exp(x)[0]/sum(exp(x))"]
    assert findings[2].reason == "inf / inf"


def test_the_element_its_operands_and_their_shapes():
    (finding,) = found("sum(a / b)", a=[1, 2, 3], b=[1, 0, 2])
    assert anomaly.text([finding]) == (
        "<expression>:1:5: error: div (DivBackward) gives Infinity at [1]\n"
        "  sum(a / b)\n"
        "      ^^^^^\n"
        "  2.0 / 0.0 at [1] is inf\n"
        "  operands: a float64 [3], b float64 [3]\n"
        "  reason: division by 0\n"
        "  reaches: output, gradient of b, gradient of a\n"
        "  by way of: sum(a / b)\n"
        "  remedy: keep the denominator away from 0: add a small constant, or guard it, "
        "x / where(y != 0, y, 1)\n"
    )
    assert finding.as_json() == {
        "grade": "error",
        "phase": "forward",
        "node": "DivBackward",
        "op": "div",
        "expr": "a / b",
        "line": 1,
        "column": 5,
        "kind": "Infinity",
        "indices": [[1]],
        "count": 1,
        "operands": [
            {"name": "a", "value": 2.0, "shape": [3]},
            {"name": "b", "value": 0.0, "shape": [3]},
        ],
        "reason": "division by 0",
        "remedy": finding.remedy,
        "reaches": ["output", "gradient of b", "gradient of a"],
        "chain": ["sum(a / b)", "DivBackward"],
    }


def test_a_masked_nan_is_a_warning():
    (finding,) = found("sum(where(x > 0, log(x), x))", x=[-1, 2])
    assert brief([finding]) == [("warning", "forward", "log", "log(x)", "NaN", [[0]])]
    assert "masked: it reaches neither the output nor a gradient" in anomaly.text([finding])


def test_a_nan_in_the_branch_that_was_taken_is_an_error():
    (finding,) = found("sum(where(x > 0, x, log(x)))", x=[-1, 2])
    assert brief([finding]) == [("error", "forward", "log", "log(x)", "NaN", [[0]])]
    assert finding.column == 21


def test_an_infinite_input_that_harms_nothing_is_a_warning():
    (finding,) = found("logsumexp(x, dim=0)", x=[-INF, 1])
    assert brief([finding]) == [("warning", "forward", "input", "x", "Infinity", [[0]])]


def test_a_finite_computation_has_no_finding():
    assert found("tanh(x*w + x).sum()", x=[1, 2], w=[0.5, -1]) == []


TRAP = "log received an upstream gradient of exactly 0 where its own slope is infinite: 0 * inf"


def test_the_where_trap_prints_the_doubly_guarded_form():
    error, warning = found("sum(where(x > 2, log(x), 2*x))", x=[0, 2, 3])
    assert brief([error, warning]) == [
        ("error", "backward", "log", "log(x)", "NaN", [[0]]),
        ("warning", "forward", "log", "log(x)", "Infinity", [[0]]),
    ]
    assert error.reason == TRAP
    assert error.guard == "where(x > 2, log(where(x > 2, x, 1)), 2*x)"
    assert error.remedy == f"guard the argument too: {error.guard}"
    recorder, output, names = evaluated(f"sum({error.guard})", x=[0, 2, 3])
    assert anomaly.find(recorder, output, names) == []
    assert names["x"].grad.tolist() == pytest.approx([2, 2, 1 / 3])


@pytest.mark.parametrize(
    ("text", "values", "guard"),
    [
        ("where(x != 0, 1/x, 0)", [0, 1], "where(x != 0, 1/where(x != 0, x, 1), 0)"),
        ("where(x <= 0, 0, sqrt(x))", [0, 1], "where(x <= 0, 0, sqrt(where(x <= 0, 1, x)))"),
        ("where(x > 0, x.log() * 2, 0)", [0, 1], "where(x > 0, where(x > 0, x, 1).log() * 2, 0)"),
        ("where(x > 0, x**0.5, 0)", [0, 1], "where(x > 0, where(x > 0, x, 1)**0.5, 0)"),
        ("where(x < 700, exp(x), 0)", [1000, 1], "where(x < 700, exp(where(x < 700, x, 0)), 0)"),
        ("where(x > 0, 3 + log(x*x), x)", [0, 2],
         "where(x > 0, 3 + log(where(x > 0, x*x, 1)), x)"),
    ],
)  # fmt: skip
def test_guards_for_other_operations(text, values, guard):
    findings = found(f"sum({text})", x=values)
    assert guard in [finding.guard for finding in findings]
    assert [f for f in found(f"sum({guard})", x=values) if f.grade == "error"] == []


def test_a_trap_across_let_values_guards_the_value_itself():
    finding = found("sum(where(x > 2, l, x))", {"l": "log(x)"}, x=[0, 3])[0]
    assert finding.guard == "log(where(x > 2, x, 1))"


def test_a_trap_without_a_where_says_what_to_guard():
    finding = found("sum(maximum(sqrt(x) - 1, 0))", x=[0, 4])[0]
    assert finding.reason.startswith("sqrt received an upstream gradient of exactly 0")
    assert finding.remedy.startswith("guard the argument too: sqrt(where(condition, x, 1))")


# Each: formula, inputs, and where the first finding is: phase, operation, sub-expression, element.
PLANTED = [
    ("sum(x / (y - 2))", {"x": [1, 2], "y": [1, 2]}, "forward", "div", "x / (y - 2)", [1], "division by 0"),
    ("sum((x - 1) / (y - 1))", {"x": [1, 2], "y": [1, 3]}, "forward", "div", "(x - 1) / (y - 1)", [0], "0 / 0"),
    ("mean(log(x - 1))", {"x": [3, 2, 1]}, "forward", "log", "log(x - 1)", [2], "log of 0"),
    ("sum(log(x) * y)", {"x": [1, -2], "y": [1, 1]}, "forward", "log", "log(x)", [1], "log of a negative number"),
    ("sum(log1p(x))", {"x": [0, -1]}, "forward", "log1p", "log1p(x)", [1], "log1p of -1, the log of 0"),
    ("sum(log2(x) + x)", {"x": [1, 0]}, "forward", "log2", "log2(x)", [1], "log2 of 0"),
    ("sum(log10(-x))", {"x": [-1, 2]}, "forward", "log10", "log10(-x)", [1], "log10 of a negative number"),
    ("sum(sqrt(x - 2))", {"x": [3, 1]}, "forward", "sqrt", "sqrt(x - 2)", [1], "sqrt of a negative number"),
    ("sum(rsqrt(x))", {"x": [1, 0]}, "forward", "rsqrt", "rsqrt(x)", [1], "rsqrt of 0: division by 0"),
    ("sum(exp(x * 100))", {"x": [1, 8]}, "forward", "exp", "exp(x * 100)", [1], "overflow in exp: exp(800) exceeds 1.79769e+308"),
    ("sum(expm1(x))", {"x": [710]}, "forward", "expm1", "expm1(x)", [0], "overflow in expm1: expm1(710) exceeds 1.79769e+308"),
    ("sum(cosh(x))", {"x": [1, -800]}, "forward", "cosh", "cosh(x)", [1], "overflow in cosh: cosh(-800) exceeds 1.79769e+308"),
    ("log(1 + exp(x)).sum()", {"x": [1, 1000]}, "forward", "exp", "exp(x)", [1], "overflow in exp: exp(1000) exceeds 1.79769e+308"),
    ("sum(x ** -1)", {"x": [2, 0]}, "forward", "pow", "x ** -1", [1], "0 to a negative power: division by 0"),
    ("sum(x ** 0.5)", {"x": [4, -4]}, "forward", "pow", "x ** 0.5", [1], "a negative number to a fractional power"),
    ("sum(x ** 400)", {"x": [10, 1]}, "forward", "pow", "x ** 400", [0], "overflow in pow: the result exceeds 1.79769e+308"),
    ("sum(x * x)", {"x": [1, 1e200]}, "forward", "mul", "x * x", [1], "overflow in mul: the result exceeds 1.79769e+308"),
    ("(x + y).sum()", {"x": [1e308, 1], "y": [1e308, 1]}, "forward", "add", "x + y", [0], "overflow in add: the result exceeds 1.79769e+308"),
    ("sum(acos(x))", {"x": [0.5, 2]}, "forward", "acos", "acos(x)", [1], "acos of 2, outside [-1, 1]"),
    ("sum(asin(x * 2))", {"x": [0.25, -1]}, "forward", "asin", "asin(x * 2)", [1], "asin of -2, outside [-1, 1]"),
    ("sum(acosh(x))", {"x": [2, 0.5]}, "forward", "acosh", "acosh(x)", [1], "acosh of 0.5, outside [1, inf)"),
    ("sum(atanh(x))", {"x": [0, 1]}, "forward", "atanh", "atanh(x)", [1], "atanh of 1, outside (-1, 1)"),
    ("sum(lgamma(x))", {"x": [1, -2]}, "forward", "lgamma", "lgamma(x)", [1], "lgamma has a pole at -2"),
    ("sum(softmax(x, dim=1))", {"x": [[1, 2], [-INF, -INF]]}, "forward", "input", "x", [1, 0], "the input x holds an infinity"),
    ("sum(softmax(where(m, x, -inf), dim=0))", {"x": [1, 2], "m": [False, False]}, "forward", "input", "other", [], "a constant is an infinity"),
    ("sum(exp(x)) - sum(exp(y))", {"x": [800], "y": [1]}, "forward", "exp", "exp(x)", [0], "overflow in exp: exp(800) exceeds 1.79769e+308"),
    ("sum(a @ b)", {"a": [[1e200, 1e200]], "b": [[1e200], [1e200]]}, "forward", "matmul", "a @ b", [0, 0], "overflow in matmul: the result exceeds 1.79769e+308"),
    ("prod(x)", {"x": [1e200, 1e200]}, "forward", "prod", "prod(x)", [], "overflow in prod: the result exceeds 1.79769e+308"),
    ("x.var()", {"x": [1]}, "forward", "var", "x.var()", [], "var of too few elements for the correction: 0 / 0"),
    ("sqrt(sum(x**2))", {"x": [0, 0]}, "backward", "sqrt", "sqrt(sum(x**2))", [], "the slope of sqrt is infinite at sum(x**2) = 0.0"),
    ("sum(sqrt(3 * x) * 2)", {"x": [1, 0]}, "backward", "sqrt", "sqrt(3 * x)", [1], "the slope of sqrt is infinite at 3 * x = 0.0"),
    ("sum(x ** 0.5)", {"x": [1, 0]}, "backward", "pow", "x ** 0.5", [1], "the slope of pow is infinite at x = 0.0"),
    ("sum(acos(x))", {"x": [0, 1]}, "backward", "acos", "acos(x)", [1], "the slope of acos is infinite at x = 1.0"),
    ("sum(y / x)", {"x": [1, 1e-200], "y": [1, 1]}, "backward", "div", "y / x", [1], "the slope of div is infinite at y = 1.0 and x = 1e-200"),
    ("sum(where(x > 0, sqrt(x), 0))", {"x": [0, 1]}, "backward", "sqrt", "sqrt(x)", [0], "sqrt received an upstream gradient of exactly 0 where its own slope is infinite: 0 * inf"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "inputs", "phase", "op", "expr", "index", "reason"),
    PLANTED,
    ids=[f"{number}-{row[0]}" for number, row in enumerate(PLANTED)],
)
def test_a_planted_fault_is_named(text, inputs, phase, op, expr, index, reason):
    findings = found(text, **inputs)
    first = findings[0]
    assert (first.grade, first.phase, first.op, first.expr) == ("error", phase, op, expr)
    assert first.indices[0] == index
    assert first.reason == reason
    json.dumps([finding.as_json() for finding in findings], allow_nan=False)


def test_there_are_at_least_thirty_planted_faults():
    assert len(PLANTED) >= 30


def test_only_the_elements_that_are_born_here_are_listed():
    findings = found("sum(log(x))", x=[INF, 0, 1])
    assert brief(findings) == [
        ("error", "forward", "input", "x", "Infinity", [[0]]),
        ("error", "forward", "log", "log(x)", "Infinity", [[1]]),
        ("error", "forward", "sum", "sum(log(x))", "NaN", [[]]),
    ]
    assert findings[2].reason == "inf - inf in sum"


def test_views_and_masks_carry_only_the_elements_they_take():
    findings = found("log(x)[1] + exp(x)[0]", x=[1000, 1])
    assert brief(findings) == [
        ("error", "forward", "exp", "exp(x)", "Infinity", [[0]]),
    ]
    findings = found("log(x)[1:].sum()", x=[-1, 1])
    assert brief(findings) == [("warning", "forward", "log", "log(x)", "NaN", [[0]])]


def test_many_elements_are_counted_and_a_hundred_listed():
    (finding,) = found("sum(log(x))", x=-np.ones(250))
    assert finding.count == 250
    assert len(finding.indices) == 100
    assert "gives NaN at [0] and 249 more" in anomaly.text([finding])


def test_float32_overflows_at_its_own_limit():
    x = kael.tensor([100.0], dtype="float32", requires_grad=True)
    recorder = Recorder()
    with recorder.observing():
        output = kael.exp(x)
    finding = anomaly.find(recorder, output, {"x": x})[0]
    assert finding.reason == "overflow in exp: exp(100) exceeds 3.40282e+38"


def test_an_infinite_upstream_is_an_input():
    recorder, output, names = evaluated("x * 2", x=[1.0, 2.0])
    findings = anomaly.find(recorder, output, names, upstream=np.array([1.0, INF]))
    assert brief(findings) == [("error", "backward", "input", "upstream", "Infinity", [[1]])]
    assert findings[0].reaches == ["gradient of x"]


def test_inputs_are_looked_at_before_anything_runs():
    names = {"x": kael.tensor([1.0, NAN]), "y": kael.tensor([1.0])}
    (finding,) = anomaly.input_findings(names)
    assert (finding.expr, finding.indices) == ("x", [[1]])


def test_a_forward_pass_alone_is_enough():
    recorder, output, names = evaluated("log(x)", constants=["x"], x=[-1.0])
    (finding,) = anomaly.find(recorder, output, names)
    assert (finding.node, finding.reaches) == (None, ["output"])


class Careless(kael.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1, x * 2

    @staticmethod
    def backward(ctx, first, second):
        return first / 0 + second


def test_a_hand_written_backward_and_its_line():
    x = kael.tensor([1.0, 2.0], requires_grad=True)
    recorder = Recorder()
    with recorder.observing():
        first, second = Careless.apply(x)
        loss = (first + second).sum()
    (finding,) = anomaly.find(recorder, loss, {"x": x})
    assert (finding.op, finding.node, finding.phase) == ("Careless", "CarelessBackward", "backward")
    assert finding.expr == "Careless.apply(x)"
    assert finding.where.place.file == __file__
    assert finding.reason == "the gradient of Careless is not finite at this point"


def test_the_guarded_form_of_a_python_line():
    x = kael.tensor([0.0, 3.0], requires_grad=True)
    recorder = Recorder()
    with recorder.observing():
        loss = kael.where(x > 2, kael.log(x), 2 * x).sum()
    finding = anomaly.find(recorder, loss, {"x": x})[0]
    assert finding.guard == "kael.where(x > 2, kael.log(kael.where(x > 2, x, 1)), 2 * x)"


@pytest.mark.parametrize(
    ("values", "word"), [([0.0], "-inf"), ([0.0, 0.0], "-inf"), ([-1.0, 0.0], "NaN")]
)
def test_minus_infinity_is_called_so_in_the_text_alone(values, word):
    finding = found("sum(log(x))", x=values)[0]
    assert f"log (LogBackward) gives {word} at [0]" in anomaly.text([finding])
    assert finding.as_json()["kind"] == ("NaN" if word == "NaN" else "Infinity")


def test_infinities_of_both_signs_are_not_called_minus_infinity():
    finding = found("sum(1/x)", x=[-0.0, 0.0])[0]
    assert finding.result == -np.inf
    assert " gives Infinity at [0] and 1 more" in anomaly.text([finding])


def test_a_long_remedy_is_broken_at_its_semicolons():
    assert anomaly.broken("  remedy: short; and good") == ["  remedy: short; and good"]
    first = "  remedy: " + "a" * 60
    assert anomaly.broken(f"{first}; {'b' * 60}") == [f"{first};", "    " + "b" * 60]
