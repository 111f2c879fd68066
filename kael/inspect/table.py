"""Rows of text as aligned columns or as a Markdown table; no terminal width is known here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from unicodedata import combining, east_asian_width


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()
) -> list[str]:
    """Return a head and rows as aligned lines, two spaces between the columns.

    >>> for line in columns(["n", "name"], [["1", "x"], ["10", "y"]], right={"n"}):
    ...     print(line)
     n  name
     1  x
    10  y
    """
    table = [list(head), *map(list, rows)]
    table = [[" ".join(cell.split()) for cell in row] for row in table]
    widths = [max(map(width, cells)) for cells in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = [
            pad(cell, size, title in right)
            for cell, size, title in zip(row, widths, head, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a head and rows as the lines of a Markdown table.

    >>> markdown(["a", "b"], [["1", "x|y"]])
    ['| a | b |', '| --- | --- |', '| 1 | x\\\\|y |']
    """
    table = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(escaped, row))} |" for row in table]


def escaped(cell: str) -> str:
    """Return a cell's text so that it stays in its cell."""
    return " ".join(cell.split()).replace("|", "\\|")


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def pad(text: str, size: int, right: bool) -> str:
    """Return a text filled up with spaces on one side."""
    space = " " * (size - width(text))
    return space + text if right else text + space
