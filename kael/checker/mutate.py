"""Small changes of the text of a formula: signs turned over, terms and factors left out.

Two questions are answered by them. Would the cases of a spec notice such a slip? (`kael check
--mutate`.) And which slip makes a wrong claim of the author's hold? (The repairs of a diagnosis.)
Only text is handled here; what a text means, and whether it evaluates, is for others to say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["sign", "term", "factor", "power", "constant", "scale", "function", "name"]

SLIPS: tuple[Kind, ...] = ("sign", "term", "factor")
"""The kinds of change that cases are held against."""

MOST_CHARACTERS = 2_000

_PARTNERS = {
    "sin": "cos",
    "cos": "sin",
    "sinh": "cosh",
    "cosh": "sinh",
    "exp": "expm1",
    "expm1": "exp",
    "log": "log1p",
    "log1p": "log",
    "sum": "mean",
    "mean": "sum",
    "max": "min",
    "min": "max",
    "maximum": "minimum",
    "minimum": "maximum",
}


@dataclass(frozen=True)
class Edit:
    """One change: the characters from `start` to `end` become `replacement`.

    `part` is the text that it is about: the term whose sign turns, the factor that goes.
    """

    kind: Kind
    start: int
    end: int
    replacement: str
    part: str
    scales: bool = False
    """Whether it only multiplies something by a number."""

    def apply(self, text: str) -> str:
        """The changed text."""
        return text[: self.start] + self.replacement + text[self.end :]


def edits(text: str, names: Sequence[str] = ()) -> Iterator[Edit]:
    """Every single change of an expression, the likeliest slips first.

    `names` may stand for one another. A text that Python's parser does not read, or a very long
    one, has none.

    >>> [edit.apply("a - b*c") for edit in edits("a - b*c") if edit.kind == "sign"]
    ['-a - b*c', 'a + b*c']
    >>> [edit.apply("a - b*c") for edit in edits("a - b*c") if edit.kind == "factor"]
    ['a - c', 'a - b']
    """
    if len(text) > MOST_CHARACTERS or not text.strip():
        return
    try:
        tree = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    walk = _Walk(text, names)
    conditions = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for inner in ast.walk(node)
    }
    found = [
        edit
        for node in ast.walk(tree)
        for edit in walk.edits_of(node)
        # A condition says where, not what: another name in it proves nothing.
        if edit.kind != "name" or id(node) not in conditions
    ]
    found += walk.of_terms(tree)
    order = ["sign", "factor", "constant", "term", "scale", "power", "function", "name"]
    yield from sorted(found, key=lambda edit: (order.index(edit.kind), edit.start))


class _Walk:
    """The changes of each node of one tree."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.text, self.names = text, names
        self.lines = [0]
        for line in text.split("\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)
        self.source = f"({text}\n)".split("\n")

    def at(self, line: int, column: int) -> int:
        """The offset in the text of a place in the tree, whose columns count bytes."""
        characters = len(self.source[line - 1].encode()[:column].decode(errors="ignore"))
        return self.lines[line - 1] + characters - (line == 1)

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Where a node starts and ends."""
        start = self.at(node.lineno, node.col_offset)
        return start, self.at(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def part(self, node: ast.expr) -> str:
        """The text of a node, on one line."""
        start, end = self.span(node)
        return " ".join(self.text[start:end].split())

    def kept(self, node: ast.expr) -> str:
        """The text of a node that takes the place of a larger one."""
        text = self.part(node)
        return f"({text})" if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)) else text

    def edits_of(self, node: ast.AST) -> Iterator[Edit]:
        """The changes at one node."""
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                yield from self._sum(node)
            case ast.BinOp(op=ast.Mult() | ast.Div()):
                yield from self._product(node)
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int() | float())):
                yield from self._power(node)
            case ast.UnaryOp(op=ast.USub()):
                start, end = self.span(node)
                yield Edit(
                    "sign", start, end, self.kept(node.operand), self.part(node.operand), True
                )
            case ast.Call(func=ast.Name(id=name)) if name in _PARTNERS:
                start, end = self.span(node.func)
                yield Edit("function", start, end, _PARTNERS[name], name)
            case ast.Name(id=name) if name in self.names:
                start, end = self.span(node)
                for other in self.names:
                    if other != name:
                        yield Edit("name", start, end, other, name)

    def of_terms(self, tree: ast.expr) -> Iterator[Edit]:
        """The sign and the size of each term of the whole."""
        pending, terms = [tree], []
        while pending:
            node = pending.pop()
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
                pending += [node.right, node.left]
            else:
                terms.append(node)
        for number, node in enumerate(terms):
            start, end = self.span(node)
            text = self.part(node)
            if number == 0 and not isinstance(node, ast.UnaryOp):
                yield Edit("sign", start, end, f"-{self.kept(node)}", text, True)
            for scale in ("2", "0.5", "3", "4"):
                yield Edit("scale", start, end, f"{scale}*{self.kept(node)}", text, True)

    def _sum(self, node: ast.BinOp) -> Iterator[Edit]:
        start, end = self.span(node)
        left, right = self.span(node.left), self.span(node.right)
        plus = isinstance(node.op, ast.Add)
        at = self.text.find("+" if plus else "-", left[1], right[0])
        if at >= 0:
            yield Edit("sign", at, at + 1, "-" if plus else "+", self.part(node.right))
        yield Edit("term", start, end, self.kept(node.left), self.part(node.right))
        rest = self.kept(node.right) if plus else f"(-{self.kept(node.right)})"
        yield Edit("term", start, end, rest, self.part(node.left))
        for side in (node.left, node.right):
            yield from self._numbers(side, False)

    def _product(self, node: ast.BinOp) -> Iterator[Edit]:
        start, end = self.span(node)
        if isinstance(node.op, ast.Mult):
            yield Edit("factor", start, end, self.kept(node.right), self.part(node.left))
        elif not _is_one(node.left):
            yield Edit("factor", start, end, f"(1/{self.kept(node.right)})", self.part(node.left))
        yield Edit("factor", start, end, self.kept(node.left), self.part(node.right))
        for side in (node.left, node.right):
            yield from self._numbers(side, True)

    def _power(self, node: ast.BinOp) -> Iterator[Edit]:
        start, end = self.span(node)
        base = self.kept(node.left)
        assert isinstance(node.right, ast.Constant)
        exponent = node.right.value
        assert isinstance(exponent, (int, float))
        yield Edit("power", start, end, base, self.part(node))
        for other in (exponent - 1, exponent + 1):
            if other not in (0, 1):
                yield Edit("power", start, end, f"{base}**{other:g}", self.part(node))

    def _numbers(self, node: ast.expr, scales: bool) -> Iterator[Edit]:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, (int, float)):
            return
        start, end = self.span(node)
        value = node.value
        others = (value + 1, value - 1, 2 * value, value / 2, 1 / value if value else 0)
        for other in dict.fromkeys(others):
            if other not in (0, value):
                yield Edit("constant", start, end, f"{other:.17g}", self.part(node), scales)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1
