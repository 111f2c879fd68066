"""From the text of an expression to a Python syntax tree whose offsets are characters.

Python's own parser does the reading; nothing is evaluated or compiled. What it cannot read (very
long chains, an error's true position) is dealt with here; which nodes are allowed, and what they
mean, is `language.py`'s.
"""

import ast
import re
import warnings
from collections.abc import Callable, Iterator

from kael.specs.place import Place, SpecError

MAX_CHARACTERS = 100_000
MAX_NESTING = 1_000
CHAIN = 500  # operators of one chain after which its head is parsed by itself

Locate = Callable[[int], tuple[int, int | None]]

# Compiled when a text first needs it: most are short and on one line.
TOKEN = r"""(?P<space>\s+)
    |(?P<comment>\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<operand>0[xXoObB]\w+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?[jJ]?|[^\W\d]\w*)
    |(?P<operator>\*\*|//|<<|>>|[<>=!:]=|.)"""
LEVELS = {"|": 0, "^": 1, "&": 2, "<<": 3, ">>": 3, "+": 4, "-": 4}
LEVELS |= dict.fromkeys(("*", "/", "//", "%", "@"), 5)
WORDS = frozenset(("and", "or", "not", "in", "is", "if", "else", "lambda", "for", "async", "await"))


class Text:
    """The text of an expression and the way from an offset in it to a place in the file."""

    __slots__ = ("locate", "place", "text")

    def __init__(self, text: str, place: Place, locate: Locate | None = None) -> None:
        self.text = text
        self.place = place
        self.locate = locate

    def at(self, offset: int) -> Place:
        """Return the place of a character of the expression."""
        if self.locate is not None:
            return self.place.at(*self.locate(offset))
        if self.place.line is None:
            return self.place
        before = self.text[:offset]
        lines = before.count("\n")
        if lines:
            return self.place.at(self.place.line + lines, offset - before.rfind("\n"))
        return self.place.at(self.place.line, (self.place.column or 1) + offset)

    def error(self, message: str, offset: int, hint: str | None = None) -> SpecError:
        """Return the error that points at a character of the expression."""
        return SpecError(message, self.at(offset), hint=hint)


