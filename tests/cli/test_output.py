"""Results reach standard output or a whole file; colour is decided once."""

import os

import pytest

from kael_cli.exits import CommandError
from kael_cli.options import Options
from kael_cli.output import Output, write_whole


def test_a_file_is_written_when_the_command_ends(tmp_path, capsys):
    path = tmp_path / "out.txt"
    with Output(Options(output=str(path))) as output:
        output.write("one\n")
        assert not path.exists()
        output.write("two\n")
    assert path.read_text() == "one\ntwo\n"
    assert capsys.readouterr().out == ""
    assert os.listdir(tmp_path) == ["out.txt"]


def test_an_exception_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def stops_half_way():
        with Output(Options(output=str(path))) as output:
            output.write("half")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        stops_half_way()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_replaced_file_keeps_its_mode_and_its_link(tmp_path):
    path, link = tmp_path / "out.txt", tmp_path / "link.txt"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_whole(str(link), b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_to(tmp_path):
    write_whole(os.devnull, b"gone")
    assert os.listdir(tmp_path) == []


def test_a_device_that_is_full_is_an_error_of_the_user():
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with pytest.raises(CommandError, match="cannot write '/dev/full': No space left on device"):
        write_whole("/dev/full", b"lost")


def test_an_open_descriptor_is_added_to_and_never_replaced(tmp_path):
    if not os.path.isdir("/dev/fd"):
        pytest.skip("this system has no /dev/fd")
    path = tmp_path / "out.txt"
    with open(path, "wb") as stream:
        stream.write(b"first\n")
        stream.flush()
        number = path.stat().st_ino
        write_whole(f"/dev/fd/{stream.fileno()}", b"second\n")
    assert (path.read_bytes(), path.stat().st_ino) == (b"first\nsecond\n", number)


@pytest.mark.parametrize("refused", ["out.txt", "."])
def test_what_may_not_be_written_is_refused_at_once(tmp_path, monkeypatch, refused):
    # asked of the system in place of file modes, which do not bind the superuser
    path = tmp_path / "out.txt"
    path.write_text("old")
    closed = str(tmp_path / refused) if refused != "." else str(tmp_path)
    monkeypatch.setattr(os, "access", lambda asked, _mode: str(asked) != closed)
    with pytest.raises(CommandError, match=r"cannot write '.*out\.txt': Permission denied"):
        Output(Options(output=str(path)))
    assert path.read_text() == "old"


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_of_a_file_is_refused(name):
    with pytest.raises(CommandError, match="the name of the file to write is empty"):
        Output(Options(output=name))


@pytest.mark.parametrize("name", ["missing/out.txt", "."])
def test_a_path_that_cannot_be_written_is_refused_at_once(tmp_path, name):
    with pytest.raises(CommandError, match="cannot write"):
        Output(Options(output=str(tmp_path / name)))


def test_a_dash_is_standard_output(capsys):
    with Output(Options(output="-")) as output:
        output.write("text")
    assert capsys.readouterr().out == "text"


@pytest.mark.parametrize(
    ("choice", "variables", "terminal", "colored"),
    [
        ("auto", {}, False, False),
        ("auto", {}, True, True),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_when_there_is_colour(monkeypatch, choice, variables, terminal, colored):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    output = Output(Options(color=choice))
    assert output.color is colored
    assert output.paint("red", "x") == ("\x1b[31mx\x1b[0m" if colored else "x")


def test_a_file_has_no_colour_unless_a_terminal_would(tmp_path):
    assert not Output(Options(output=str(tmp_path / "f"), color="auto")).color


def test_quiet_drops_notes(capsys):
    Output(Options(quiet=True)).note("a note")
    Output(Options()).note("another")
    assert capsys.readouterr().err == "note: another\n"
