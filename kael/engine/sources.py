"""Where in the user's program an operation ran: the call's file, line and column.

Looked up by whoever asks (anomaly mode, recorders); an ordinary run never does.
"""

from __future__ import annotations

import sys
import weakref
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from kael.engine import grad_mode
from kael.engine.grad_mode import state

if TYPE_CHECKING:
    from kael.engine.node import Node
    from kael.tensors import Tensor


class SourceLine:
    """One call in the user's program; its text is read when asked for."""

    __slots__ = ("_code", "_instruction", "line")

    def __init__(self, code: CodeType, instruction: int, line: int) -> None:
        self._code = code
        self._instruction = instruction
        self.line: int | None = line

    @property
    def file(self) -> str:
        """The file as Python knows it."""
        return self._code.co_filename

    @property
    def column(self) -> int | None:
        """The column of the call, from 1; None where Python does not know it."""
        return None if self._span() is None else self.start + 1

    @property
    def place(self) -> SourceLine:
        """The place is the line itself: it has a file, a line and a column."""
        return self

    @property
    def source(self) -> SourceText:
        """The whole line the call stands in."""
        import linecache

        return SourceText(linecache.getline(self.file, self.line or 0).rstrip("\n"))

    @property
    def start(self) -> int:
        """The offset of the call in its line, in characters."""
        span = self._span()
        return 0 if span is None else span[0]

    @property
    def end(self) -> int:
        """The offset behind the call."""
        span = self._span()
        return len(self.source.text) if span is None else span[1]

    @property
    def text(self) -> str:
        """The call as written, or its whole line."""
        return self.source.text[self.start : self.end].strip()

    def _span(self) -> tuple[int, int] | None:
        from itertools import islice

        found = next(islice(self._code.co_positions(), self._instruction // 2, None), None)
        if found is None:
            return None
        line, end_line, start, end = found
        if line != self.line or start is None or end is None:
            return None
        raw = self.source.text.encode()
        # A call over several lines is shown up to the end of its first.
        last = end if end_line == line else len(raw)
        return len(raw[:start].decode(errors="replace")), len(raw[:last].decode(errors="replace"))

    def __str__(self) -> str:
        column = self.column
        return f"{self.file}:{self.line}" + ("" if column is None else f":{column}")


class SourceText:
    """A line of a program."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def user_line() -> SourceLine | None:
    """Return the innermost call outside kael; None where kael's command line is the program."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package == "kael_cli":
            return None
        if package != "kael":
            return SourceLine(frame.f_code, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return None


_lines: weakref.WeakKeyDictionary[Node, SourceLine] = weakref.WeakKeyDictionary()


def remember_line(
    op: Any,
    inputs: tuple[Tensor, ...],
    arguments: tuple[Any, ...],
    output: Tensor,
    node: Node | None,
) -> None:
    """Keep the user's line for a node, as the observer of operations in anomaly mode."""
    del op, inputs, arguments, output
    if node is not None:
        line = user_line()
        if line is not None:
            _lines[node] = line


def line_of(node: Node) -> SourceLine | None:
    """Return the line that recorded a node, where it was remembered."""
    return _lines.get(node)


def remember_lines(wanted: bool) -> None:
    """Switch the memory of lines on or off: for this thread, and for threads that start later."""
    grad_mode.first_observer = remember_line if wanted else None
    observer = state.here.observer
    if wanted and observer is None:
        state.here.observer = remember_line
    elif not wanted and observer is remember_line:
        state.here.observer = None
