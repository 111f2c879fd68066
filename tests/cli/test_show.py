"""`backward`, `trace`, `dot` and `tree` on every kind of target."""

import io
import json
import os
import shutil
import subprocess
import sys
import types

import pytest

X, W = ("-i", "x=[1,2]"), ("-i", "w=[0.5,-1]")
GATE = ("tanh(x*w + x).sum()", *X, *W)

TRACE = """\
backward SumBackward shape=[] norm=1
backward TanhBackward shape=[2] norm=1.41421
backward AddBackward shape=[2] norm=1.0162
backward MulBackward shape=[2] norm=1.0162
backward AccumulateGrad shape=[2] norm=2.00815
backward AccumulateGrad shape=[2] norm=0.27106
"""

SPECS = """\
specs:
  - name: gate
    inputs: {x: [1, 2], w: [0.5, -1]}
    let: {u: x * w, v: u + x}
    output: tanh(v).sum()
    cases:
      zero: {x: [0, 0]}
  - name: square
    inputs: {x: [3]}
    output: (x ** 2).sum()
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gate.yaml").write_text(SPECS, encoding="utf-8")
    return "gate.yaml"


@pytest.fixture
def stdin(monkeypatch):
    def give(text):
        stream = types.SimpleNamespace(buffer=io.BytesIO(text.encode()))
        monkeypatch.setattr(sys, "stdin", stream)

    return give


def test_trace_prints_the_lines_of_the_worked_example(kael):
    assert kael("trace", *GATE) == (0, TRACE, "")


def test_trace_of_the_diamond(kael):
    ran = kael("trace", "(x*2 + x*3).sum()", *X)
    assert len(ran.out.splitlines()) == 5
    assert ran.out.endswith("backward AccumulateGrad shape=[2] norm=7.07107\n")


def test_trace_as_json_names_steps_and_sub_expressions(kael):
    document = json.loads(kael("trace", *GATE, "--format", "json").out)
    (result,) = document["results"]
    assert (result["status"], result["file"], result["error"]) == ("passed", None, None)
    steps = result["steps"]
    assert [step["step"] for step in steps] == [1, 2, 3, 4, 5, 6]
    assert [step["name"] for step in steps] == [None, None, None, None, "w", "x"]
    assert steps[3]["expr"] == "x*w"
    assert steps[3]["shape"] == [2]
    assert steps[3]["norm"] == pytest.approx(1.016196284854005, rel=1e-12)


def test_let_names_name_steps(kael, file):
    document = json.loads(kael("trace", f"{file}::gate", "--format", "json").out)
    assert [step["name"] for step in document["results"][0]["steps"]][2:4] == ["v", "u"]


def test_trace_shows_some_steps(kael):
    ran = kael("trace", *GATE, "--only", "Mul", "--values")
    assert ran.out == "backward MulBackward shape=[2] norm=1.0162 [0.180707, 1]\n"
    assert len(kael("trace", *GATE, "--top", "2").out.splitlines()) == 2
    assert "expression" in kael("trace", *GATE, "--format", "table").out.splitlines()[0]
    assert kael("trace", *GATE, "--only", "Nope").code == 2


def test_backward_shows_the_value_and_every_gradient(kael):
    ran = kael("backward", *GATE, "-c", "q=7")
    assert ran == (
        0,
        "value   shape=[]   0.905148\n"
        "grad x  shape=[2]  [0.271060, 0]\n"
        "grad w  shape=[2]  [0.180707, 2]\n"
        "grad q             none\n",
        "",
    )


def test_backward_as_json_has_the_exact_numbers(kael):
    document = json.loads(kael("backward", *GATE, "-c", "q=7", "--format", "json").out)
    (result,) = document["results"]
    assert result["output"] == {
        "shape": [],
        "dtype": "float64",
        "value": pytest.approx(0.9051482536448664, abs=1e-15),
    }
    assert result["grads"]["w"]["value"] == [pytest.approx(0.18070663892364855), 2.0]
    assert result["grads"]["q"] is None
    assert list(result["grads"]) == ["x", "w", "q"]


def test_a_big_gradient_is_summarised_unless_asked_for(kael):
    short = kael("backward", "(x**2).sum()", "-i", "x=arange(1000)")
    assert short.out.splitlines()[1] == (
        "grad x  shape=[1000]  norm=36487.4 min=0 max=1998 mean=999"
    )
    assert len(kael("backward", "(x**2).sum()", "-i", "x=arange(1000)", "-v").out) > 5000


def test_nan_is_printed_and_noted_and_no_failure(kael):
    ran = kael("backward", "log(x)", "-i", "x=-1")
    assert ran.code == 0
    assert ran.out.startswith("value   shape=[]  nan\n")
    assert ran.err.startswith("note: log(x): the value is not finite")
    document = json.loads(kael("backward", "log(x)", "-i", "x=-1", "--format", "json").out)
    assert document["results"][0]["output"]["value"] == "NaN"


def test_anomaly_stops_at_the_first_nan_with_exit_1(kael):
    arguments = ("where(x > 0, log(x), x*2).sum()", "-i", "x=[0, 1]")
    ran = kael("backward", *arguments, "--anomaly")
    assert ran.code == 1
    assert ran.err.startswith("<expression>:1:14: Function LogBackward returned NaN")
    assert kael("backward", *arguments).code == 0
    traced = kael("trace", *arguments, "--anomaly")
    assert (traced.code, traced.out.splitlines()[-1].split()[1]) == (1, "LogBackward")
    document = json.loads(kael("trace", *arguments, "--anomaly", "--format", "json").out)
    assert document["results"][0]["status"] == "failed"


def test_the_environment_turns_anomaly_detection_on(kael, monkeypatch):
    monkeypatch.setenv("KAEL_DETECT_ANOMALY", "1")
    assert kael("backward", "where(x > 0, log(x), x*2).sum()", "-i", "x=[0, 1]").code == 1


def test_anomaly_finds_all_there_is_whatever_the_environment_says(kael, monkeypatch):
    arguments = ("anomaly", "where(x > 0, log(x), x*2).sum()", "-i", "x=[0, 1]")
    without = kael(*arguments)
    monkeypatch.setenv("KAEL_DETECT_ANOMALY", "1")
    assert kael(*arguments) == without
    assert os.environ["KAEL_DETECT_ANOMALY"] == "1"


@pytest.mark.parametrize("command", [("explain",), ("dot", "--grads")])
def test_a_nan_met_by_detection_is_an_anomaly_in_every_command(kael, monkeypatch, command):
    monkeypatch.setenv("KAEL_DETECT_ANOMALY", "1")
    ran = kael(*command, "where(x > 0, log(x), x*2).sum()", "-i", "x=[0, 1]")
    assert ran.code == 1
    assert "Function LogBackward returned NaN in its gradient" in ran.err


def test_a_name_without_a_value_is_drawn_and_noted(kael):
    first = kael("backward", "x * 2")
    assert first.code == 0
    assert first.err.startswith("note: x drawn from a standard normal")
    assert "-i x=VALUE" in first.err
    assert kael("backward", "x * 2") == first
    assert kael("backward", "x * 2", "--seed", "1").out != first.out
    assert kael("backward", "x * 2", "-q").err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x * 2", *X], "only for scalar outputs, got shape [2]\n"),
        (["x * 2", "-c", "x=1"], "backward needs a tensor that requires grad"),
        (["tahn(x)", *X], "<expression>:1:1: unknown operation 'tahn'; did you mean 'tanh'?"),
        (["x @ w", *X, "-i", "w=[1,2,3]"], "<expression>:1:1: "),
        (["x", "-i", "x=[[1,2],[3]]"], "-i x:1:"),
        (["x", *X, "-i", "y"], "a value is missing"),
        (["specs/nothing.yaml"], "specs/nothing.yaml: there is no such file or folder"),
    ],
)
def test_bad_input_is_one_message_with_its_place_and_exit_2(kael, arguments, message):
    for command in ("backward", "trace"):
        ran = kael(command, *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert "Traceback" not in ran.err


def test_a_missing_upstream_names_the_remedy(kael):
    assert "upstream: ones" in kael("backward", "x * 2", *X).err


def test_a_broken_spec_still_yields_json(kael):
    ran = kael("backward", "tahn(x)", *X, "--format", "json")
    assert ran.code == 2
    (result,) = json.loads(ran.out)["results"]
    assert result["status"] == "error"
    assert result["error"] == {
        "message": "unknown operation 'tahn'; did you mean 'tanh'?",
        "file": None,
        "line": 1,
        "column": 1,
    }


@pytest.mark.parametrize("command", ["backward", "trace", "anomaly", "dot", "tree", "explain"])
@pytest.mark.parametrize("target", ["tahn(x)", "x @ x @ x", "nowhere.yaml"])
def test_a_document_has_the_same_keys_for_a_spec_that_is_broken(kael, command, target):
    right = json.loads(kael(command, "(x * 2).sum()", *X, "--format", "json").out)
    wrong = json.loads(kael(command, target, *X, "--format", "json").out)
    assert wrong["results"][0]["status"] == "error"
    assert list(wrong["results"][0]) == list(right["results"][0])


def test_several_results_have_titles_and_only_the_base_is_shown(kael, file):
    ran = kael("trace", file)
    assert [line for line in ran.out.splitlines() if line[0] == "#"] == ["# gate", "# square"]
    named = kael("trace", f"{file}::gate[zero]", f"{file}::square")
    assert named.out.startswith("# gate[zero]\n")


def test_one_bad_target_does_not_stop_the_others(kael, file):
    ran = kael("backward", "tahn(x)", f"{file}::square")
    assert ran.code == 2
    assert "value   shape=[]   9\n" in ran.out


def test_values_override_a_file_and_unknown_names_are_errors(kael, file):
    ran = kael("backward", f"{file}::square", "-i", "x=[5]")
    assert ran.out == "value   shape=[]   25\ngrad x  shape=[1]  [10]\n"
    assert "no selected spec has an input 'z'" in kael("backward", file, "-i", "z=1").err


def test_a_spec_from_standard_input(kael, stdin):
    stdin("inputs: {x: [1, 2]}\noutput: (x * 3).sum()\n")
    assert kael("backward", "-").out.splitlines()[1] == "grad x  shape=[2]  [3, 3]"
    stdin("inputs: {x: [1, 2]}\noutput: tahn(x)\n")
    assert kael("backward", "-").err.startswith("<stdin>:2:9: unknown operation 'tahn'")


def test_dashes_end_the_options(kael):
    ran = kael("trace", "-i", "x=-1", "--", "-x**2")
    assert ran.out.startswith("backward NegBackward shape=[] norm=1\n")


def test_dtype_is_the_default_of_everything_drawn_or_typed(kael):
    ran = kael("backward", "(x * 2).sum()", "-i", "x=[1,2]", "--dtype", "float32")
    assert "float32" in ran.out
    assert "float32" not in kael("backward", "(x * 2).sum()", "-i", "x=[1,2]").out


def test_results_go_to_a_file_whole(kael, tmp_path):
    path = tmp_path / "trace.txt"
    assert kael("trace", *GATE, "-o", str(path)) == (0, "", "")
    assert path.read_text() == TRACE
    assert kael("trace", "tahn(x)", "-o", str(path)).code == 2
    assert path.read_text() == TRACE
    assert os.listdir(tmp_path) == ["trace.txt"]


def test_the_tree_of_the_worked_example(kael):
    assert kael("tree", *GATE) == (
        0,
        "SumBackward\n"
        "└── TanhBackward\n"
        "    └── AddBackward\n"
        "        ├── MulBackward\n"
        "        │   ├── AccumulateGrad (x)\n"
        "        │   └── AccumulateGrad (w)\n"
        "        └── AccumulateGrad (x) same node as above\n",
        "",
    )


def test_a_leaf_used_twice_is_one_node_with_two_edges(kael):
    out = kael("dot", *GATE).out
    assert out.startswith("digraph ")
    assert out.count("AccumulateGrad (x)") == 1
    document = json.loads(kael("dot", *GATE, "--format", "json").out)["results"][0]
    leaf = next(n["id"] for n in document["nodes"] if n["label"] == "AccumulateGrad (x)")
    assert sum(edge["to"] == leaf for edge in document["edges"]) == 2
    assert all(edge["shape"] == [2] for edge in document["edges"])


@pytest.mark.parametrize("command", ["dot", "tree"])
def test_a_drawing_shows_one_spec(kael, file, command):
    ran = kael(command, file)
    assert (ran.code, ran.out) == (2, "")
    assert "gate.yaml::gate\n" in ran.err
    assert "gate.yaml::square\n" in ran.err
    assert kael(command, f"{file}::gate").code == 0
    assert kael(command, "sum(3)").code == 2
    assert kael(command, *GATE, "--mermaid").out.startswith("flowchart")


def test_dot_writes_values_gradients_and_norms_where_asked(kael):
    out = kael("dot", *GATE, "--values", "--grads", "--norms").out
    for line in (
        r'  n0 [label="SumBackward\nvalue 0.905148\ngradient 1"];',
        r'  n3 [label="MulBackward\nvalue [0.5, -2]\ngradient [0.180707, 1]"];',
        r'  n4 [label="AccumulateGrad (w)\nvalue [0.5, -1]\ngradient [0.180707, 2]", '
        'shape=ellipse, fillcolor="#d5e8d4"];',
        '  n2 -> n3 [label="[2] norm=1.0162"];',
        '  n3 -> n5 [label="[2] norm=0.27106"];',
    ):
        assert line in out.splitlines()
    plain = kael("dot", *GATE).out
    assert [line.partition(" [")[0] for line in out.splitlines()] == [
        line.partition(" [")[0] for line in plain.splitlines()
    ]
    only = kael("dot", *GATE, "--grads").out
    assert "gradient" in only
    assert "value" not in only
    assert "norm" not in only
    assert "value 0.905148" in kael("dot", *GATE, "--values", "--mermaid").out


def test_dot_as_json_has_what_was_asked_for_and_no_more(kael):
    ran = kael("dot", "log(x).sum()", "-i", "x=[0,1]", "--values", "--norms", "--format", "json")
    document = json.loads(ran.out)["results"][0]
    assert list(document["nodes"][0]) == ["id", "name", "label", "shape", "value"]
    assert [node["value"] for node in document["nodes"]] == [
        "-Infinity",
        ["-Infinity", 0.0],
        [0, 1],
    ]
    assert [edge["norm"] for edge in document["edges"]] == [pytest.approx(2**0.5), "Infinity"]
    plain = json.loads(kael("dot", *GATE, "--format", "json").out)["results"][0]
    assert list(plain["nodes"][0]) == ["id", "name", "label", "shape"]
    assert list(plain["edges"][0]) == ["from", "to", "shape"]


def test_dot_of_a_vector_takes_ones_upstream(kael):
    out = kael("dot", "x * 2", *X, "--grads").out
    assert r'n1 [label="AccumulateGrad (x)\ngradient [2, 2]"' in out


@pytest.mark.parametrize(
    ("option", "marked", "word"),
    [
        ("--values", ["n0", "n1"], "value not finite"),
        ("--grads", ["n2"], "gradient not finite"),
        ("--norms", ["n2"], "gradient not finite"),
    ],
)
def test_dot_marks_what_is_not_finite(kael, option, marked, word):
    out = kael("dot", "log(x).sum()", "-i", "x=[0,1]", option).out
    found = [line.split()[0] for line in out.splitlines() if "#f8cecc" in line]
    assert (found, word in out) == (marked, True)


def test_dot_of_a_function_of_several_outputs(kael, tmp_path):
    path = tmp_path / "two.py"
    path.write_text(
        "import kael\n"
        "class Two(kael.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        return x * 3, x * 4\n"
        "    @staticmethod\n"
        "    def backward(ctx, a, b):\n"
        "        return a * 3 + b * 4\n"
        "@kael.spec(x=[1.0, 2.0])\n"
        "def two(x):\n"
        "    a, b = Two.apply(x)\n"
        "    return (a + b).sum()\n",
        encoding="utf-8",
    )
    out = kael("dot", str(path), "--values", "--grads", "--norms").out
    assert '[label="TwoBackward", fillcolor="#fff2cc"];' in out
    assert '[label="[2] norm=2"]' in out  # over both outputs
    assert r"AccumulateGrad (x)\nvalue [1, 2]\ngradient [7, 7]" in out


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_graphviz_draws(kael, tmp_path, ending, start):
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed: there is no program 'dot'")
    path = tmp_path / f"graph.{ending}"
    ran = kael("dot", *GATE, "--values", "-o", str(path))
    assert ran == (0, "", "")
    assert path.read_bytes().startswith(start)
    if ending == "svg":
        text = path.read_text()
        assert text.count('class="node"') == 6
        assert text.count('class="edge"') == 6
        assert "AccumulateGrad (x)" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.gif"], "a graph is drawn as svg, png, pdf, not 'gif'"),
        (
            ["-o", "x.svg", "--mermaid"],
            "--mermaid writes text, and 'x.svg' is the name of a picture",
        ),
        (["-o", "x.png", "--format", "json"], "--format json writes text"),
    ],
)
def test_no_text_is_written_under_the_name_of_a_picture(
    kael, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    ran = kael("dot", *GATE, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert os.listdir(tmp_path) == []


def test_a_drawing_without_graphviz_says_how_to_get_it(kael, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = kael("dot", *GATE, "-o", str(tmp_path / "graph.svg"))
    assert ran.code == 2
    assert "Graphviz is not installed" in ran.err
    assert os.listdir(tmp_path) == []


def test_a_reader_that_leaves_early_is_no_error():
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [sys.executable, "-m", "kael_cli", "trace", *GATE], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_piped_output_has_no_colour_and_no_width():
    variables = {**os.environ, "COLUMNS": "20", "TERM": "xterm"}
    ran = subprocess.run(
        [sys.executable, "-m", "kael_cli", "backward", *GATE],
        capture_output=True,
        text=True,
        env=variables,
    )
    assert ran.stdout.splitlines()[1] == "grad x  shape=[2]  [0.271060, 0]"
    assert "\x1b" not in ran.stdout


def test_anomaly_names_the_origin_and_exits_1(kael):
    ran = kael("anomaly", "sum(a / b)", "-i", "a=[1,2,3]", "-i", "b=[1,0,2]")
    assert ran.code == 1
    assert ran.out.startswith("<expression>:1:5: error: div (DivBackward) gives Infinity at [1]\n")
    assert "2.0 / 0.0 at [1] is inf" in ran.out


def test_anomaly_points_at_an_input_where_it_is_given(kael):
    ran = kael("anomaly", "max(x)", "-i", "x=[1, nan, 2]")
    assert (ran.code, ran.out.splitlines()[0]) == (1, "-i x:1:1: error: x is NaN at [1]")


def test_anomaly_names_a_python_file_as_it_was_given(kael, tmp_path, monkeypatch):
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "helper.py").write_text("import kael\ndef root(x): return kael.sqrt(x)\n")
    (tmp_path / "specs" / "f.py").write_text(
        "import kael, helper\n"
        "@kael.spec(x=[0.0, 1.0])\n"
        "def f(x):\n"
        "    return kael.log(x).sum() + helper.root(x).sum()\n"
        "@kael.spec(x=[0.0, 1.0])\n"
        "def g(x):\n"
        "    return kael.where(x > 0, kael.log(x), x).sum()\n"
    )
    monkeypatch.chdir(tmp_path)
    out = kael("anomaly", "specs/f.py::f").out
    assert out.startswith("specs/f.py:4:12: error: log (LogBackward) gives -inf at [0]\n")
    assert "\nspecs/helper.py:2:21: error: the gradient of sqrt " in out
    assert str(tmp_path) not in out
    monkeypatch.chdir(tmp_path / "specs")
    assert kael("anomaly", "../specs/f.py::f").out.startswith("../specs/f.py:4:12: error: ")
    ran = kael("backward", "f.py::g", "--anomaly")
    assert ran.code == 1
    assert ran.err.startswith(
        "f.py:7:30: Function LogBackward returned NaN in its gradient\n"
        "      return kael.where(x > 0, kael.log(x), x).sum()\n"
        "                               ^\n"
    )


def test_a_masked_anomaly_is_a_warning_and_none_is_a_line(kael):
    masked = kael("anomaly", "sum(where(x > 0, log(x), x))", "-i", "x=[-1,2]")
    assert (masked.code, "warning" in masked.out) == (0, True)
    clean = kael("anomaly", "x * 2", *X)
    assert clean == (0, "no anomaly: every value and gradient is finite\n", "")


def test_anomaly_as_json(kael):
    ran = kael("anomaly", "sum(sqrt(x))", "-i", "x=[0,4]", "--format", "json")
    (row,) = json.loads(ran.out)["results"]
    assert (ran.code, row["status"]) == (1, "failed")
    finding = row["findings"][0]
    assert (finding["phase"], finding["op"], finding["indices"]) == ("backward", "sqrt", [[0]])
    assert {"name": "x", "value": 0.0, "shape": [2]} in finding["operands"]


def test_explain_works_the_example(kael, file):
    ran = kael("explain", *GATE)
    assert ran.code == 0
    assert "4     MulBackward         [0.180707, 1]" in ran.out
    assert "[0.180707, 1] + [0.090353, -1] = [0.271060, 0]" in ran.out
    assert kael("explain", *GATE, "--format", "markdown").out.startswith("## Inputs")
    document = json.loads(kael("explain", *GATE, "--format", "json").out)["results"][0]
    assert len(document["steps"]) == len(document["nodes"]) == 6
    assert kael("explain", file).code == 2


def test_explain_step_by_step_shows_every_step(kael):
    out = kael("explain", *GATE, "--step").out
    assert [line for line in out.splitlines() if line.startswith("Step: ")] == [
        f"Step: {number}" for number in range(1, 7)
    ]
    assert out.count("Dependency counts") == 1
