"""`gradcheck` and `check`: verdicts, exit codes, selection, formats."""

import json
import shlex
import xml.etree.ElementTree as ElementTree

import pytest

GOOD = """\
specs:
  - name: gate
    tags: [activation]
    inputs: {x: [1, 2], w: [0.5, -1]}
    output: tanh(x*w + x).sum()
    expect: {value: 0.9051482536448665}
    derivatives: {w: (1 - tanh(x*w + x)**2) * x}
    cases:
      zero: {x: [0.5, 0.25]}
  - name: square loss
    tags: [loss, slow]
    inputs: {x: [3.0, -1.5]}
    output: (x ** 2).sum()
"""
WRONG = """\
name: wrong claim
inputs:
  x: [1.5, -2, 0.5]
output: (x ** 3).sum()
derivatives:
  x: 2 * x**2
"""
BROKEN = "name: broken\ninputs: {x: [1, 2]}\noutput: tahn(x).sum()\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(**files):
        (tmp_path / "specs").mkdir(exist_ok=True)
        for name, text in files.items():
            (tmp_path / "specs" / f"{name}.yaml").write_text(text, encoding="utf-8")

    (tmp_path / "pyproject.toml").write_text("")
    return write


def results(ran):
    return json.loads(ran.out)["results"]


def test_a_right_formula_passes_with_a_line(kael):
    ran = kael("gradcheck", "tanh(x*w + x).sum()", "-i", "x=[1,2]", "-i", "w=[0.5,-1]")
    assert (ran.code, ran.err) == (0, "")
    first, last = ran.out.splitlines()
    assert first == "<expression>:1:1: tanh(x*w + x).sum(): passed (numeric x, w)"
    assert last.startswith("1 passed in ")


def test_every_case_is_checked_and_the_base_comes_first(kael, project):
    project(good=GOOD)
    ran = kael("gradcheck", "specs/good.yaml", "--format", "json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert [(row["spec"], row["case"]) for row in document["results"]] == [
        ("gate", None),
        ("gate", "zero"),
        ("square loss", None),
    ]
    assert document["summary"]["passed"] == 3
    gate, zero, _ = document["results"]
    kinds = {check["kind"] for check in gate["checks"]}
    assert {"numeric", "derivative", "expect"} <= kinds
    assert "expect" not in {check["kind"] for check in zero["checks"]}
    assert (gate["file"], gate["line"]) == ("specs/good.yaml", 2)


def test_a_wrong_claim_says_where_what_was_claimed_and_found_and_who_is_right(kael, project):
    project(wrong=WRONG)
    ran = kael("gradcheck", "specs/wrong.yaml", "--seed", "3")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[0].startswith("specs/wrong.yaml:6:6: wrong claim: ")
    assert "derivative x: 3 of 3 entries wrong" in lines[1]
    assert lines[2].split() == ["index", "claimed", "found", "error", "of", "found"]
    rows = [line.split() for line in lines[3:6]]
    assert {(row[0], row[1], row[2]) for row in rows} == {
        ("[0]", "4.5", "6.75"),
        ("[1]", "8", "12"),
        ("[2]", "0.5", "0.75"),
    }
    assert "  note: x: kael's gradient agrees with the differences; the claim is wrong" in lines
    command = "kael gradcheck 'specs/wrong.yaml::wrong claim' --seed 3"
    assert f"  reproduce: {command}" in lines
    again = kael(*shlex.split(command)[1:])
    assert again.code == 1
    assert again.out.splitlines()[:-1] == lines[:-1]


def test_a_missed_expectation_fails(kael, project):
    project(golden="name: g\ninputs: {x: 2}\noutput: x**2\nexpect: {value: 4, grad: {x: 5}}\n")
    ran = kael("gradcheck", "specs/golden.yaml", "--format", "json")
    assert ran.code == 1
    (row,) = results(ran)
    bad = [check for check in row["checks"] if check["status"] == "failed"]
    assert [(check["kind"], check["input"]) for check in bad] == [("expect", "x")]
    assert bad[0]["failures"] == [
        {"index": [], "analytic": 4.0, "numeric": 5.0, "numeric_error": 0.0}
    ]


