"""From the targets of a command line to instances and errors."""
# ruff: noqa: E501 (a table reads better with a case a line)

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kael.specs.targets import Selection, resolve

GATES = """\
specs:
  - {name: loss small, inputs: {x: [1, 2], w: 3}, output: (x*w).sum(), cases: {zero: {x: [0, 0]}, big: {x: [9, 9]}}}
  - {name: loss large, inputs: {x: [5]}, output: x.sum()}
  - {name: "odd[1]", inputs: {i: {value: [1, 0], dtype: int64}, y: [1, 2]}, output: "y[i].sum()"}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs" / "deep").mkdir(parents=True)
    (tmp_path / "specs" / ".hidden").mkdir()
    (tmp_path / "specs" / "gates.yaml").write_text(GATES)
    (tmp_path / "specs" / "deep" / "one.yml").write_text("inputs: {x: 1}\noutput: x * 2\n")
    (tmp_path / "specs" / "deep" / "bad.yaml").write_text("inputs: {x: 1}\noutput: tahn(x)\n")
    (tmp_path / "specs" / "py.py").write_text(
        "import kael\n@kael.spec(x=[1.0])\ndef double(x):\n    return x * 2\n"
    )
    (tmp_path / "specs" / "none.py").write_text("# kael spec helper\n")
    (tmp_path / "specs" / "other.py").write_text("raise SystemExit\n")
    (tmp_path / "specs" / ".hidden" / "h.yaml").write_text("inputs: {x: 1}\noutput: x\n")
    (tmp_path / "empty").mkdir()
    return tmp_path


def titles(found: Selection) -> list[str]:
    return [instance.title for instance in found.instances]


def errors(found: Selection) -> list[str]:
    return [str(error).partition("\n")[0] for error in found.errors]


def clean(*targets: str, **options: Any) -> Selection:
    found = resolve(targets, **options)
    assert errors(found) == []
    return found


def test_inline_expression() -> None:
    found = clean("tanh(x*w + x).sum()", inputs=["x=[1,2]"], consts=["w=[0.5,-1]"])
    (instance,) = found.instances
    leaves = instance.leaves()
    assert list(leaves) == ["x", "w"]
    assert (leaves["x"].requires_grad, leaves["w"].requires_grad) == (True, False)
    assert instance.forward(leaves).item() == pytest.approx(0.9051482536448664)
    assert str(instance.place) == "<expression>:1:1"
    assert instance.spec.file is None


def test_inputs_keep_the_order_in_which_they_are_given() -> None:
    found = clean("a * b", inputs=["b=1", "a=2"])
    assert list(found.instances[0].leaves()) == ["b", "a"]


def test_an_input_the_expression_does_not_use_stays_an_input() -> None:
    assert list(clean("x * 2", inputs=["x=1", "y=2"]).instances[0].leaves()) == ["x", "y"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("x*w", "<expression>:1:3: 'w' has no value"),
        ("x*wight", "<expression>:1:3: 'wight' has no value"),
        ("tahn(x)", "<expression>:1:1: unknown operation 'tahn'; did you mean 'tanh'?"),
        ("x +", "<expression>:1:4: the expression ends too early"),
        ("", "<expression>:1:1: the expression is empty"),
        ("spces", "spces: there is no such file or folder"),
        ("specs/gaets", "specs/gaets: there is no such file or folder"),
        ("specs/deep/", None),
        ("./nowhere", "./nowhere: there is no such file or folder"),
        ("specs/gaets.yaml", "specs/gaets.yaml: there is no such file or folder"),
        ("nowhere.yaml::a", "nowhere.yaml: there is no such file or folder"),
    ],
)
def test_a_name_without_a_value(project: Path, target: str, message: str | None) -> None:
    found = resolve([target], inputs=["x=1"])
    if message is None:
        assert titles(found) == ["one"]
    else:
        assert errors(found)[0].startswith(message)
        assert found.instances == []


def test_a_mistyped_path_suggests_the_nearest(project: Path) -> None:
    assert "did you mean 'specs/gates.yaml'?" in str(resolve(["specs/gaets.yaml"]).errors[0])
    assert "did you mean 'specs'?" in str(resolve(["spces"]).errors[0])


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("specs/gates.yml", "did you mean 'specs/gates.yaml'?"),
        ("specs/gates.yaml/", "did you mean 'specs/gates.yaml'?"),
        ("specs/pi.yaml", "did you mean 'specs/py.py'?"),
        ("specs/x.yaml", None),
    ],
)
def test_endings_do_not_make_names_alike(project: Path, target: str, expected: str | None) -> None:
    assert resolve([target]).errors[0].hint == expected


def test_an_attribute_of_a_given_name_is_no_path(project: Path) -> None:
    (found,) = errors(resolve(["x.grad"], inputs=["x=1"]))
    assert found.startswith("<expression>:1:")
    assert found.endswith(": unknown attribute 'grad'")
    assert errors(resolve(["x.grad"])) == ["x.grad: there is no such file or folder"]
    for text in ("x.grad", "x.__class__", "1/x.grad", "2.0/x.a/x.b"):
        (error,) = errors(resolve([text], ["x=1"]))
        assert "unknown attribute" in error


def test_a_spec_of_a_folder_is_refused_with_the_way_to_name_it(project: Path) -> None:
    for target in ("specs::one", "specs/deep::one"):
        (error,) = resolve([target]).errors
        assert "names a spec of a file, and " in error.message
        assert error.hint == "-k one selects by name"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_never_waited_for(project: Path) -> None:
    os.mkfifo(project / "specs" / "deep" / "pipe.yaml")
    assert titles(resolve(["specs/deep"])) == ["one"]
    (error,) = errors(resolve(["specs/deep/pipe.yaml"]))
    assert error == "specs/deep/pipe.yaml: it is no file and no folder"


def test_a_folder_that_cannot_be_read_is_an_error(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def guarded(path: Any) -> Any:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = resolve(["specs"])
    assert "specs/deep: the folder cannot be read: Permission denied" in errors(found)
    assert "loss large" in titles(found)
    assert errors(resolve(["specs/deep"])) == [
        "specs/deep: the folder cannot be read: Permission denied"
    ]


def test_brackets_in_the_name_of_a_case(project: Path) -> None:
    (project / "b.yaml").write_text(
        "inputs: {x: 1}\noutput: x\ncases: {'a[0]': {x: 2}, 'a]': {x: 3}, 'a[': {x: 4}}\n"
    )
    for name in ("b[a[0]]", "b[a]]", "b[a[]"):
        assert titles(resolve([f"b.yaml::{name}"], all_cases=True)) == [name]
    assert errors(resolve(["b.yaml::b[a[1]]"])) == [
        "b.yaml: 'b' has no case 'a[1]'; did you mean 'a[0]'?"
    ]


def test_commands_that_show_draw_what_is_missing(project: Path) -> None:
    found = clean("tanh(x) * q", inputs=["x=1"], draw_missing=True)
    leaves = found.instances[0].leaves()
    assert leaves["q"].shape == ()
    assert leaves["q"].requires_grad
    assert found.notes == ["q drawn from a standard normal; -i q=VALUE sets it"]
    assert "there is no file or folder 'spces'" in clean("spces", draw_missing=True).notes[0]


def test_check_takes_paths_only(project: Path) -> None:
    found = resolve(["x * 2"], paths_only=True)
    assert errors(found) == ["x * 2: there is no such file or folder"]
    assert "takes paths" in str(found.errors[0])


def test_file_and_cases(project: Path) -> None:
    assert titles(clean("specs/gates.yaml")) == ["loss small", "loss large", "odd[1]"]
    assert titles(clean("specs/gates.yaml", all_cases=True)) == [
        "loss small",
        "loss small[zero]",
        "loss small[big]",
        "loss large",
        "odd[1]",
    ]


@pytest.mark.parametrize(
    ("pattern", "all_cases", "expected"),
    [
        ("loss large", False, ["loss large"]),
        ("loss*", False, ["loss small", "loss large"]),
        ("loss?large", False, ["loss large"]),
        ("loss small", True, ["loss small", "loss small[zero]", "loss small[big]"]),
        ("loss small[zero]", False, ["loss small[zero]"]),
        ("loss small[zero]", True, ["loss small[zero]"]),
        ("loss*[b*]", False, ["loss small[big]"]),
    ],
)
def test_specs_by_name(project: Path, pattern: str, all_cases: bool, expected: list[str]) -> None:
    assert titles(clean(f"specs/gates.yaml::{pattern}", all_cases=all_cases)) == expected


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("loss smal", "specs/gates.yaml: no spec is named 'loss smal'; did you mean 'loss small'?"),
        (
            "loss small[zreo]",
            "specs/gates.yaml: 'loss small' has no case 'zreo'; did you mean 'zero'?",
        ),
        ("loss large[a]", "specs/gates.yaml: 'loss large' has no case 'a'"),
        ("loss [sl]*", "specs/gates.yaml: no spec is named 'loss [sl]*'"),
    ],
)
def test_names_that_match_nothing(project: Path, pattern: str, message: str) -> None:
    assert errors(resolve([f"specs/gates.yaml::{pattern}"]))[0].startswith(message)


def test_folder(project: Path) -> None:
    found = resolve(["specs"])
    assert titles(found) == ["loss small", "loss large", "odd[1]", "double", "one"]
    assert errors(found) == [
        "specs/deep/bad.yaml:2:9: unknown operation 'tahn'; did you mean 'tanh'?"
    ]
    assert found.notes == ["specs/none.py defines no spec"]


def test_folder_without_specs(project: Path) -> None:
    assert errors(resolve(["empty"])) == ["empty: no spec found in the folder"]


def test_python_file_without_specs(project: Path) -> None:
    assert errors(resolve(["specs/none.py"])) == ["specs/none.py: no spec found in the file"]


def test_an_error_is_told_once_and_an_instance_runs_once(project: Path) -> None:
    found = resolve(["specs", "specs/deep", "specs/gates.yaml::loss large", "./specs/py.py"])
    assert titles(found) == ["loss small", "loss large", "odd[1]", "double", "one"]
    assert len(found.errors) == 1


def test_a_file_with_another_ending(project: Path) -> None:
    Path("notes.txt").write_text("x")
    assert errors(resolve(["notes.txt"])) == [
        "notes.txt: a file of specs ends in .yaml, .yml or .py"
    ]


def test_stdin() -> None:
    found = clean("-", stdin=lambda: b"inputs: {x: 3}\noutput: x * 2\n")
    (instance,) = found.instances
    assert instance.title == "stdin"
    assert instance.forward(instance.leaves()).item() == 6.0
    broken = resolve(["-"], stdin=lambda: b"inputs: {x: 3}\noutput: tahn(x)\n")
    assert errors(broken) == ["<stdin>:2:9: unknown operation 'tahn'; did you mean 'tanh'?"]


def test_name_of_a_broken_spec_gives_its_error(project: Path) -> None:
    found = resolve(["specs/deep/bad.yaml::bad"])
    assert errors(found) == [
        "specs/deep/bad.yaml:2:9: unknown operation 'tahn'; did you mean 'tanh'?"
    ]


SOUND_AND_BROKEN = """\
specs:
  - {name: sound, inputs: {x: 1}, output: x*x}
  - {name: broken, inputs: {x: 1}, output: xx*x}
  - {name: bad, inputs: {x: 1}, output: xy*x}
