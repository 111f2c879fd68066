"""YAML text as nodes with places: parsing, keys and scalars; what the keys mean is not known here.

Nodes are composed and never constructed, so no tag can make an object, and every node keeps its
mark. A node's scalars are read by YAML 1.2's rules as they are needed.
"""

import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kael.specs.literals import INTEGER, REAL, TRUTH, Number, plain_number
from kael.specs.place import Place, SpecError
from kael.specs.spelling import did_you_mean
from kael.specs.syntax import Locate

MAX_BYTES = 4_000_000
MAX_NODES = 1_000_000
MAX_DEPTH = 100
NULLS = frozenset(("", "~", "null", "Null", "NULL"))
TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp", "merge", "value")
)
ESCAPES = {"x": 4, "u": 6, "U": 10}

Node = Any  # a node of ruamel.yaml, which has no types


class Source:
    """One YAML text, and the way from its nodes to places."""

    def __init__(self, text: str, file: str | None, label: str = "") -> None:
        self.text = text
        self.start = Place(file, 1, 1, label, text)
        self._lines: list[int] | None = None

    def place(self, node: Node) -> Place:
        """Return where a node starts."""
        mark = node.start_mark
        return self.start.at(mark.line + 1, mark.column + 1)

    def error(self, message: str, node: Node, hint: str | None = None) -> SpecError:
        """Return the error that points at a node."""
        return SpecError(message, self.place(node), hint=hint)

    def documents(self) -> list[Node]:
        """Return the root node of each document that is not empty.

        Raises `SpecError` for what is no YAML, and for what would be unreasonably large.
        """
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError
        from ruamel.yaml.reader import ReaderError

        yaml = YAML(typ="safe", pure=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                roots = [root for root in yaml.compose_all(self.text) if root is not None]
        except MarkedYAMLError as error:
            raise self.syntax_error(error) from None
        except ReaderError as error:
            place = self.start.at(*self.line_and_column(error.position))
            code = f"U+{ord(self.text[error.position]):04X}"
            raise SpecError(f"not YAML: the character {code} is not allowed", place) from None
        except RecursionError:
            raise SpecError(f"the file nests over {MAX_DEPTH} levels", self.start) from None
        except (YAMLError, ValueError, IndexError, AttributeError) as error:
            message = str(error).strip().partition("\n")[0]
            raise SpecError(f"the file is not YAML: {message}", self.start.at(None, None)) from None
        for root in roots:
            self.check(root)
        return [root for root in roots if not is_null(root)]

    def syntax_error(self, error: Any) -> SpecError:
        """Return the error for what YAML's own parser refuses."""
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context or "invalid syntax").split())
        hint = None
        if "\\t" in problem:
            problem, hint = "a tab cannot start a token", "YAML is indented with spaces"
        elif "mapping values" in problem:
            hint = "a text with ': ' in it is written in quotes"
        elif "cannot start any token" in problem:
            hint = "a text that begins with this character is written in quotes"
        elif problem.startswith("expected ',' or"):
            hint = "inside {…} YAML ends a text at , [ ] { or }: put the expression in quotes"
        place = self.start if mark is None else self.start.at(mark.line + 1, mark.column + 1)
        return SpecError(f"not YAML: {problem}", place, hint=hint)

    def check(self, root: Node) -> None:
        """Refuse unknown tags, deep nesting, and aliases that grow without bound.

        Sizes are counted with every alias written out, from the leaves up.
        """
        sizes: dict[int, int] = {}
        path: set[int] = set()
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            children = list(children_of(node))
            if leaving:
                path.discard(id(node))
                sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
                if sizes[id(node)] > MAX_NODES:
                    raise self.error(f"over {MAX_NODES:,} values, aliases written out", node,
                                     "put the numbers in a .npy file")  # fmt: skip
            elif id(node) in path:
                raise self.error("an alias inside the node it stands for", node)
            elif id(node) not in sizes:
                if str(node.tag) not in TAGS:
                    raise self.error(f"unknown YAML tag '{str(node.tag)[:60]}'", node)
                path.add(id(node))
                if len(path) > MAX_DEPTH:
                    raise self.error(f"the file nests over {MAX_DEPTH} levels", node)
                stack.append((node, True))
                stack.extend((child, False) for child in children)

    def entries(self, node: Node, what: str) -> dict[str, tuple[Node, Node]]:
        """Return a mapping's (key node, value node) by key, in order.

        Raises `SpecError` for anything but a mapping, and for a key given twice.
        """
        if kind_of(node) != "map":
            raise self.error(f"{what} must be a mapping, got {describe(node)}", node)
        found: dict[str, tuple[Node, Node]] = {}
        for key, value in node.value:
            if kind_of(key) != "scalar":
                raise self.error(f"a key must be a word, got {describe(key)}", key)
            if key.value in found:
                line = self.place(found[key.value][0]).line
                raise self.error(
                    f"key '{key.value[:60]}' is given twice", key, f"the first is on line {line}"
                )
            found[key.value] = (key, value)
        return found

    def known(self, entries: dict[str, tuple[Node, Node]], keys: Iterable[str], what: str) -> None:
        """Refuse a key that is not one of `keys`."""
        keys = list(keys)
        before = ""
        for name, (key, node) in entries.items():
            if name not in keys:
                near = did_you_mean(name, keys)
                hint: str | None = None if near else f"the keys are {', '.join(keys)}"
                if before.count("(") > before.count(")"):
                    # A comma of `{output: cumsum(x, 0)}` has made a key of the argument behind it.
                    hint = "inside {…} YAML ends a text at a comma: put the expression in quotes"
                raise self.error(f"unknown key '{name[:60]}' in {what}{near}", key, hint)
            before = str(node.value) if is_text(node) else ""

    def text_of(self, node: Node, what: str) -> str:
        """Return a text; numbers, truth values and null are none."""
        if not is_text(node):
            hint = "write it in quotes" if kind_of(node) == "scalar" and node.value else None
            raise self.error(f"{what} must be text, got {describe(node)}", node, hint)
        return str(node.value)

    def items(self, node: Node) -> Sequence[Node] | None:
        """Return the items of a list; None for anything else."""
        return node.value if kind_of(node) == "list" else None

    def number(self, node: Node) -> Number:
        """Return a number or a truth value."""
        value = number_of(node)
        if value is None:
            raise self.error(f"a number is expected, got {describe(node)}", node)
        return value

    def real(self, node: Node, what: str) -> float:
        """Return a number that is no truth value."""
        value = number_of(node)
        if value is None or isinstance(value, bool):
            raise self.error(f"{what} must be a number, got {describe(node)}", node)
        try:
            return float(value)
        except OverflowError:
            raise self.error(f"{what} is beyond the range of a float", node) from None

    def integer(self, node: Node, what: str) -> int:
        """Return an integer."""
        value = number_of(node)
        if value is None or isinstance(value, (bool, float)):
            raise self.error(f"{what} must be an integer, got {describe(node)}", node)
        return value

    def flag(self, node: Node, what: str) -> bool:
        """Return a truth value."""
        if kind_of(node) == "scalar" and node.style is None and node.value in TRUTH:
            return TRUTH[node.value]
        hint = None
        if kind_of(node) == "scalar" and node.value in ("yes", "no", "on", "off"):
            hint = f"'{node.value}' is text in YAML 1.2"
        raise self.error(f"{what} must be true or false, got {describe(node)}", node, hint)

    def locator(self, node: Node) -> Locate:
        """Return the map from an offset in a scalar's value to a line and a column of the file."""
        offsets: list[int] = []

        def locate(offset: int) -> tuple[int, int]:
            if not offsets:
                offsets.extend(align(self.text, node))
            return self.line_and_column(offsets[min(offset, len(offsets) - 1)])

        return locate

    def line_and_column(self, at: int) -> tuple[int, int]:
        """Return the line and column of a character of the file."""
        if self._lines is None:
            self._lines = [0, *(i + 1 for i, char in enumerate(self.text) if char == "\n")]
        line = bisect_right(self._lines, at)
        return line, at - self._lines[line - 1] + 1


