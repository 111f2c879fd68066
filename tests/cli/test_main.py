"""The edge: dispatch, usage errors, exit codes, streams."""

import os
import subprocess
import sys

import pytest

import kael_cli.commands.ops
from kael.errors import KaelError
from kael.version import __version__
from kael_cli.exits import Exit
from kael_cli.main import COMMANDS


def process(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "kael_cli", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        **options,
    )


def test_exit_codes_are_the_contract():
    assert [int(code) for code in Exit] == [0, 1, 2, 3, 130]


def test_version(kael):
    assert kael("--version") == (0, f"kael {__version__}\n", "")


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_command_and_exit_code(kael, option):
    ran = kael(option)
    assert (ran.code, ran.err) == (0, "")
    for name, summary in COMMANDS.items():
        assert f"  {name} " in ran.out
        assert summary in ran.out
    for code in Exit:
        assert f"{int(code)} " in ran.out


def test_no_command_shows_the_help_and_is_a_usage_error(kael):
    ran = kael()
    assert ran.code == 2
    assert ran.out.startswith("Usage: kael ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_takes_the_common_options(kael, name):
    ran = kael(name, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert COMMANDS[name] in " ".join(ran.out.split())
    for option in ("--output", "--quiet", "--verbose", "--color", "--format"):
        assert option in ran.out


def test_help_does_not_depend_on_the_terminal(kael, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    narrow = kael("gradcheck", "--help")
    monkeypatch.setenv("COLUMNS", "200")
    assert kael("gradcheck", "--help") == narrow


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trcae"], "unknown command 'trcae'; did you mean 'trace'?"),
        (["zzzzzz"], "unknown command 'zzzzzz'\n"),
        (["--versoin"], "unknown option '--versoin'; did you mean '--version'?"),
        (["ops", "--fromat", "json"], "unknown option '--fromat'; did you mean '--format'?"),
        (["ops", "--format", "jsno"], "'jsno' is not one of 'text', 'json', 'markdown'"),
        (["ops", "--format"], "option '--format' requires an argument"),
        (["ops", "tanh", "extra"], "unexpected extra argument"),
        (["trace"], "missing argument 'TARGET...'"),
        (["trace", "-x**2", "-i", "x=1"], "a target that begins with '-' goes after '--'"),
        (["trace", "x", "--seed", "one"], "invalid value for '--seed'"),
        (["gradcheck", "x", "--max-evaluations", "0"], "invalid value for '--max-evaluations'"),
        (["ops", "tahn"], "unknown operation 'tahn'; did you mean 'tanh'?"),
    ],
)
def test_a_usage_error_is_one_message_and_exit_2(kael, arguments, message):
    ran = kael(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "option",
    ["--lf", "--maxfail", "--durations", "--timeout", "--shard", "--update", "--baseline", "-j"],
)
def test_an_option_that_does_not_exist_yet_is_a_usage_error(kael, option):
    ran = kael("check", option, "1")
    assert ran.code == 2
    assert "unknown option" in ran.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KaelError("a rule was broken"), 2, "error: a rule was broken\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (ZeroDivisionError("by zero"), 3, "a bug in kael (ZeroDivisionError: by zero)"),
        (MemoryError(), 2, "not enough memory"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_what_a_command_raises_decides_the_exit_code(kael, monkeypatch, error, code, message):
    def raises(_options):
        raise error

    monkeypatch.setattr(kael_cli.commands.ops, "run", raises)
    ran = kael("ops")
    assert ran.code == code
    assert message in ran.err
    assert len(ran.err.splitlines()) <= 1


def test_a_traceback_is_shown_only_when_asked_for(kael, monkeypatch):
    def raises(_options):
        raise ZeroDivisionError

    monkeypatch.setattr(kael_cli.commands.ops, "run", raises)
    assert "Traceback" not in kael("ops").err
    assert "Traceback" in kael("ops", "-v").err
    assert "please report it" in kael("ops", "-v").err


def test_both_ways_to_start_are_one_program():
    assert process("--version").stdout == f"kael {__version__}\n"
    assert process("ops", "nothing").returncode == 2


def test_a_closed_pipe_ends_quietly():
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [sys.executable, "-m", "kael_cli", "ops"], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [["--version"], ["ops"], ["ops", "--help"], ["ops", "-o-"]])
def test_a_full_disk_is_told_and_no_bug(arguments):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "kael_cli", *arguments], stdout=full, stderr=subprocess.PIPE
        )
    assert ran.returncode == 2
    assert ran.stderr == b"error: the output cannot be written: No space left on device\n"


