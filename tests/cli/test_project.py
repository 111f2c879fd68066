"""`[tool.kael]` of the nearest pyproject.toml decides what `kael check` looks at."""

import pytest

from kael_cli.exits import CommandError
from kael_cli.project import spec_paths


def write(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def test_the_nearest_table_upwards_names_the_paths(tmp_path):
    write(tmp_path, '[tool.kael]\nspecs = ["a", "b"]\n')
    for name in ("a", "b", "deep/er"):
        (tmp_path / name).mkdir(parents=True)
    assert spec_paths(tmp_path) == ["a", "b"]
    assert spec_paths(tmp_path / "deep" / "er") == ["../../a", "../../b"]


def test_a_string_is_one_path(tmp_path):
    write(tmp_path, '[tool.kael]\nspecs = "gates"\n')
    (tmp_path / "gates").mkdir()
    assert spec_paths(tmp_path) == ["gates"]


def test_a_nearer_file_without_the_table_hides_one_above(tmp_path):
    write(tmp_path, '[tool.kael]\nspecs = "gates"\n')
    write(tmp_path / "inner", "")
    (tmp_path / "inner" / "specs").mkdir()
    assert spec_paths(tmp_path / "inner") == ["specs"]


def test_no_specs_at_all_is_said(tmp_path):
    write(tmp_path, "")
    with pytest.raises(CommandError, match="there is no folder 'specs'"):
        spec_paths(tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tool.kael", "cannot be read as TOML"),
        ("[tool.kael]\nspec = 'a'", "no key 'spec'; did you mean 'specs'?"),
        ("[tool.kael]\nspecs = 3", "must be a path or a list of paths"),
        ("[tool.kael]\nspecs = 'gone'", "which does not exist"),
        ("[tool]\nkael = 3", "must be a table"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path, text, problem):
    write(tmp_path, text)
    with pytest.raises(CommandError) as caught:
        spec_paths(tmp_path)
    assert problem in str(caught.value)
    assert "pyproject.toml" in str(caught.value)


@pytest.mark.parametrize("text", ["tool = 3\n", "[tool]\nkael = 3\n", "tool = []\n"])
def test_a_table_that_is_none_is_an_error(tmp_path, text):
    write(tmp_path, text)
    with pytest.raises(CommandError, match=r"\[tool.kael\] must be a table"):
        spec_paths(tmp_path)