def children_of(node: Node) -> Iterator[Node]:
    """Yield the nodes right below a node."""
    kind = kind_of(node)
    if kind == "list":
        yield from node.value
    elif kind == "map":
        for key, value in node.value:
            yield key
            yield value


def kind_of(node: Node) -> str:
    """Return "scalar", "list" or "map"."""
    return {"scalar": "scalar", "sequence": "list", "mapping": "map"}[node.id]


def number_of(node: Node) -> Number | None:
    """Return the number or truth value of a scalar that is not quoted; None for all else."""
    if kind_of(node) == "scalar" and node.style is None:
        return plain_number(node.value)
    return None


def is_null(node: Node) -> bool:
    """Tell whether a node is empty or null."""
    return kind_of(node) == "scalar" and node.style is None and node.value in NULLS


def is_text(node: Node) -> bool:
    """Tell whether a scalar is text by YAML 1.2: quoted, or no number, truth value or null."""
    if kind_of(node) != "scalar":
        return False
    text = node.value
    if node.style is not None:
        return True
    return not (
        text in NULLS
        or text in TRUTH
        or re.fullmatch(INTEGER, text)
        or re.fullmatch(REAL, text)
        or (text.lstrip("+-")[:1] == "." and plain_number(text) is not None)
    )


def describe(node: Node) -> str:
    """Return what a node is, for a message."""
    kind = kind_of(node)
    if kind != "scalar":
        return "a list" if kind == "list" else "a mapping"
    if is_null(node):
        return "nothing"
    text = node.value if len(node.value) <= 40 else node.value[:40] + "…"
    if node.style is None and node.value in TRUTH:
        return f"{text}"
    return f"the text {text!r}" if is_text(node) else f"the number {text}"


