"""The operation reference as data, and as the page `docs/operations.md`.

    python -m kael.ops.reference            writes the page
    python -m kael.ops.reference --check    exits with 1 where the page is stale

`kael ops` prints the same rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypedDict

import kael
from kael.ops import COMPOSITES, REGISTRY, Composite, Operation, names
from kael.ops.inplace import METHODS

PAGE = Path(kael.__file__).parents[1] / "docs" / "operations.md"

FAMILIES = {
    "math": "Arithmetic and elementary functions",
    "special": "Special functions",
    "activation": "Activations",
    "reduce": "Reductions",
    "scan": "Scans along a dim",
    "sort": "Sorting and positions",
    "nn": "Softmax, normalization, convolution",
    "loss": "Losses",
    "linalg": "Matrices",
    "view": "Shapes",
    "index": "Indexing, joining, choosing",
    "compare": "Comparisons, logic, rounding",
}

_HEAD = """# Operations

Written by `python -m kael.ops.reference` from the declarations; do not edit. `kael ops NAME` prints
one entry.

Every operation is a function of `kael`, a method of `Tensor` unless it takes a list, and a name in
expressions. A gradient is an expression over `g`, the gradient that arrives (with the result's
shape and dtype), `out`, the result, and the operation's own parameters; behind it stands what the
graph keeps for it. Where operands broadcast or promote, each gradient is summed to its operand's
shape and cast to its dtype. Masks select: `where(mask, g, 0)` is 0 also where `g` is infinite.
"""


class Row(TypedDict):
    """One operation, as `kael ops --format json` gives it."""

    name: str
    signature: str
    family: str | None
    doc: str
    node: str | None
    derivatives: dict[str, str]
    saves: dict[str, list[str]]
    at_kink: str | None
    convention: str | None
    aliases: list[str]
    prose: bool
    method: bool
    composite: bool


def row(entry: Operation | Composite) -> Row:
    """Return the row of a declaration; a composite records the nodes of what it calls."""
    made: Row = {
        "name": entry.name,
        "signature": entry.signature,
        "family": entry.family or None,
        "doc": entry.doc,
        "node": None,
        "derivatives": {},
        "saves": {},
        "at_kink": None,
        "convention": None,
        "aliases": list(getattr(entry, "aliases", ())),
        "prose": False,
        "method": entry.method,
        "composite": isinstance(entry, Composite),
    }
    if isinstance(entry, Operation):
        made["node"] = entry.node_name if entry.differentiable else None
        made["derivatives"] = dict(zip(entry.inputs, entry.vjp_text, strict=True))
        saves = zip(entry.inputs, entry.saves, strict=True)
        made["saves"] = {name: list(saved) for name, saved in saves}
        made["at_kink"] = entry.at_kink or None
        made["convention"] = entry.convention or None
        made["prose"] = entry.prose
    return made


def rows() -> list[Row]:
    """Return the rows of all operations, family by family, each in the order of declaration."""
    order = list(FAMILIES)
    # The tables have them in the order in which their modules were first used.
    modules = list(dict.fromkeys(names.FAMILIES.values()))
    entries: list[Operation | Composite] = [*REGISTRY.values(), *COMPOSITES.values()]

    def position(entry: Operation | Composite) -> tuple[int, bool, int]:
        module = names.FAMILIES.get(entry.name, modules[-1])
        return order.index(entry.family), isinstance(entry, Composite), modules.index(module)

    known = [entry for entry in entries if entry.family in FAMILIES]
    others = [entry for entry in entries if entry.family not in FAMILIES]
    return [row(entry) for entry in sorted(known, key=position) + others]


def facts(one: Row) -> Iterator[tuple[str, str, str]]:
    """Yield what is said of an operation beside its signature: what, text, and what it saves."""
    for name, text in one["derivatives"].items():
        if text:
            saved = ", ".join(one["saves"][name]) or "nothing"
            yield f"gradient of {name}", text, saved
        elif one["node"]:
            yield f"gradient of {name}", "none", ""
    if one["composite"]:
        yield "gradient", "that of the operations it is made of", ""
    elif not one["node"]:
        yield "gradient", "none: the result is a constant", ""
    if one["at_kink"]:
        yield "at a kink", one["at_kink"], ""
    if one["convention"]:
        yield "convention", one["convention"], ""
    if one["aliases"]:
        yield "also", ", ".join(one["aliases"]), ""


def markdown(some: Iterable[Row]) -> str:
    """Return operations as Markdown: a heading and a list of facts each."""
    return "\n".join(_entry(one) for one in some)


def page() -> str:
    """Return the whole page, a section a family."""
    parts = [_HEAD]
    family: str | None = ""
    for one in rows():
        if one["family"] != family:
            family = one["family"]
            parts.append(f"## {FAMILIES.get(family or '', family or 'Others')}\n")
        parts.append(_entry(one))
    listed = ", ".join(f"`{name}`" for name in sorted(METHODS))
    parts.append(
        "## In place\n\n"
        "These methods write into the tensor, raise its version and record nothing; with grad mode "
        f"on, a write that a graph would have to know of is refused: {listed}.\n"
    )
    return "\n".join(parts)


def _entry(one: Row) -> str:
    node = f", `{one['node']}`" if one["node"] else ""
    lines = [f"### `{one['signature']}`{node}", "", one["doc"].strip(), ""]
    for what, text, saved in facts(one):
        shown = f"`{text}`" if saved and not one["prose"] else text
        lines.append(f"- {what}: {shown}" + (f" (saves {saved})" if saved else ""))
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` compare it."""
    written = page()
    if arguments == ["--check"]:
        fresh = PAGE.exists() and PAGE.read_text(encoding="utf-8") == written
        if not fresh:
            print(f"{PAGE.name} is stale: run python -m kael.ops.reference", file=sys.stderr)
        return 0 if fresh else 1
    PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
