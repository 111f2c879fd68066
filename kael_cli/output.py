"""Where a command writes: results to standard output or a whole file, notes to standard error."""

import os
import sys
from types import TracebackType
from typing import Self

from kael_cli.exits import CommandError
from kael_cli.options import Options

STDOUT = (None, "-", "/dev/stdout")
DESCRIPTORS = ("/dev/std", "/dev/fd/", "/proc/self/fd/")
COLORS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}


class Output:
    """The results of one command, as a context manager.

    A file appears under its name only when the command ends without an exception: a half-written
    report is never taken for a whole one. When the reader of standard output has gone, the rest
    is dropped and the command carries on to its verdict.
    """

    def __init__(self, options: Options) -> None:
        self._path = None if options.output in STDOUT else options.output
        self._parts: list[bytes] = []
        self._closed = False
        self._quiet = options.quiet
        self._verbose = options.verbose
        self.color = _wants_color(options.color, terminal=self._path is None)
        if self._path is not None:
            _refuse_unwritable(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None and self._path is not None and self._parts:
            write_whole(self._path, b"".join(self._parts))

    def write(self, text: str | bytes) -> None:
        """Add text, or the bytes of a picture in a file, to the results."""
        if self._path is not None:
            self._parts.append(text if isinstance(text, bytes) else text.encode())
        elif not self._closed:
            assert isinstance(text, str)
            try:
                sys.stdout.write(text)
                sys.stdout.flush()
            except BrokenPipeError:
                self._closed = True

    def note(self, text: str) -> None:
        """Tell the user something that is no result."""
        if not self._quiet:
            sys.stderr.write(f"note: {text}\n")

    def complain(self, text: str) -> None:
        """Tell the user of an error that does not end the run."""
        sys.stderr.write(f"{text}\n")

    def traceback(self) -> None:
        """Show the traceback of the exception that is being handled, where it was asked for."""
        if self._verbose:
            import traceback

            traceback.print_exc()

    def markdown(self, text: str) -> str:
        """Return Markdown as a terminal shows it where colours are shown, else as it is."""
        if not self.color:
            return text
        from rich.console import Console
        from rich.markdown import Markdown

        console = Console(force_terminal=True, width=min(100, Console().width))
        with console.capture() as capture:
            console.print(Markdown(text))
        return capture.get()

    def paint(self, color: str, text: str) -> str:
        """Return the text in a colour where colours are shown."""
        return f"\x1b[{COLORS[color]}m{text}\x1b[0m" if self.color else text


def write_whole(path: str, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, and never a part."""
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        if path.startswith(DESCRIPTORS) or (os.path.exists(target) and not os.path.isfile(target)):
            # a device, a named pipe or an open descriptor is written to; it cannot be replaced
            with open(path, "ab" if os.path.isfile(target) else "wb") as stream:
                stream.write(content)
            return
        with open(temporary, "xb") as stream:
            stream.write(content)
        if os.path.exists(target):
            os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise CommandError(f"cannot write '{path}': {error.strerror}") from error
        raise


def _refuse_unwritable(path: str) -> None:
    """Say before a long run, not after it, that its results have nowhere to go."""
    folder = os.path.dirname(path) or "."
    if not path.strip():
        raise CommandError("the name of the file to write is empty")
    if os.path.isdir(path):
        raise CommandError(f"cannot write '{path}': it is a directory")
    if not os.path.isdir(folder):
        raise CommandError(f"cannot write '{path}': there is no directory '{folder}'")
    exists = os.path.exists(path)
    replaced = os.path.isfile(path) or not exists
    if (exists and not os.access(path, os.W_OK)) or (replaced and not os.access(folder, os.W_OK)):
        raise CommandError(f"cannot write '{path}': Permission denied")


def _wants_color(choice: str, *, terminal: bool) -> bool:
    if choice != "auto":
        return choice == "always"
    if not terminal or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()