def align(text: str, node: Node) -> list[int]:
    """Return, for each character of a scalar's value, where it is in the file; then the end.

    Folding, indentation and escapes change only white space and quoted characters, so one walk
    over both texts finds every visible character.
    """
    at, end = node.start_mark.index, node.end_mark.index
    style = node.style
    if style in ("|", ">"):
        newline = text.find("\n", at)
        at = end if newline < 0 else newline + 1
    elif style in ("'", '"'):
        at += 1
    places = []
    for char in node.value:
        if not char.isspace():
            at = skip_blanks(text, at, end, style)
        places.append(min(at, end))
        if style == '"' and text[at : at + 1] == "\\":
            at += ESCAPES.get(text[at + 1 : at + 2], 2)
        elif style == "'" and char == "'":
            at += 2
        elif not char.isspace() or text[at : at + 1].isspace():
            at += 1
    return [*places, min(at, end)]


def skip_blanks(text: str, at: int, end: int, style: str | None) -> int:
    """Return the first visible character from `at` on, past a folded line's break as well."""
    while at < end:
        if text[at].isspace():
            at += 1
        elif style == '"' and text[at] == "\\" and text[at + 1 : at + 2] in ("\n", "\r"):
            at += 2
        else:
            break
    return at


def decode(data: bytes, file: str | None, label: str = "") -> str:
    """Return the text of a file of specs.

    Raises `SpecError` for a file that is too large, binary, or not UTF-8.
    """
    whole = Place(file, label=label)
    if len(data) > MAX_BYTES:
        raise SpecError(
            f"the file has {len(data):,} bytes; at most {MAX_BYTES:,} are read", whole,
            hint="put the numbers in a .npy file",
        )  # fmt: skip
    if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SpecError("the file is binary, not YAML", whole)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        message = f"the file is not UTF-8: byte 0x{data[error.start]:02x}"
        raise SpecError(message, Place(file, line, column, label)) from None
