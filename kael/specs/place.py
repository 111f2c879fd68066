"""Where something stands in a file, and the error that points there; no parsing lives here."""

from kael.errors import KaelError

WINDOW = 100  # characters of a long source line that are shown around the caret


class Place:
    """A position in a file, or in a text that has a label instead of a file.

    Lines and columns count from 1, columns in characters. `source` is the whole text, so that an
    error can show the line.

    >>> str(Place("specs/gate.yaml", 7, 12)), str(Place(None, 1, 5, "<expression>"))
    ('specs/gate.yaml:7:12', '<expression>:1:5')
    """

    __slots__ = ("column", "file", "label", "line", "source")

    def __init__(
        self,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        label: str = "",
        source: str | None = None,
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.label = label
        self.source = source

    def __repr__(self) -> str:
        return f"Place({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.file, self.line, self.column, self.label)

    def __str__(self) -> str:
        parts = [self.file if self.file is not None else self.label]
        if self.line is not None:
            parts.append(str(self.line))
            if self.column is not None:
                parts.append(str(self.column))
        return ":".join(part for part in parts if part)

    def at(self, line: int | None, column: int | None) -> "Place":
        """Return the same text's place at another line and column."""
        return Place(self.file, line, column, self.label, self.source)

    def source_line(self) -> str | None:
        """Return the line of the text that the place is in, or None where it is not known."""
        if self.source is None or self.line is None:
            return None
        lines = self.source.split("\n")
        return lines[self.line - 1].rstrip("\r") if 0 < self.line <= len(lines) else None


class SpecError(KaelError):
    """A spec, an expression or a target cannot be read or evaluated.

    The first line of the text is `file:line:column: message`; the source line with a caret, the
    detail and the hint follow on lines of their own.

    >>> print(SpecError("unknown name 'z'", Place("a.yaml", 1, 5, source="x + z"), hint="use x"))
    a.yaml:1:5: unknown name 'z'
      x + z
          ^
      use x

    `spec` is the name of the one spec that the error is in, None where that is not known.
    """

    def __init__(
        self,
        message: str,
        place: Place | None = None,
        source_line: str | None = None,
        hint: str | None = None,
        detail: str | None = None,
    ) -> None:
        self.message = message
        self.place = place if place is not None else Place()
        self.source_line = source_line if source_line is not None else self.place.source_line()
        self.hint = hint
        self.detail = detail
        self.spec: str | None = None
        super().__init__(message)

    def render(self) -> str:
        """Return the whole text of the error, of several lines."""
        where = str(self.place)
        lines = shown(f"{where}: {self.message}" if where else self.message).splitlines()
        if self.source_line is not None and self.source_line.strip():
            lines += [f"  {line}" for line in point_at(self.source_line, self.place.column)]
        for extra in (self.detail, self.hint):
            if extra:
                lines += [f"  {line}" for line in shown(extra).splitlines()]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


def shown(text: str) -> str:
    """Return a text in which what a terminal would act on is shown as `�`.

    A hostile file cannot write escape codes through the words of an error that quotes it.

    >>> shown("unknown key '\\x1b[31m'")
    "unknown key '�[31m'"
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\t\n" else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def point_at(line: str, column: int | None) -> list[str]:
    """Return a source line and, where the column is known, a caret under it.

    A long line is cut to the part around the caret.
    """
    line = shown(line)
    if column is None:
        return [line if len(line) <= WINDOW else line[:WINDOW] + "…"]
    caret = column - 1
    start = max(0, caret - WINDOW // 2) if len(line) > WINDOW else 0
    end = start + WINDOW
    before, after = "…" if start else "", "…" if end < len(line) else ""
    indent = "".join("\t" if char == "\t" else " " for char in line[start:caret])
    indent += " " * max(0, caret - len(line))
    return [before + line[start:end].rstrip() + after, " " * len(before) + indent + "^"]