class Pieces:
    """Python syntax trees of one expression; a name that stands for a piece leads to another."""

    __slots__ = ("heads", "text")

    def __init__(self, text: Text) -> None:
        self.text = text
        self.heads: dict[tuple[str, int], str] = {}

    def root(self) -> ast.expr:
        """Return the tree of the whole expression."""
        text = self.text.text
        if len(text) > MAX_CHARACTERS:
            raise self.text.error(
                f"the expression has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read",
                0,
                "name parts of it under let, or put the numbers in a file",
            )
        if not text.strip():
            raise self.text.error("the expression is empty", 0)
        if "\0" in text:
            raise self.text.error("the expression holds a null character", text.index("\0"))
        line = on_one_line(text)
        if sum(map(line.count, "|^&<>+-*/%@")) > CHAIN:
            line = self.fold(line)
        return self.parse(line)

    def head(self, node: ast.Name) -> ast.expr | None:
        """Return the tree a placeholder stands for; None for an ordinary name."""
        text = self.heads.get((node.id, node.col_offset)) if self.heads else None
        return None if text is None else self.parse(text)

    def parse(self, line: str) -> ast.expr:
        """Return the tree of one line of text, with the offsets counted in characters."""
        # A space at the start is an indent to Python; a parenthesis would cost one of its levels.
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(stripped, mode="eval").body
        except SyntaxError as error:
            # Python reports a text that ends too early on the line after it, or at 0.
            ended = not error.offset or error.lineno != 1
            offset = len(stripped) if ended else min((error.offset or 1) - 1, len(stripped))
            message = "the expression ends too early" if ended else explain(error)
            raise self.text.error(message, indent + offset, self.cut_short(message)) from None
        except (MemoryError, RecursionError):
            raise self.text.error(f"the expression nests over {MAX_NESTING:,} levels", 0) from None
        except ValueError as error:  # half of a surrogate pair
            raise self.text.error(f"the expression cannot be read: {error}", 0) from None
        if indent or not stripped.isascii():
            move(tree, stripped, indent)
        return tree

    def cut_short(self, message: str) -> str | None:
        """Return the remedy where a comma of YAML's `{…}` ended the text inside a bracket."""
        if not message.endswith("was never closed"):
            return None
        last = self.text.at(len(self.text.text) - 1)
        lines = (last.source or "").split("\n")
        if last.line is None or last.line > len(lines):
            return None
        behind = lines[last.line - 1][last.column or 0 :].lstrip()
        quotes = "inside {…} YAML ends a text at a comma: put the expression in quotes"
        return quotes if behind.startswith(",") else None

    def fold(self, line: str) -> str:
        """Return the text with the heads of long chains replaced by names, offsets unchanged.

        Python's parser builds a chain `a + b + c + …` as deep as it is long and gives up at some
        3,000 levels. The head of such a chain is its left subtree, so it can be parsed by itself.
        """
        chars = list(line)
        groups: list[list[tuple[int, int]]] = [[(0, 0)] * 6]
        after_operand = False
        for match in tokens(line):
            kind, token, end = match.lastgroup, match.group(), match.end()
            if kind in ("space", "comment"):
                continue
            if kind == "string" or (kind == "operand" and token not in WORDS):
                after_operand = True
            elif token in "([{":
                groups.append([(end, 0)] * 6)
                after_operand = False
            elif token in ")]}":
                if len(groups) > 1:
                    groups.pop()
                after_operand = True
            elif token == ".":
                after_operand = False
            elif token not in LEVELS or not after_operand:
                if token not in ("**", "+", "-", "~"):
                    groups[-1] = [(end, 0)] * 6
                after_operand = False
            else:
                level = LEVELS[token]
                start, count = groups[-1][level]
                if count >= CHAIN:
                    self.cut(chars, start, match.start())
                    count = 0
                groups[-1][level] = (start, count + 1)
                groups[-1][level + 1 :] = [(end, 0)] * (5 - level)
                after_operand = False
        return "".join(chars)

    def cut(self, chars: list[str], start: int, end: int) -> None:
        """Move a head out of the text, and leave a name and spaces in its place."""
        while chars[start] == " ":
            start += 1
        name = f"_{len(self.heads)}"
        self.heads[name, start] = " " * start + "".join(chars[start:end])
        chars[start:end] = list(name.ljust(end - start))


def tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a text, white space and comments among them."""
    return re.finditer(TOKEN, text, re.VERBOSE | re.DOTALL)


def move(tree: ast.expr, line: str, indent: int) -> None:
    """Turn the offsets of a tree, in bytes of a line, into characters behind an indent."""
    characters = [at for at, char in enumerate(line, indent) for _ in char.encode()]
    characters.append(len(line) + indent)
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.keyword)):
            node.col_offset = characters[node.col_offset]
            node.end_col_offset = characters[node.end_col_offset or 0]


def on_one_line(text: str) -> str:
    """Return the text with comments and line breaks as blanks, every character at its offset."""
    if "\n" not in text and "#" not in text and "\r" not in text and "\t" not in text:
        return text
    parts = []
    for match in tokens(text):
        blank = match.lastgroup in ("space", "comment")
        parts.append(" " * len(match.group()) if blank else match.group())
    return "".join(parts)


def explain(error: SyntaxError) -> str:
    """Return the sentence for a syntax error, without what only makes sense in a program."""
    message = error.msg.replace(" (detected at line 1)", "")
    message = message.replace(" or ':=' instead of '='", "")
    if "indent" in message or "EOF" in message:
        message = "invalid syntax"
    if "nested parentheses" in message:
        message = "too many nested parentheses: Python's parser reads at most 200"
    if "integer string conversion" in message:
        message = "an integer this long is beyond the range of a float"
    return message[:1].lower() + message[1:]