@pytest.mark.parametrize(
    ("claim", "code"), [("2*pi*r", 0), ("2*3.1415926*r", 0), ("2*3.1416*r", 1)]
)
def test_the_tolerance_of_a_claim_is_tight(kael, project, claim, code):
    project(circle=f"inputs: {{r: 1.5}}\noutput: pi * r**2\nderivatives: {{r: {claim}}}\n")
    assert kael("check", "specs").code == code


def test_a_broken_spec_is_an_error_among_results(kael, project):
    project(good=GOOD, broken=BROKEN)
    ran = kael("check", "specs")
    assert ran.code == 2
    assert ran.out.startswith(
        "specs/broken.yaml:3:9: unknown operation 'tahn'; did you mean 'tanh'?\n"
        "  output: tahn(x).sum()\n"
        "          ^\n"
    )
    assert "3 passed, 1 error in " in ran.out
    project(wrong=WRONG)
    assert kael("check", "specs").code == 1


def test_a_broken_spec_still_yields_json(kael, project):
    project(broken=BROKEN)
    ran = kael("check", "specs", "--format", "json")
    document = json.loads(ran.out)
    assert ran.code == 2
    assert document["summary"]["errors"] == 1
    assert document["results"][0]["error"]["column"] == 9
    assert document["results"][0]["spec"] == "broken"
    case = ElementTree.fromstring(kael("check", "specs", "--format", "junit").out).find(
        ".//testcase"
    )
    assert (case.get("name"), case[0].tag) == ("broken", "error")


def test_a_broken_spec_is_known_by_its_name(kael, project):
    project(
        several="specs:\n"
        "  - {name: sound, inputs: {x: 1}, output: x*x}\n"
        "  - {name: broken, inputs: {x: 1}, output: xx*x}\n"
    )
    for selection in (["specs"], ["specs", "-k", "broken"], ["specs/several.yaml::broken"]):
        ran = kael("gradcheck", *selection, "--format", "json")
        assert ran.code == 2
        assert ("broken", "error") in [(r["spec"], r["status"]) for r in results(ran)]
    (shown,) = results(kael("backward", "specs/several.yaml::broken", "--format", "json"))
    assert shown["spec"] == "broken"
    assert kael("gradcheck", "specs", "-k", "other").err == (
        "error: no spec matches -k 'other'; 1 were read\n"
    )
    assert kael("gradcheck", "specs/several.yaml::*").code == 2


def test_a_selection_does_not_hide_what_could_not_be_read(kael, project):
    project(good=GOOD, bad="inputs: {x: [1, 2}\n")
    ran = kael("gradcheck", "specs", "-k", "other", "--format", "json")
    assert (ran.code, ran.err) == (2, "")
    assert [(r["spec"], r["status"]) for r in results(ran)] == [("bad", "error")]


def test_check_says_only_what_does_not_hold(kael, project):
    project(good=GOOD)
    quiet = kael("check", "specs")
    assert (quiet.code, len(quiet.out.splitlines())) == (0, 1)
    assert len(kael("check", "specs", "-v").out.splitlines()) > 4


def test_check_without_paths_takes_the_projects(kael, project, tmp_path):
    ran = kael("check")
    assert ran.code == 2
    assert "there is no folder 'specs'" in ran.err
    project(good=GOOD)
    assert kael("check").code == 0
    (tmp_path / "pyproject.toml").write_text("[tool.kael]\nspecs = 'gates'\n")
    assert "names" in kael("check").err


def test_check_takes_paths_only(kael):
    ran = kael("check", "x**2", "-i", "x=1")
    assert ran.code == 2
    assert "takes paths" in ran.out + ran.err


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        (["-k", "gate"], ["gate", "gate[zero]"]),
        (["-k", "gate and not zero"], ["gate"]),
        (["-k", "ZERO or loss"], ["gate[zero]", "square loss"]),
        (["--tag", "slow"], ["square loss"]),
        (["--tag", "slow", "--tag", "activation", "-k", "not zero"], ["gate", "square loss"]),
    ],
)
def test_selection(kael, project, options, titles):
    project(good=GOOD)
    ran = kael("check", "specs", "--format", "json", *options)
    found = [r["spec"] + (f"[{r['case']}]" if r["case"] else "") for r in results(ran)]
    assert (ran.code, found) == (0, titles)


