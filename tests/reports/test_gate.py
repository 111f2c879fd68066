# ruff: noqa: E501 (a table reads best with one row a line)
"""The gate: exit codes, what counts as checked, numbers in YAML, and kernels that keep NaN."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest

import kael as k
from kael import kernels

WRONG = "inputs: {x: [1.5, -2]}\noutput: (x**3).sum()\nderivatives: {x: 2 * x**2}\n"
RIGHT = "inputs: {x: [1.5, -2]}\noutput: (x**3).sum()\nderivatives: {x: 3 * x**2}\n"
BROKEN = "inputs: {x: [1.5, -2]}\noutput: (x**3.sum()\n"
SYNTAX = "inputs: {x: [1.5, -2\noutput: x\n"


@pytest.fixture
def spec(tmp_path):
    def write(text, name="case.yaml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


# F1: a failed check is never green. source: AMICI #2511, AMICI #2512, pytorch #53916

OPTIONS = [
    (), ("-q",), ("-v",), ("-x",), ("--format", "json"), ("--format", "junit"), ("--format", "github"),
    ("--color", "always"), ("--mode", "full"), ("--mode", "adaptive"), ("--mode", "complex"), ("--mode", "fast"),
    ("--samples", "2"), ("--allow-inconclusive",), ("--eps", "1e-4"), ("--seed", "5"), ("--anomaly",),
    ("-k", "case"), ("--branches",), ("--dtype", "float32"), ("-o", "{folder}/out.txt"),
]  # fmt: skip


@pytest.mark.parametrize("command", ["gradcheck", "check"])
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_a_wrong_claim_exits_1_whatever_the_options(options, command, kael, spec, tmp_path):
    path = spec(WRONG)
    given = [option.format(folder=tmp_path) for option in options]
    assert kael(command, path, *given).code == 1
    assert kael(command, path, spec(RIGHT, "right.yaml"), *given).code == 1
    Path(path).unlink()
    assert kael(command, spec(RIGHT), *given).code == 0


def test_a_result_in_python_is_as_true_as_its_verdict():
    class Wrong(k.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    bad = k.autograd.gradcheck(Wrong.apply, [k.tensor([1.0], requires_grad=True)])
    assert not bad
    assert (bad.passed, bad.status) == (False, "failed")
    good = k.autograd.gradcheck(k.tanh, [k.tensor([1.0], requires_grad=True)])
    assert good
    assert (good.passed, good.status) == (True, "passed")


# F2: nothing checked is not success. source: AiDotNet #927, pytorch #80514, openj9 #4834


@pytest.mark.parametrize("command", ["gradcheck", "check"])
@pytest.mark.parametrize(
    "text",
    [
        None,
        "inputs: {x: {value: 1.0, requires_grad: false}}\noutput: x\n",
        "inputs: {x: {value: [1, 2], dtype: int64}}\noutput: sum(x)\n",
        "inputs: {x: 1.0}\noutput: x\nskip: not now\n",
        "inputs: {x: {shape: [0, 3], init: normal}}\noutput: sum(x)\n",
    ],
)
def test_a_folder_in_which_nothing_is_checked_is_not_green(text, command, kael, spec, tmp_path):
    if text:
        spec(text)
    assert kael(command, str(tmp_path)).code == 2


def test_counts_are_always_shown(kael, spec, tmp_path):
    spec(RIGHT, "right.yaml")
    spec(WRONG, "wrong.yaml")
    spec(RIGHT + "skip: later\n", "skipped.yaml")
    spec("inputs: {x: 1}\noutput: (x + 1e12) - 1e12\n", "far.yaml")
    spec(WRONG + "xfail: known\n", "known.yaml")
    spec(BROKEN, "broken.yaml")
    ran = kael("check", str(tmp_path))
    assert ran.code == 1
    last = ran.out.splitlines()[-1]
    for part in ("1 passed", "1 failed", "1 skipped", "1 xfailed", "1 error"):
        assert part in last
    summary = json.loads(kael("check", str(tmp_path), "--format", "json").out)["summary"]
    assert {key: summary[key] for key in ("passed", "failed", "skipped", "xfailed", "errors")} == {
        "passed": 1 + (summary["inconclusive"] == 0), "failed": 1, "skipped": 1, "xfailed": 1, "errors": 1,
    }  # fmt: skip


# F3: who is to blame. source: the-i18n-kit #369, checksec #121, tesseract-core #72


@pytest.mark.parametrize("command", ["gradcheck", "check"])
@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (WRONG, (), 1), (SYNTAX, (), 2), (BROKEN, (), 2), (RIGHT, ("--no-such-option",), 2),
        (RIGHT, ("--mode", "quick"), 2), (RIGHT, ("-k", "nothing"), 2), ("", (), 2), ("[]\n", (), 2),
        (RIGHT.replace("x**3", "y**3"), (), 2), (RIGHT.replace("output", "ouput"), (), 2),
        (RIGHT, ("--eps", "-1"), 2), (RIGHT, (), 0), (RIGHT + "xfail: known\n", (), 1),
    ],
)  # fmt: skip
def test_a_wrong_gradient_is_1_and_a_broken_spec_or_option_is_2(
    text, options, code, command, kael, spec
):
    assert kael(command, spec(text), *options).code == code


@pytest.mark.parametrize("command", ["backward", "trace", "anomaly", "dot", "tree", "explain"])
@pytest.mark.parametrize("text", [SYNTAX, BROKEN])
def test_the_commands_that_show_call_a_broken_spec_2(text, command, kael, spec):
    assert kael(command, spec(text)).code == 2
    assert kael(command, spec(text), "--no-such-option").code == 2
    assert kael(command, "no/such/file.yaml").code == 2


def test_a_failure_and_an_error_together_are_1(kael, spec, tmp_path):
    spec(WRONG, "wrong.yaml")
    spec(BROKEN, "broken.yaml")
    assert kael("check", str(tmp_path)).code == 1


def test_the_help_names_the_codes(kael):
    ran = kael("--help")
    for code in ("0", "1", "2", "3", "130"):
        assert code in ran.out


# F4: numbers in YAML. source: pyyaml #173, calliope #57, Yamale #34

NUMBERS = {
    "1e-3": 1e-3, "1E-3": 1e-3, "1e3": 1000, "1.0e3": 1000, "+1.5": 1.5, "-1e+2": -100, ".5": 0.5, "5.": 5,
    "017": 17, "0o17": 15, "0x10": 16, "1_000": 1000, "-0": 0, "007.5": 7.5,
}  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS)
@pytest.mark.parametrize("form", ["x: {}", "x: [{}]", "x: {{value: {}}}", "x:\n    - {}"])
def test_every_usual_spelling_is_a_number(form, text, kael, spec):
    path = spec(f"inputs:\n  {form.format(text)}\noutput: sum(x)\n")
    ran = kael("backward", path, "--format", "json")
    (row,) = json.loads(ran.out)["results"]
    assert row["error"] is None
    assert row["output"]["value"] == NUMBERS[text]


@pytest.mark.parametrize(
    "text", [".inf", "inf", ".Inf", "+.inf", "-.inf", "-inf", ".nan", "nan", ".NaN"]
)
def test_infinities_and_nan_with_and_without_a_dot(text, kael, spec):
    ran = kael("backward", spec(f"inputs: {{x: [{text}]}}\noutput: sum(x)\n"), "--format", "json")
    value = json.loads(ran.out)["results"][0]["output"]["value"]
    wanted = "NaN" if "nan" in text.lower() else "-Infinity" if text.startswith("-") else "Infinity"
    assert (value, ran.code) == (wanted, 0)


@pytest.mark.parametrize("name", ["on", "off", "no", "y", "n", "yes", "e1", "_"])
def test_words_of_old_yaml_are_names(name, kael, spec):
    ran = kael(
        "backward", spec(f"inputs: {{{name}: 3}}\noutput: {name} * {name}\n"), "--format", "json"
    )
    (row,) = json.loads(ran.out)["results"]
    assert row["grads"][name]["value"] == 6


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("inputs:\n  x: [1:30]\noutput: sum(x)\n", "2:7"),
        ("inputs:\n  x: '1e-3'\noutput: x\n", "2:6"),
        ("inputs:\n  x: yes\noutput: x\n", "2:6"),
        ("inputs:\n  x: [1, on]\noutput: sum(x)\n", "2:10"),
        ("inputs:\n  x: 1.0\noutput: x\noutput: x * 2\n", "4:1"),
        ("inputs:\n  x: 1.0\n  x: 2.0\noutput: x\n", "3:3"),
        ("inputs:\n  x: 1.0\noutput: x\ngradcheck: {atol: low}\n", "4:19"),
        ("inputs:\n  x: 1.0\noutput: x\ngradcheck: {atol: 1e-3, tol: 1e-3}\n", "4:25"),
        ("inputs:\n  x: 1.0\noutput: x\nexpected: {value: 1}\n", "4:1"),
        ("inputs:\n  x: {value: 1.0, valeu: 2}\noutput: x\n", "2:19"),
    ],
)
def test_text_for_a_number_and_a_key_twice_or_unknown_are_errors_with_a_place(
    text, place, kael, spec
):
    path = spec(text)
    ran = kael("check", path)
    assert ran.code == 2
    assert f"{path}:{place}: " in ran.out
    again = kael("backward", path)
    assert again.code == 2
    assert f"{path}:{place}: " in again.err


@pytest.mark.parametrize("key", ["atol", "rtol", "eps"])
@pytest.mark.parametrize("text", ["1e-3", "1E-3", "0.001", "1.0e-3"])
def test_tolerances_are_numbers_however_they_are_typed(text, key, kael, spec):
    assert kael("check", spec(RIGHT + f"gradcheck: {{{key}: {text}}}\n")).code == 0


# F5 and F6: compiled kernels. source: numba #2919, numba #6217, numba #8743


def test_no_kernel_is_compiled_as_if_no_nan_existed():
    folder = Path(kernels.__file__).parent / "compiled"
    calls = [
        keyword
        for path in sorted(folder.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
    ]
    assert not [keyword for keyword in calls if keyword.arg == "fastmath"]
    models = [keyword.value.value for keyword in calls if keyword.arg == "error_model"]
    assert models
    assert set(models) == {"numpy"}


ROW = np.array([[np.nan, 1.0, np.inf], [1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    ("function", "nan"),
    [
        (lambda x: k.softmax(x, 1), 3), (lambda x: k.log_softmax(x, 1), 3), (lambda x: k.logsumexp(x, 1), 1),
        (lambda x: k.standardize(x, 1), 3), (lambda x: k.var(x, 1), 1), (k.sigmoid, 1), (k.relu, 1), (k.abs, 1),
        (k.gelu, 1), (k.erf, 1), (lambda x: k.max(x, 1), 1), (lambda x: k.norm(x, 2, 1), 1), (lambda x: k.cumsum(x, 1), 3),
        (lambda x: k.clamp(x, 0, 1), 1), (k.isnan, 0),
    ],
)  # fmt: skip
def test_nan_is_seen_in_both_tiers(function, nan):
    for tier in ("numpy", "numba"):
        with kernels.only(tier):
            out = function(k.tensor(ROW))
        values = out.numpy()
        assert np.isnan(values.astype(float)).sum() == nan
    assert k.isnan(k.tensor(ROW)).sum().item() == 1
    assert k.count_nonzero(k.isfinite(k.tensor(ROW))).item() == 4


@pytest.mark.parametrize("size", [2, 1 << 17])
def test_a_division_by_0_is_an_infinity_at_every_size(size):
    values = np.ones(size)
    below = np.full(size, 2.0)
    below[1] = 0
    x, y = k.tensor(values, requires_grad=True), k.tensor(below, requires_grad=True)
    out = x / y
    out.sum().backward()
    assert out.numpy()[:2].tolist() == [0.5, np.inf]
    assert x.grad.numpy()[:2].tolist() == [0.5, np.inf]
    assert y.grad.numpy()[:2].tolist() == [-0.25, -np.inf]
    for other in (k.reciprocal(y), k.rsqrt(y), 1 / y):
        assert other.numpy()[1] == np.inf
