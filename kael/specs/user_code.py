"""Running a user's Python: its prints go to stderr, its errors show only its own frames."""

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kael import dtypes
from kael.engine.grad_mode import state
from kael.engine.sources import SourceLine, SourceText, user_line
from kael.specs.place import Place, SpecError
from kael.specs.spelling import did_you_mean

if TYPE_CHECKING:
    from kael.specs.model import Spec


def run(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], spec: "Spec"
) -> Any:
    """Call a function of a Python spec.

    Raises `SpecError` at the spec's place for whatever the function raises, `sys.exit` and
    pytest's `skip` included; only an interrupt from the keyboard is let through.
    """
    try:
        with apart():
            return function(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise failure(error, spec.place, getattr(function, "__name__", "the function")) from error


MODULE = "_kael_spec_"
"""How the names begin under which files of specs are imported."""


class apart:
    """Keeps what a user's code does from other specs and from the results.

    What it prints goes to stderr; the grad mode and the default dtype are put back afterwards.
    """

    __slots__ = ("_dtype", "_mode", "_stdout")

    def __enter__(self) -> None:
        self._stdout, sys.stdout = sys.stdout, sys.stderr
        self._mode = state.here.grad_enabled
        self._dtype = dtypes.default_dtype()

    def __exit__(self, *exception: object) -> None:
        sys.stdout = self._stdout
        state.here.grad_enabled = self._mode
        dtypes.set_default_dtype(self._dtype)


class Line:
    """A call in a user's Python, whose place names the file as the user does."""

    __slots__ = ("_file", "_found")

    def __init__(self, found: SourceLine, file: Place) -> None:
        self._found = found
        self._file = file

    @property
    def text(self) -> str:
        """The call as written."""
        return self._found.text

    @property
    def start(self) -> int:
        """The offset of the call in its line."""
        return self._found.start

    @property
    def end(self) -> int:
        """The offset behind the call."""
        return self._found.end

    @property
    def source(self) -> SourceText:
        """The whole line."""
        return self._found.source

    @property
    def place(self) -> Place:
        """The file as given, line and column."""
        return self._file.at(self._found.line, self._found.column)


class Lines:
    """Looks up the call in a user's Python that runs now, for a recorder.

    `file` is the spec's file as it was given; another file is named from the current folder.
    """

    def __init__(self, file: str | None) -> None:
        self._given = file
        self._files: dict[str, Place] = {}

    def __call__(self) -> Line | None:
        """Return the innermost call outside kael."""
        found = user_line()
        if found is None:
            return None
        file = self._files.get(found.file)
        if file is None:
            file = self._files[found.file] = self._named(found.file)
        return Line(found, file)

    def _named(self, path: str) -> Place:
        import linecache

        shown = path.removeprefix(os.path.join(os.getcwd(), ""))
        if self._given is not None and os.path.abspath(self._given) == path:
            shown = self._given
        return Place(shown.replace(os.sep, "/"), source="".join(linecache.getlines(path)))


def failure(error: BaseException, place: Place, what: str) -> SpecError:
    """Return the error for an exception of a user's code, with the frames of the user's file."""
    text = describe(error)
    message, _, rest = text.partition("\n")
    frames = user_frames(error, place.file)
    detail = "\n".join(part for part in (*frames, rest, _remedy(error)) if part)
    return SpecError(f"{what} raised {message}", place, detail=detail or None)


def _remedy(error: BaseException) -> str:
    """Return what to write instead, where that is known."""
    if isinstance(error, TypeError) and "does not support ufuncs" in str(error):
        return (
            "a function of NumPy takes no tensors: use kael's (kael.tanh for np.tanh), or "
            "x.numpy() where no gradient is meant to pass"
        )
    name, owner = getattr(error, "name", None), getattr(error, "obj", None)
    if isinstance(error, AttributeError) and name and owner is not None:
        return did_you_mean(name, dir(owner)).removeprefix("; ")
    return ""


def describe(error: BaseException) -> str:
    """Return `ZeroDivisionError: division by zero`."""
    if isinstance(error, SystemExit):
        return f"SystemExit: sys.exit({'' if error.code is None else repr(error.code)}) was called"
    text = "".join(traceback.format_exception_only(error)).strip()
    module = type(error).__module__
    # the name under which a file of specs is imported is not the user's
    return text.removeprefix(f"{module}.") if module.startswith(MODULE) else text


def user_frames(error: BaseException, file: str | None) -> list[str]:
    """Return the lines of a traceback that are in the user's file."""
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        if file is not None and same_file(frame.filename, file):
            lines.append(f"{file}:{frame.lineno} in {frame.name}")
            if frame.line:
                lines.append(f"    {frame.line}")
    return lines[-12:]


def same_file(first: str, second: str) -> bool:
    """Tell whether two paths lead to one file."""
    from os.path import realpath

    return realpath(first) == realpath(second)
