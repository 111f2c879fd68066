"""The worked example: its tables row for row, its text, Markdown and JSON."""

import json

import numpy as np
import pytest

import kael
from kael.inspect import explain
from kael.inspect.explain import Claim
from kael.inspect.recorder import Recorder
from kael.specs.expression import current_span, parse


def explained(output, lets=None, claims=(), upstream=None, **inputs):
    names = {name: kael.tensor(value, requires_grad=True) for name, value in inputs.items()}
    recorder = Recorder(current_span)
    with recorder.observing():
        for name, text in (lets or {}).items():
            names[name] = parse(text).value(names)
        result = parse(output).evaluate(names)
    return explain.explain(recorder, result, names, claims=claims, upstream=upstream)


@pytest.fixture
def gate():
    return explained(
        "t.sum()",
        {"u": "x * w", "v": "u + x", "t": "tanh(v)"},
        [
            Claim("x", "(1 - t**2) * (w + 1)", np.array([0.27105995838547253, 0.0])),
            Claim("w", "(1 - t**2) * x", np.array([0.18070663892364836, 2.0])),
        ],
        x=[1.0, 2.0],
        w=[0.5, -1.0],
    )


TREE = """\
SumBackward
└── TanhBackward
    └── AddBackward
        ├── MulBackward
        │   ├── AccumulateGrad (x)
        │   └── AccumulateGrad (w)
        └── AccumulateGrad (x) same node as above
"""


def test_the_forward_table(gate):
    assert [explain.forward_cells(row) for row in gate.forward] == [
        ["u", "x * w", "[0.5, -2]", "MulBackward", "x and w"],
        ["v", "u + x", "[1.5, 0]", "AddBackward", "nothing"],
        ["t", "tanh(v)", "[0.905148, 0]", "TanhBackward", "its output t"],
        ["L", "sum(t)", "0.905148", "SumBackward", "the input shape"],
    ]


def test_the_tree(gate):
    assert gate.tree == TREE


def test_the_dependency_counts(gate):
    assert [explain.count_cells(row) for row in gate.counts] == [
        ["TanhBackward", "1 (from Sum)"],
        ["AddBackward", "1 (from Tanh)"],
        ["MulBackward", "1 (from Add)"],
        ["AccumulateGrad x", "2 (from Add and from Mul)"],
        ["AccumulateGrad w", "1 (from Mul)"],
    ]


def test_every_backward_step(gate):
    assert [explain.backward_cells(row) for row in gate.backward] == [
        ["1", "SumBackward", "1", "expand(g, shape(t))", "[1, 1] to Tanh", "Tanh 0, ready"],
        [
            "2",
            "TanhBackward",
            "[1, 1]",
            "g * (1 - t**2)",
            "[0.180707, 1] to Add",
            "Add 0, ready",
        ],
        [
            "3",
            "AddBackward",
            "[0.180707, 1]",
            "g",
            "[0.180707, 1] to Mul and to x",
            "Mul 0, ready; x 1, waiting",
        ],
        [
            "4",
            "MulBackward",
            "[0.180707, 1]",
            "g * w; g * x",
            "[0.090353, -1] to x; [0.180707, 2] to w",
            "x 0, ready; w 0, ready",
        ],
        ["5", "AccumulateGrad (w)", "[0.180707, 2]", "", "w.grad = [0.180707, 2]", ""],
        [
            "6",
            "AccumulateGrad (x)",
            "[0.180707, 1] + [0.090353, -1] = [0.271060, 0]",
            "",
            "x.grad = [0.271060, 0]",
            "",
        ],
    ]


def test_the_check_by_hand(gate):
    assert [explain.check_cells(row) for row in gate.checks] == [
        ["x", "(1 - t**2) * (w + 1)", "[0.271060, 0]", "[0.271060, 0]", "agrees"],
        ["w", "(1 - t**2) * x", "[0.180707, 2]", "[0.180707, 2]", "agrees"],
    ]


def test_a_wrong_claim_differs():
    found = explained("x * x", claims=[Claim("x", "x", np.array(3.0))], x=3.0)
    assert explain.check_cells(found.checks[0]) == ["x", "x", "3", "6", "differs"]


def test_the_diamond_names_nodes_that_share_a_name():
    found = explained("(x*2 + x*3).sum()", x=[1.0, 2.0])
    assert [explain.count_cells(row) for row in found.counts] == [
        ["AddBackward", "1 (from Sum)"],
        ["MulBackward (v1)", "1 (from Add)"],
        ["MulBackward (v2)", "1 (from Add)"],
        ["AccumulateGrad x", "2 (from Mul (v2) and from Mul (v1))"],
    ]
    cells = [explain.backward_cells(row) for row in found.backward]
    assert [row[1] for row in cells] == [
        "SumBackward",
        "AddBackward",
        "MulBackward (v2)",
        "MulBackward (v1)",
        "AccumulateGrad (x)",
    ]
    assert [row[5] for row in cells] == [
        "Add 0, ready",
        "Mul (v1) 0, ready; Mul (v2) 0, ready",
        "x 1, waiting",
        "x 0, ready",
        "",
    ]
    assert cells[-1][2] == "[3, 3] + [2, 2] = [5, 5]"


def test_the_text_has_every_part_in_order(gate):
    lines = explain.text(gate).splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == [
        "Inputs",
        "Forward pass",
        "Graph",
        "Dependency counts",
        "Backward pass: the seed is dL/dL = 1",
        "Check by hand",
    ]
    assert "  u      x * w    [0.5, -2]      MulBackward    x and w" in lines
    assert "  w = [0.5, -1]" in lines