@pytest.mark.parametrize("options", [["-k", "nothing"], ["--tag", "nothing"], ["-k", "("]])
def test_a_selection_of_nothing_is_exit_2(kael, project, options):
    project(good=GOOD)
    ran = kael("check", "specs", *options)
    assert (ran.code, ran.out) == (2, "")
    assert options[0] in ran.err


def test_x_stops_at_the_first_result_that_does_not_hold(kael, project):
    project(a=WRONG, b=GOOD)
    assert len(results(kael("check", "specs", "--format", "json"))) == 4
    ran = kael("check", "specs", "--format", "json", "-x")
    assert (ran.code, len(results(ran))) == (1, 1)


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("skip: not now\n", "skipped", 2),
        ("xfail: known\n", "xpassed", 1),
        ("xfail: known\nderivatives: {x: x}\n", "xfailed", 0),
        ("xfail: known\nlet: {y: nope}\n", "error", 2),
        ("gradcheck: {numeric: false}\n", "skipped", 2),
        ("gradcheck: {numeric: false}\nderivatives: {x: 2*x}\n", "passed", 0),
    ],
)
def test_what_a_spec_says_of_itself(kael, project, text, status, code):
    project(spec=f"name: s\ninputs: {{x: [1, 2]}}\noutput: (x**2).sum()\n{text}")
    ran = kael("check", "specs", "--format", "json")
    (row,) = results(ran)
    assert (row["status"], ran.code) == (status, code)


@pytest.mark.parametrize(
    "text",
    [
        "inputs: {x: {value: [1, 2], requires_grad: false}}\noutput: (x**2).sum()\n",
        "inputs: {x: {shape: [0]}}\noutput: (x**2).sum()\n",
        "inputs: {m: {value: [true]}}\noutput: m.sum()\n",
    ],
)
def test_nothing_compared_is_no_success(kael, project, text):
    project(spec=text)
    ran = kael("check", "specs")
    assert ran.code == 2
    assert "1 skipped in" in ran.out
    assert "nothing was compared" in ran.err


def test_an_undefined_point_is_an_error_and_not_a_failure(kael):
    ran = kael("gradcheck", "acosh(x)", "-i", "x=0.5", "--format", "json")
    assert ran.code == 2
    (row,) = results(ran)
    assert (row["status"], row["checks"]) == ("error", [])
    assert "NaN" in row["error"]["message"]


def test_a_name_without_a_value_is_an_error(kael):
    ran = kael("gradcheck", "x * 2")
    assert ran.code == 2
    assert "'x' has no value" in ran.out
    ran = kael("gradcheck", "spec/gate")
    assert (ran.code, "no such file or folder" in ran.out) == (2, True)


def test_a_bad_value_of_an_option_is_refused_before_anything_runs(kael, project):
    project(good=GOOD)
    for options in (["--eps", "0"], ["--atol", "-1"], ["--rtol", "nan"], ["--mode", "quick"]):
        ran = kael("check", "specs", *options)
        assert (ran.code, ran.out) == (2, "")


def test_the_command_line_wins_over_the_spec(kael, project):
    project(wrong=WRONG.replace("2 * x**2", "3 * x**2 + 1e-4"))
    assert kael("check", "specs").code == 1
    assert kael("check", "specs", "--atol", "1e-2").code == 0


def test_inconclusive_fails_unless_allowed(kael):
    arguments = ("gradcheck", "(x + 1e12) - 1e12", "-i", "x=1")
    ran = kael(*arguments, "--format", "json")
    assert (ran.code, results(ran)[0]["status"]) == (1, "inconclusive")
    assert kael(*arguments, "--allow-inconclusive").code == 0


