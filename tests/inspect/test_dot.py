"""DOT and Mermaid texts, exactly; rendering without Graphviz."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import kael
from kael.inspect import dot
from kael.inspect.graph import graph_of

GATE = """\
digraph kael {
  rankdir=TB;
  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="Helvetica"];
  edge [fontname="Helvetica", fontsize=10];
  n0 [label="SumBackward"];
  n1 [label="TanhBackward"];
  n2 [label="AddBackward"];
  n3 [label="MulBackward"];
  n4 [label="AccumulateGrad (w)", shape=ellipse, fillcolor="#d5e8d4"];
  n5 [label="AccumulateGrad (x)", shape=ellipse, fillcolor="#d5e8d4"];
  n0 -> n1 [label="[2]"];
  n1 -> n2 [label="[2]"];
  n2 -> n3 [label="[2]"];
  n2 -> n5 [label="[2]"];
  n3 -> n5 [label="[2]"];
  n3 -> n4 [label="[2]"];
}
"""


def leaf(values):
    return kael.tensor(values, requires_grad=True)


def gate():
    x, w = leaf([1.0, 2.0]), leaf([0.5, -1.0])
    return kael.tanh(x * w + x).sum(), {"x": x, "w": w}


def test_a_leaf_used_twice_is_one_node_and_every_edge_has_a_shape():
    loss, names = gate()
    assert kael.debug.autograd_graph_dot(loss, names=names) == GATE


def test_two_processes_give_the_same_text():
    program = (
        "import kael\n"
        "x = kael.tensor([1.0, 2.0], requires_grad=True)\n"
        "w = kael.tensor([0.5, -1.0], requires_grad=True)\n"
        "loss = kael.tanh(x * w + x).sum()\n"
        "print(kael.debug.autograd_graph_dot(loss, names={'x': x, 'w': w}), end='')\n"
    )
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout == GATE


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("a:b", r'"AccumulateGrad (a:b)"'),
        ('c"d', r'"AccumulateGrad (c\"d)"'),
        ("e\\f", r'"AccumulateGrad (e\\f)"'),
        ("g\nh", r'"AccumulateGrad (g\nh)"'),
        ("i\\", r'"AccumulateGrad (i\\)"'),
        ("<b>", r'"AccumulateGrad (<b>)"'),
        ("\x1b[1m", '"AccumulateGrad (\N{REPLACEMENT CHARACTER}[1m)"'),
    ],
)
def test_names_stand_in_quoted_labels_only(name, label):
    x = leaf([1.0])
    text = kael.debug.autograd_graph_dot(x * 2, names={name: x})
    assert f"n1 [label={label}, shape=ellipse" in text
    assert re.findall(r"n\d+ -> n\d+", text) == ["n0 -> n1"]


def test_values_gradients_and_norms_are_written_where_asked():
    x = leaf([3.0, 4.0])
    y = x * 2
    node, accumulator = y.grad_fn, graph_of(y).nodes[1].node
    options = dot.DotOptions(
        values={node: np.array([6.0, 8.0])},
        gradients={node: np.ones(2)},
        norms={accumulator: np.array([3.0, 4.0])},
    )
    text = dot.graph_dot(y, {"x": x}, options)
    assert r'n0 [label="MulBackward\nvalue [6, 8]\ngradient [1, 1]"]' in text
    assert 'n0 -> n1 [label="[2] norm=5"]' in text


def test_failing_and_non_finite_nodes_are_marked():
    x = leaf([3.0])
    y = x * 2
    z = kael.exp(y)
    options = dot.DotOptions(
        values={z.grad_fn: np.array([np.inf])}, marked={y.grad_fn: "wrong at [0]"}
    )
    lines = dot.graph_dot(z, {"x": x}, options).splitlines()
    assert (
        r'  n0 [label="ExpBackward\nvalue [inf]\nvalue not finite", '
        'fillcolor="#f8cecc", color="#b85450", penwidth=2];'
    ) in lines
    assert (
        r'  n1 [label="MulBackward\nwrong at [0]", '
        'fillcolor="#f8cecc", color="#b85450", penwidth=2];'
    ) in lines


def test_what_one_let_value_needs_is_a_cluster():
    x, w = leaf([1.0]), leaf([2.0])
    u = kael.tanh(x * w + x)
    text = dot.graph_dot((u * 3).sum(), {"x": x, "w": w, "u": u})
    assert (
        "  subgraph cluster_0 {\n"
        '    label="u";\n'
        '    style="rounded,dashed"; fontname="Helvetica";\n'
        "    n2;\n    n3;\n    n4;\n"
        "  }\n"
    ) in text
    plain = dot.graph_dot((u * 3).sum(), {"u": u}, dot.DotOptions(clusters=False))
    assert "cluster" not in plain


def test_a_long_chain_is_written_without_recursion_and_folded_on_request():
    y = leaf([0.1])
    for _ in range(3000):
        y = kael.sin(y)
    assert dot.graph_dot(y).count("->") == 3000
    folded = dot.graph_dot(y, options=dot.DotOptions(max_nodes=10))
    assert r'n0 [label="SinBackward x 2999"]' in folded
    assert "--max-nodes" in dot.size_note(graph_of(y))
    assert dot.size_note(graph_of(y), max_nodes=10) is None
    assert dot.size_note(graph_of(gate()[0])) is None


def test_a_limit_below_one_is_refused():
    with pytest.raises(kael.KaelValueError, match="max_nodes"):
        dot.DotOptions(max_nodes=0)


def test_mermaid_draws_the_same_graph():
    x = leaf([1.0])
    assert dot.mermaid_text(graph_of(kael.exp(x), {'a"b<c>#': x})) == (
        "flowchart TD\n"
        '  n0["ExpBackward"]\n'
        '  n1(["AccumulateGrad (a#quot;b#lt;c#gt;#35;)"])\n'
        '  n0 -->|"[1]"| n1\n'
        "  classDef leaf fill:#d5e8d4\n"
        "  class n1 leaf\n"
    )


def test_without_graphviz_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(kael.KaelError, match="apt install graphviz"):
        dot.rendered(GATE, "svg")


def test_graphviz_that_fails_is_quoted(monkeypatch, tmp_path):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho 'syntax error in line 1' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(kael.KaelError, match="syntax error in line 1"):
        dot.rendered("digraph", "png")


def test_graphviz_gives_the_drawing(monkeypatch, tmp_path):
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\necho "drawn $1" > "$3"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert dot.rendered(GATE, "pdf") == b"drawn -Tpdf\n"


def test_an_unknown_picture_format_is_refused():
    with pytest.raises(kael.KaelValueError, match="svg, png, pdf"):
        dot.rendered(GATE, "gif")
