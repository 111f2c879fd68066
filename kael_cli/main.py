"""The entry point: finds the command, has its options parsed, turns any outcome into an exit code.

Only the invoked command is imported, and Typer only to parse options: what is imported decides
how long `kael trace` takes. The one `try` of the command line is here.
"""

import gc
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

from kael.errors import KaelError
from kael.version import __version__
from kael_cli.exits import Exit, bug_report

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "backward": "Run a formula forward and backward: its value and each input's gradient.",
    "gradcheck": "Verify analytic gradients against finite differences, claims and expectations.",
    "check": "Verify every spec of the project: the gate for CI.",
    "trace": "Run backward and print one line a node, in the order the engine visits them.",
    "anomaly": "Find where a NaN or an infinity is born, and why.",
    "explain": "Work the example by hand: every forward value, count and backward step.",
    "dot": "Export the recorded graph as Graphviz DOT, or drawn as svg, png or pdf.",
    "tree": "Print the recorded graph as a text tree.",
    "ops": "Look up operations: signature, derivative, what is saved, conventions at kinks.",
    "faults": "Read the manual page of a diagnosis: what was seen, why, how to mend it.",
    "warmup": "Compile the kernels and keep them, so that the first large run need not.",
}
"""Each command and its summary; the command itself is `kael_cli.commands.<name>`."""

HELP = """\
Usage: kael [--version] [--help] COMMAND [OPTIONS] TARGET...

kael shows and verifies gradients. A TARGET is a spec file (specs/gate.yaml, specs/loss.py), one
spec of it (specs/gate.yaml::name, ::name[case]), a directory, '-' for a YAML spec on standard
input, or an inline expression: kael trace "tanh(x*w + x).sum()" -i 'x=[1,2]' -i 'w=[0.5,-1]'

Commands:
{commands}

Exit codes: 0 everything asked holds; 1 a check ran and did not hold; 2 bad input or usage, or
nothing was compared; 3 a bug in kael; 130 interrupted.

'kael COMMAND --help' shows a command's options.
"""


def run() -> NoReturn:
    """Run the command line of this process and exit with its code."""
    _open_closed_streams()
    _keep_stdout_for_results()
    for stream in (sys.stdout, sys.stderr):
        # a terminal that lacks a character must not end a run
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # What a short command allocates is hardly ever garbage, and looking for garbage while it
    # starts and again while Python exits is a quarter of its time.
    gc.set_threshold(50_000, 20, 20)
    code = main(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


def main(arguments: "Sequence[str]") -> int:
    """Run `kael` with these arguments and return its exit code; every error ends here."""
    verbose = _asks_for_tracebacks(arguments)
    try:
        code = _dispatch(list(arguments))
        sys.stdout.flush()
    except KeyboardInterrupt:
        _complain("interrupted")
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head -1`); what it wanted, it has.
        code = Exit.HOLDS
    except KaelError as error:
        _complain(_described(error), traceback=verbose)
        code = Exit.UNUSABLE
    except MemoryError:
        _complain("error: not enough memory for this", traceback=verbose)
        code = Exit.UNUSABLE
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:
            # An error that names its file is another matter. These two name none.
            if isinstance(error, FileNotFoundError):
                said = "the current folder does not exist any more"
            else:
                said = f"the output cannot be written: {error.strerror}"
            _complain(f"error: {said}", traceback=verbose)
            code = Exit.UNUSABLE
        else:
            hint = "" if verbose else " (-v shows the traceback)"
            _complain(f"error: {bug_report(error)}{hint}", traceback=verbose)
            code = Exit.BUG
    _abandon_closed_streams()
    return int(code)


def _open_closed_streams() -> None:
    """Put the null device in the place of a standard stream that was closed (`kael … >&-`)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - for as long as we run
            setattr(sys, name, stream)


def _keep_stdout_for_results() -> None:
    """Let what is written to descriptor 1 past `sys.stdout` reach standard error.

    A spec in Python may start a program, or call a library, that prints.
    """
    try:
        results = os.dup(sys.stdout.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # streams of another kind, or a system that lacks descriptors
    sys.stdout = open(results, "w", encoding=sys.stdout.encoding)  # noqa: SIM115 - as above


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else "--help"
    if first in ("--help", "-h"):
        sys.stdout.write(_help())
        return Exit.HOLDS if arguments else Exit.UNUSABLE
    if first in ("--version", "-V"):
        sys.stdout.write(f"kael {__version__}\n")
        return Exit.HOLDS
    if first not in COMMANDS:
        return _unknown(first)

    from kael_cli.options import parse

    action = import_module(f"kael_cli.commands.{first}")
    options = parse(first, COMMANDS[first], action.OPTIONS, arguments[1:])
    if isinstance(options, int):
        return options
    _quieten_numpy()
    result: int = action.run(options)
    return result


def _help() -> str:
    width = max(map(len, COMMANDS)) + 2
    return HELP.format(commands="\n".join(f"  {n:<{width}}{s}" for n, s in COMMANDS.items()))


def _unknown(word: str) -> int:
    from kael.specs.spelling import did_you_mean

    kind = "option" if word.startswith("-") else "command"
    known = ("--help", "--version") if kind == "option" else tuple(COMMANDS)
    _complain(f"kael: unknown {kind} '{word}'{did_you_mean(word, known)}\nTry 'kael --help'.")
    return Exit.UNUSABLE


def _quieten_numpy() -> None:
    """Keep NumPy's floating-point warnings from the user: results say what is not finite."""
    import warnings

    import numpy as np

    np.seterr(all="ignore")
    warnings.filterwarnings("ignore", module=r"numpy(\.|$)")


def _described(error: KaelError) -> str:
    # An error that knows its place begins with it, as compilers do.
    return str(error) if getattr(error, "place", None) else f"error: {error}"


def _complain(message: str, *, traceback: bool = False) -> None:
    try:
        if traceback:
            import traceback as tracebacks

            tracebacks.print_exc()
        sys.stderr.write(message.rstrip("\n") + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # a closed stderr leaves nobody to tell


def _asks_for_tracebacks(arguments: "Sequence[str]") -> bool:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "-v" in options or "--verbose" in options


def _abandon_closed_streams() -> None:
    """Let Python's own flush at exit meet no closed pipe, which would print a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            except (OSError, ValueError):
                continue