def test_samples_check_more_points_and_find_what_one_point_hides(kael, project):
    # at 1 the claim 3*x and the derivative 3*x**2 agree
    text = "inputs: {x: 1}\noutput: x**3\nderivatives: {x: 3*x}\n"
    project(spec=text)
    assert kael("check", "specs").code == 0
    ran = kael("check", "specs", "--samples", "2")
    assert ran.code == 1
    assert "sample 1" in ran.out
    assert "reproduce: kael gradcheck specs/spec.yaml::spec -i x=" in ran.out
    project(spec=text + "gradcheck: {samples: 1}\n")
    assert kael("check", "specs").code == 1
    assert kael("check", "specs", "--samples", "0").code == 0


def test_anomaly_is_a_failure(kael):
    arguments = ("gradcheck", "where(x > 0, log(x), x*2).sum()", "-i", "x=[0, 1]")
    ran = kael(*arguments, "--anomaly")
    assert ran.code == 1
    assert "Function LogBackward returned NaN in its gradient" in ran.out
    assert "[anomaly]" in ran.out


def test_the_formats(kael, project):
    project(wrong=WRONG, good=GOOD)
    junit = kael("check", "specs", "--format", "junit")
    cases = ElementTree.fromstring(junit.out).findall(".//testcase")
    assert [case.get("name") for case in cases] == [
        "gate",
        "gate[zero]",
        "square loss",
        "wrong claim",
    ]
    assert junit.code == 1
    github = kael("check", "specs", "--format", "github")
    assert github.out.startswith("::error file=specs/wrong.yaml,line=6,col=6,")


def test_reproduce_quotes_inline_expressions_and_values(kael):
    ran = kael(
        "gradcheck",
        "tanh(x) * y",
        "-i",
        "x=0.5",
        "-c",
        "y=2",
        "--atol",
        "0.5",
        "--format",
        "json",
    )
    assert results(ran)[0]["reproduce"] == (
        "kael gradcheck 'tanh(x) * y' -i x=0.5 -c y=2 --atol 0.5 --seed 0"
    )
    ran = kael("gradcheck", "-i", "x=0.5", "--format", "json", "--", "-x")
    assert results(ran)[0]["reproduce"] == "kael gradcheck -i x=0.5 --seed 0 -- -x"


def test_two_runs_differ_in_time_only(kael, project):
    project(good=GOOD, wrong=WRONG, broken=BROKEN)
    first, second = (kael("gradcheck", "specs").out.rpartition(" in ")[0] for _ in range(2))
    assert first == second


def test_a_bug_met_in_one_spec_does_not_hide_the_others(kael, project, monkeypatch):
    import kael.specs.verdict as verdict

    def fails(evaluated, *others, **given):
        if evaluated.instance.case == "zero":
            raise AssertionError("never")
        return verify(evaluated, *others, **given)

    verify = verdict._verify
    monkeypatch.setattr(verdict, "_verify", fails)
    project(good=GOOD)
    ran = kael("gradcheck", "specs")
    assert ran.code == 3
    assert "specs/good.yaml:9:7: a bug in kael (AssertionError: never)" in ran.out
    assert "2 passed, 1 error in" in ran.out
    assert "Traceback" not in ran.err
    assert "Traceback" in kael("gradcheck", "specs", "-v").err


def test_the_wrong_property_is_told_in_its_own_words(kael, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "square.py").write_text(
        "import kael\n"
        "class Square(kael.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n"
        "        return x * x\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        (x,) = ctx.saved_tensors\n"
        "        return g * g * 2 * x\n"
        "@kael.spec(x=[1.0, 2.0])\n"
        "def square(x):\n"
        "    return Square.apply(x).sum()\n"
    )
    ran = kael("gradcheck", "square.py")
    assert ran.code == 1
    first, second = ran.out.splitlines()[:2]
    assert first.startswith("square.py:12:1: square: ")
    assert first.endswith(" [upstream-squared]")
    assert "linear x: 2 of 2 entries wrong" in second