def test_markdown_has_tables_that_hold_any_cell(gate):
    page = explain.markdown(gate)
    assert "| v | u + x | [1.5, 0] | AddBackward | nothing |\n" in page
    assert f"```text\n{TREE}```" in page
    found = explained("where((x > 1) | (x < 0), x, 0).sum()", x=[1.0, 2.0])
    assert "| v3 | v1 \\| v2 |" in explain.markdown(found)


def test_json_has_the_graph_and_every_row(gate):
    document = json.loads(json.dumps(explain.document(gate)))
    assert document["edges"][0] == {"from": "n0", "to": "n1", "shape": [2]}
    assert document["forward"][0]["value"] == [0.5, -2.0]
    assert document["steps"][2]["counts"] == [
        {"node": "Mul", "count": 0},
        {"node": "x", "count": 1},
    ]
    assert document["counts"][3] == {
        "id": "n5",
        "node": "AccumulateGrad x",
        "count": 2,
        "from": ["Add", "Mul"],
    }


def test_a_large_tensor_is_shape_norm_range_and_mean():
    found = explained("(x * 2).sum()", x=np.arange(100.0))
    assert explain.forward_cells(found.forward[0])[2] == (
        "shape=[100] norm=1146.04 min=0 max=198 mean=99"
    )
    assert found.backward[-1].stored == ("x.grad = shape=[100] norm=20 min=2 max=2 mean=2")
    assert explain.document(found)["forward"][0]["value"] is None


def test_what_records_nothing_is_in_the_table_without_a_node():
    found = explained("where(x > 1, x, 0).sum()", x=[1.0, 2.0])
    assert explain.forward_cells(found.forward[0]) == [
        "v1", "x > 1", "[false, true]", "none", "",
    ]  # fmt: skip
    assert explain.forward_cells(found.forward[1])[1:] == [
        "where(v1, x, 0)", "[0, 2]", "WhereBackward", "v1",
    ]  # fmt: skip


def test_an_upstream_gradient_of_a_non_scalar_output():
    found = explained("x * 2", upstream=np.array([1.0, -1.0]), x=[1.0, 2.0])
    assert "Backward pass: the upstream gradient of output is [1, -1]" in explain.text(found)
    assert found.backward[-1].stored == "x.grad = [2, -2]"


class Split(kael.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        return first * 2 + second * 3


def test_a_function_of_several_outputs_runs_once():
    x = kael.tensor([1.0], requires_grad=True)
    recorder = Recorder()
    with recorder.observing():
        first, second = Split.apply(x)
        loss = (first + second).sum()
    found = explain.explain(recorder, loss, {"x": x})
    assert [explain.backward_cells(row)[1:4] for row in found.backward] == [
        ["SumBackward", "1", "expand(g, shape(v3))"],
        ["AddBackward", "[1]", "g"],
        ["SplitBackward", "[1], [1]", "Split.backward(g)"],
        ["AccumulateGrad (x)", "[5]", ""],
    ]
    assert found.forward[0].saves == "1 tensor"


def test_negative_constants_keep_their_parentheses():
    found = explained("(x ** -2).sum()", x=[2.0])
    assert found.forward[0].formula == "x ** (-2)"
    assert found.backward[1].sends[0].rule == "where((-2) == 0, 0, g * (-2) * x**((-2) - 1))"


def test_a_name_given_to_a_value_is_not_given_again():
    found = explained("(v1 * v1 + L).sum()", v1=[1.0], L=[2.0])
    assert [row.value for row in found.forward] == ["v2", "v3", "output"]


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("einsum('i,i->', [x, x])", "einsum('i,i->', [x, x])"),
        ("cat([x, x], dim=0)[1]", "cat([x, x])"),
        ("clamp(x, min=0, max=1)", "clamp(x, min=0, max=1)"),
        ("polygamma(1, x)", "polygamma(1, x)"),
        ("-x", "-x"),
        ("x.sum()", "sum(x)"),
        ("softmax(x, dim=-1)", "softmax(x, dim=0)"),
        ("x @ x", "x @ x"),
    ],
)
def test_a_formula_is_written_as_one_would_write_it(text, formula):
    found = explained(f"({text}).sum()", x=[1.0, 2.0])
    assert found.forward[0].formula == formula


def test_a_leaf_used_very_often_does_not_widen_every_row():
    text = explain.text(explained(" + ".join(["x * 2"] * 200), x=1.0))
    lines = text[text.index("Dependency counts") :].splitlines()
    assert max(map(len, lines)) < 400
    assert any("… (188 more) = 400" in line for line in lines)
    assert any("200 (from Mul" in line and "… (188 more))" in line for line in lines)
    few = explain.text(explained(" + ".join(["x * 2"] * 13), x=1.0))
    assert "more)" not in few


def test_matrices_do_not_widen_every_row():
    b = np.linspace(-1.3, 2.9, 9).reshape(3, 3)
    found = explained("((a@b)*a + tanh(a@b)*b + (a@b)).sum()", a=b / 7, b=b)
    assert max(map(len, explain.text(found).splitlines())) < 320
    incoming = explain.backward_cells(found.backward[-1])[2]
    assert incoming.startswith("shape=[3, 3] norm=")


def test_long_lists_of_parts_are_shortened():
    found = explained("(x" + " + x*2" * 9 + ").sum()", x=[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    incoming = explain.backward_cells(found.backward[-1])[2]
    assert incoming.count("[[") == 3
    assert "… (8 more) = [[19, 19, 19], [19, 19, 19]]" in incoming