POSIX = pytest.mark.skipif(os.name == "nt", reason="the shell's syntax is POSIX's")


@POSIX
@pytest.mark.parametrize(
    ("redirection", "code"),
    [(">&-", 0), ("2>&-", 0), ("<&-", 0), (">&- 2>&-", 0), (">&- 2>&- <&-", 0)],
)
def test_closed_standard_streams_leave_the_verdict(redirection, code):
    line = f'"$0" -m kael_cli gradcheck "x*2" -i x=1 {redirection}'
    ran = subprocess.run(["/bin/sh", "-c", line, sys.executable], stderr=subprocess.PIPE)
    assert (ran.returncode, ran.stderr) == (code, b"")


@POSIX
def test_a_closed_standard_input_is_an_empty_spec():
    line = '"$0" -m kael_cli gradcheck - <&-'
    ran = subprocess.run(["/bin/sh", "-c", line, sys.executable], stdout=subprocess.PIPE, text=True)
    assert ran.returncode == 2
    assert ran.stdout.startswith("<stdin>: the file is empty\n")


def test_what_a_spec_writes_past_sys_stdout_is_not_among_the_results(tmp_path):
    path = tmp_path / "loud.py"
    path.write_text(
        "import os, sys, subprocess\n"
        "import kael\n"
        "@kael.spec(x=[1.0])\n"
        "def loud(x):\n"
        "    os.write(1, b'from os\\n')\n"
        "    sys.__stdout__.write('from sys\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"from a program\")'])\n"
        "    return x.sum()\n",
        encoding="utf-8",
    )
    ran = process("backward", str(path))
    assert (ran.returncode, ran.stdout.splitlines()[1]) == (0, "grad x  shape=[1]  [1]")
    for sender in ("os", "sys", "a program"):
        assert f"from {sender}\n" in ran.stderr
        assert "from" not in ran.stdout


def test_results_survive_an_encoding_that_lacks_their_characters():
    ran = process("--help", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 0


def test_an_interrupt_from_the_keyboard_is_130():
    code = (
        "import os, signal, kael_cli.main as m, kael_cli.commands.ops as o\n"
        # A job in the background of a shell starts with the signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def run(options):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    signal.pause()\n"
        "o.run = run\n"
        "import sys; sys.argv = ['kael', 'ops']; m.run()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 130
    assert ran.stderr == "interrupted\n"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--seed=x", "invalid value for '--seed': 'x' is not an integer"),
        ("--samples=1.5", "invalid value for '--samples': '1.5' is not an integer"),
        ("--samples=-1", "invalid value for '--samples': -1 is below 0"),
        ("--eps=x", "invalid value for '--eps': 'x' is not a number"),
        ("--max-elements=0", "invalid value for '--max-elements': 0 is below 1"),
    ],
)
def test_a_wrong_number_is_told_in_plain_words(kael, option, message):
    assert kael("gradcheck", "x", option) == (2, "", f"error: kael gradcheck: {message}\n")


@POSIX
def test_a_folder_that_was_deleted_under_the_command(tmp_path):
    line = 'mkdir gone && cd gone && rmdir "$PWD" && "$0" -m kael_cli check'
    ran = subprocess.run(
        ["/bin/sh", "-c", line, sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert ran.returncode == 2
    assert ran.stderr == "error: the current folder does not exist any more\n"