def test_the_command_repeats_what_the_verdict_depends_on(kael, project):
    project(
        nan="inputs: {x: [0, 1]}\noutput: where(x > 0, log(x), x*2).sum()\n",
        odd="name: odd[1]\ninputs: {x: 2}\noutput: x**2\nderivatives: {x: x}\n",
    )
    for arguments, kept in (
        (("specs/nan.yaml", "--anomaly"), "--anomaly"),
        (("specs/odd.yaml", "--max-elements", "50"), "--max-elements 50"),
    ):
        first = kael("gradcheck", *arguments)
        assert first.code == 1
        command = first.out.partition("reproduce: ")[2].partition("\n")[0]
        assert kept in command
        again = kael(*shlex.split(command)[1:])
        assert (again.code, again.out.splitlines()[0]) == (1, first.out.splitlines()[0])


FUNCTION = """\
import kael
class Square(kael.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x
    @staticmethod
    def backward(ctx, grad):
        raise {raised}
@kael.spec(x=[1.0, 2.0])
def square(x):
    return Square.apply(x).sum()
"""


@pytest.mark.parametrize("raised", ["ValueError('gone')", "SystemExit('gone')"])
@pytest.mark.parametrize("command", ["gradcheck", "backward", "trace", "anomaly", "explain"])
def test_what_a_backward_in_python_raises_is_an_error_of_the_spec(kael, tmp_path, command, raised):
    path = tmp_path / "square.py"
    path.write_text(FUNCTION.format(raised=raised), encoding="utf-8")
    ran = kael(command, str(path))
    assert ran.code == 2
    assert "the backward of square raised " in ran.out + ran.err
    assert "gone" in ran.out + ran.err
    assert "a bug in kael" not in ran.err


@pytest.mark.parametrize("command", ["gradcheck", "backward"])
def test_complex_results_of_code_outside_are_errors(kael, tmp_path, command):
    path = tmp_path / "outside.py"
    path.write_text(
        "import kael\n@kael.spec(x=[1.0], grad=lambda x: x)\ndef f(x): return (x * 1j).sum()\n",
        encoding="utf-8",
    )
    ran = kael(command, str(path))
    assert ran.code == 2
    assert "real numbers, got complex128" in ran.out + ran.err


def test_a_title_selects_its_own_case(kael, project):
    project(good=GOOD)
    ran = kael("gradcheck", "specs/good.yaml", "-k", "gate[zero]", "--format", "json")
    assert [(row["spec"], row["case"]) for row in results(ran)] == [("gate", "zero")]


def test_claims_may_be_any_callable(kael, tmp_path):
    path = tmp_path / "partial.py"
    path.write_text(
        "import functools, kael\n"
        "claim = functools.partial(lambda factor, x: factor * x, 2)\n"
        "@kael.spec(x=[1.0], derivatives={'x': claim})\n"
        "def f(x): return (x * x).sum()\n"
        "@kael.spec(x=[1.0], grad=claim)\n"
        "def g(x): return (x * x).sum()\n",
        encoding="utf-8",
    )
    assert kael("gradcheck", str(path)).code == 0
    assert "a function(…)" in kael("explain", f"{path}::f").out


def test_a_long_check_says_its_cost_first(kael, monkeypatch):
    short = kael("gradcheck", "tanh(x)", "-i", "x=randn(5)")
    assert "estimated" not in short.err
    monkeypatch.setattr("kael.specs.verdict.LONG", 0.0)
    ran = kael("gradcheck", "tanh(x)", "-i", "x=randn(5)", "--mode", "adaptive", "--samples", "2")
    assert ran.code == 0
    assert "note: tanh(x): about 300 evaluations, estimated" in ran.err
    assert "--max-evaluations" in ran.err
    assert "--mode fast" in ran.err
    assert "estimated" not in ran.out


def test_a_bound_holds_over_all_sampled_points(kael):
    words = ("gradcheck", "tanh(x)", "-i", "x=randn(5)", "--samples", "40")
    ran = kael(*words, "--max-evaluations", "100")
    assert ran.code == 0
    assert "the evaluations allowed are used up" in ran.out
    assert "used up" not in kael(*words).out
