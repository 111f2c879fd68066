# ruff: noqa: E501 (a table reads best with one row a line)
"""Graph pictures of large graphs, the same bytes each time, and people's names in them."""

import json
import os
import re
import subprocess
import sys

import pytest

import kael as k

LOOP = """\
import kael

@kael.spec(x=[0.5, 0.25])
def loop(x):
    for _ in range({steps}):
        x = kael.tanh(x) * 1.01
    return x.sum()
"""
DRAWINGS = {
    "dot": ("dot",),
    "mermaid": ("dot", "--mermaid"),
    "tree": ("tree",),
    "explain": ("explain",),
    "trace": ("trace",),
    "dot json": ("dot", "--format", "json"),
    "tree json": ("tree", "--format", "json"),
}


@pytest.fixture
def loop(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP.format(steps=1500), encoding="utf-8")
    return str(tmp_path / "loop.py")


# E1: graphs of thousands of nodes. source: pytorchviz #71, torchview #118, torchlens #24


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_a_loop_of_3000_operations_is_written(drawing, kael, loop):
    ran = kael(*drawing, loop)
    assert ran.code == 0
    assert "Traceback" not in ran.err
    assert ran.out


@pytest.mark.parametrize("option", [(), ("--mermaid",)])
def test_a_large_graph_is_noted_on_stderr_and_folds_on_request(option, kael, loop):
    whole = kael("dot", *option, loop)
    assert "3,002 nodes" in whole.err
    assert "--max-nodes" in whole.err
    assert "nodes, which" not in whole.out
    folded = kael("dot", *option, "--max-nodes", "20", loop)
    assert (folded.code, folded.err) == (0, "")
    assert len(folded.out.splitlines()) < 40
    assert re.search(r"TanhBackward x 1[0-9]{3}", folded.out)


@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_a_limit_on_the_nodes_is_kept(most, kael, loop):
    ran = kael("dot", "--format", "json", "--max-nodes", str(most), loop)
    (row,) = json.loads(ran.out)["results"]
    assert ran.code == 0
    assert 0 < len(row["nodes"]) <= max(most, 1)


def test_a_chain_as_an_expression_and_as_a_wide_sum(kael):
    chain = " + ".join(["x"] * 3000)
    ran = kael("dot", chain, "-i", "x=2")
    assert ran.code == 0
    assert ran.out.count("AddBackward") == 2999
    ran = kael("tree", chain, "-i", "x=2")
    assert ran.code == 0
    assert len(ran.out.splitlines()) < 3100


def test_a_small_graph_needs_no_word(kael):
    assert kael("dot", "tanh(x*w + x).sum()", "-i", "x=[1,2]", "-i", "w=[0.5,-1]").err == ""


# E2: the same bytes each time. source: anytree #194, pipdeptree #189, diagrams #739

SPEC = """\
inputs:
  a: {shape: [3, 2], init: normal}
  b: {shape: [2], init: uniform}
let:
  u: a * b
  v: tanh(u) + u
output: (v * v).sum() + norm(b)
"""


def in_a_process(folder, *arguments, hash_seed="0"):
    ran = subprocess.run(
        [sys.executable, "-m", "kael_cli", *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "COLUMNS": str(40 + int(hash_seed) * 100)},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_two_processes_write_the_same_bytes(drawing, tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "case.yaml").write_text(SPEC, encoding="utf-8")
    first = in_a_process(tmp_path / "here", *drawing, "case.yaml", hash_seed="1")
    second = in_a_process(tmp_path / "there", *drawing, "case.yaml", hash_seed="2")
    assert first == second
    text = first.decode()
    assert "0x" not in text
    assert str(tmp_path) not in text


def test_ids_are_counted(kael, tmp_path):
    (tmp_path / "case.yaml").write_text(SPEC, encoding="utf-8")
    ran = kael("dot", str(tmp_path / "case.yaml"))
    ids = re.findall(r"^\s*(n\d+) \[label", ran.out, re.MULTILINE)
    assert sorted(ids, key=lambda name: int(name[1:])) == [f"n{i}" for i in range(len(ids))]
    assert set(re.findall(r"(\w+) -> (\w+)", ran.out)) <= {(a, b) for a in ids for b in ids}
    assert kael("dot", str(tmp_path / "case.yaml")).out == ran.out


# E3: names that a drawing language reads as its own. source: graphviz #53, networkx #1348, pydot #264

NAMES = [
    "a:b",
    'c"d',
    "e\\f",
    "g\nh",
    "i]j",
    "<b>k</b>",
    "{l|m}",
    "n;o",
    "->",
    "%p",
    "q\\",
    "ä",
    "",
]


QUOTED = r'"(?:[^"\\\n]|\\.)*"'
ATTRIBUTES = rf"\[label={QUOTED}(?:, \w+=(?:{QUOTED}|\w+))*\]"
STATEMENTS = re.compile(
    rf"digraph kael \{{|\}}|  rankdir=TB;|  (?:node|edge) \[.*\];"
    rf"|  n\d+ {ATTRIBUTES};|  n\d+ -> n\d+(?: {ATTRIBUTES})?;"
)


def is_dot(text):
    """Every line is a statement whose ids are counted and whose text is in double quotes."""
    return all(STATEMENTS.fullmatch(line) for line in text.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_peoples_text_stands_in_labels_only(name):
    x = k.tensor([1.0, 2.0], requires_grad=True)
    text = k.debug.autograd_graph_dot((x * x).sum(), names={name: x})
    assert is_dot(text), text
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert f"({escaped})" in text
    assert len(re.findall(r"^  n\d+ \[", text, re.MULTILINE)) == 3


def test_the_reader_of_statements_refuses_broken_text():
    assert not is_dot('digraph kael {\n  n0 [label="a"b"];\n}')
    assert not is_dot('digraph kael {\n  n0:b [label="a"];\n}')
    assert not is_dot("digraph kael {\n  n0 [label=a];\n}")


@pytest.mark.parametrize("name", ["a:b", 'c"d', "e\\f", "l|m", "<b>"])
@pytest.mark.parametrize("drawing", [("dot",), ("dot", "--mermaid"), ("tree",)])
def test_names_of_specs_break_no_drawing(drawing, name, kael, tmp_path):
    path = tmp_path / "case.yaml"
    path.write_text(
        f"name: {json.dumps(name)}\ninputs: {{x: 1.0}}\noutput: x * x\n", encoding="utf-8"
    )
    ran = kael(*drawing, str(path))
    assert ran.code == 0, ran.err
    if drawing == ("dot",):
        assert is_dot(ran.out), ran.out