"""


@pytest.mark.parametrize(
    ("pattern", "chosen", "expected"),
    [
        ("*", ["sound"], ["unknown name 'xx'; did you mean 'x'?", "unknown name 'xy'; did you mean 'x'?"]),
        ("sound", ["sound"], []),
        ("broken", [], ["unknown name 'xx'; did you mean 'x'?"]),
        ("broken[large]", [], ["unknown name 'xx'; did you mean 'x'?"]),
        ("brokn", [], ["no spec is named 'brokn'; did you mean 'broken'?"]),
    ],
)  # fmt: skip
def test_a_pattern_means_the_specs_that_cannot_be_read_too(
    tmp_path: Path, pattern: str, chosen: list[str], expected: list[str]
) -> None:
    file = tmp_path / "three.yaml"
    file.write_text(SOUND_AND_BROKEN, encoding="utf-8")
    found = resolve([f"{file}::{pattern}"])
    assert titles(found) == chosen
    assert [error.message for error in found.errors] == expected


def test_a_fault_of_the_defaults_is_that_of_no_one_spec() -> None:
    text = b"defaults: {let: {y: tahn(x)}}\nspecs:\n" + b"".join(
        b"  - {name: %s, inputs: {x: 1}, output: y}\n" % name for name in (b"one", b"two")
    )
    (error,) = resolve(["-"], stdin=lambda: text).errors
    assert (error.message, error.spec) == ("unknown operation 'tahn'; did you mean 'tanh'?", None)


# Overrides


def test_overrides_in_every_instance_that_has_the_name(project: Path) -> None:
    found = clean("specs/gates.yaml", inputs=["x=[7,7]"], consts=["w=2"], all_cases=True)
    small = [instance.leaves() for instance in found.instances[:3]]
    assert [leaves["x"].tolist() for leaves in small] == [[7.0, 7.0]] * 3
    assert [leaves["w"].requires_grad for leaves in small] == [False] * 3
    assert found.instances[3].leaves()["x"].tolist() == [7.0, 7.0]


def test_an_override_keeps_an_integer_inputs_dtype(project: Path) -> None:
    (instance,) = clean("specs/gates.yaml::odd*", inputs=["i=[1,1]"]).instances
    leaves = instance.leaves()
    assert leaves["i"].dtype == np.int64
    assert not leaves["i"].requires_grad
    assert instance.forward(leaves).item() == 4.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": ["q=1"]}, "-i q: no selected spec has an input 'q'"),
        ({"consts": ["q=1"]}, "-c q: no selected spec has an input 'q'"),
        ({"inputs": ["x"]}, "-i x: a value is missing"),
        ({"inputs": ["x=1", "x=2"]}, "-i x: 'x' is given twice"),
        ({"inputs": ["x=1"], "consts": ["x=2"]}, "-c x: 'x' is given twice"),
        ({"inputs": ["1x=1"]}, "-i 1x: '1x' is no name for an input"),
        ({"inputs": ["if=1"]}, "-i if: 'if' is no name for an input"),
        ({"inputs": ["x=[1,[2]]"]}, "-i x:1:4: ragged list"),
        ({"inputs": ["x=@none.npy"]}, None),
    ],
)
def test_override_errors(project: Path, options: dict[str, Any], message: str | None) -> None:
    found = resolve(["specs/gates.yaml"], **options)
    if message is None:
        with pytest.raises(Exception, match=r"-i x:1:1: there is no file 'none.npy'"):
            found.instances[0].leaves()
    else:
        assert errors(found)[0].startswith(message)


def test_overrides_of_one_run_do_not_reach_the_next(project: Path) -> None:
    first = clean("specs/gates.yaml::loss large", inputs=["x=[1]"]).instances[0]
    second = clean("specs/gates.yaml::loss large").instances[0]
    assert first.leaves()["x"].tolist() == [1.0]
    assert second.leaves()["x"].tolist() == [5.0]


def test_limit_reaches_the_evaluation() -> None:
    (instance,) = clean("x[:, None] * x", inputs=["x=zeros(100)"], max_elements=1000).instances
    with pytest.raises(Exception, match="more than the limit of 1,000"):
        instance.forward(instance.leaves())
