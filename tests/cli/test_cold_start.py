"""What a short command imports decides how long it takes; this is the list it is held to."""

import os
import subprocess
import sys

import pytest

HEAVY = {
    "asyncio",
    "concurrent.futures",
    "click",
    "hypothesis",
    "msgspec",
    "multiprocessing",
    "numba",
    "numpy.random",
    "numpy.testing",
    "pydantic",
    "pydot",
    "pytest",
    "rich",
    "ruamel",
    "ruamel.yaml",
    "scipy",
    "tomllib",
    "unittest",
    "yaml",
    "kael.checker",
    "kael.specs.python_loader",
    "kael.specs.yaml_loader",
    "kael_cli.reporters.text",
    "json",
}
TRACE = ["trace", "tanh(x*w + x).sum()", "-i", "x=[1,2]", "-i", "w=[0.5,-1]"]


def imported(*arguments):
    """The modules a command line has imported when it ends."""
    code = (
        "import sys\n"
        "from kael_cli.main import main\n"
        "code = main(sys.argv[1:])\n"
        "print(code, *sorted(sys.modules), sep='\\n', file=sys.stderr)\n"
    )
    variables = {k: v for k, v in os.environ.items() if not k.startswith("KAEL_")}
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=variables
    )
    first, *modules = ran.stderr.splitlines()
    assert first == "0"
    return set(modules)


def test_a_small_trace_imports_nothing_heavy():
    modules = imported(*TRACE)
    assert not modules & HEAVY
    # proves that the list is of names Python would use: these are imported
    assert {"numpy", "typer", "kael.ops.math", "kael_cli.commands.trace"} <= modules


def test_help_and_version_import_neither_numpy_nor_typer():
    for option in ("--help", "--version"):
        modules = imported(option)
        assert not modules & (HEAVY | {"numpy", "typer", "kael.ops", "kael_cli.options"})
        assert "kael_cli.main" in modules


@pytest.mark.parametrize("command", ["trace", "gradcheck", "ops"])
def test_help_of_a_command_imports_nothing_heavy(command):
    assert not imported(command, "--help") & (HEAVY - {"kael.checker", "kael_cli.reporters.text"})


def test_only_the_invoked_command_is_imported():
    modules = {name for name in imported(*TRACE) if name.startswith("kael_cli.commands.")}
    assert modules == {"kael_cli.commands.trace"}
