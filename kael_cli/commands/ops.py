"""`kael ops`: the operation reference, read from the declarations."""

from typing import Any

from kael_cli.exits import CommandError, Exit
from kael_cli.options import OpsOptions
from kael_cli.output import Output

OPTIONS = OpsOptions


def run(options: OpsOptions) -> int:
    """Print one operation or all of them."""
    rows = [_described(entry) for entry in _entries(options.name)]
    with Output(options) as output:
        output.write(RENDERERS[options.format](rows))
    return Exit.HOLDS


def _entries(name: str | None) -> list[Any]:
    import kael.ops
    from kael.ops.declare import ALIASES, COMPOSITES, REGISTRY, lookup

    del kael.ops  # imported so that every family has declared its operations
    if name is None:
        return [*REGISTRY.values(), *COMPOSITES.values()]
    entry = lookup(name)
    if entry is None:
        from kael.specs.spelling import did_you_mean

        known = [*REGISTRY, *COMPOSITES, *ALIASES]
        raise CommandError(f"unknown operation '{name}'{did_you_mean(name, known)}")
    return [entry]


def _described(entry: Any) -> dict[str, Any]:
    """The row of an operation; a composite records the nodes of what it calls, and has none."""
    own = hasattr(entry, "node_name")
    inputs = entry.inputs if own else ()
    return {
        "name": entry.name,
        "signature": entry.signature,
        "family": entry.family or None,
        "doc": entry.doc,
        "node": entry.node_name if own and entry.differentiable else None,
        "derivatives": dict(zip(inputs, entry.vjp_text, strict=True)) if own else {},
        "saves": {n: list(s) for n, s in zip(inputs, entry.saves, strict=True)} if own else {},
        "at_kink": (entry.at_kink or None) if own else None,
        "convention": (entry.convention or None) if own else None,
        "aliases": list(entry.aliases) if own else [],
        "method": entry.method,
        "composite": not own,
    }


def _facts(row: dict[str, Any]) -> list[tuple[str, str]]:
    """What is said of an operation beside its signature, as (what, text)."""
    facts = []
    for name, text in row["derivatives"].items():
        if text:
            saved = ", ".join(row["saves"][name]) or "nothing"
            facts.append((f"gradient of {name}", f"{text}   (saves {saved})"))
        elif row["node"]:
            facts.append((f"gradient of {name}", "none"))
    if row["composite"]:
        facts.append(("gradient", "that of the operations it is made of"))
    elif not row["node"]:
        facts.append(("gradient", "none: the result is a constant"))
    if row["at_kink"]:
        facts.append(("at a kink", row["at_kink"]))
    if row["convention"]:
        facts.append(("convention", row["convention"]))
    if row["aliases"]:
        facts.append(("also", ", ".join(row["aliases"])))
    return facts


def _text(rows: list[dict[str, Any]]) -> str:
    blocks = []
    for row in rows:
        lines = [row["signature"] + (f"  {row['node']}" if row["node"] else "")]
        lines += [f"  {line}" for line in row["doc"].splitlines()]
        lines += [f"  {what}: {text}" for what, text in _facts(row)]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _json(rows: list[dict[str, Any]]) -> str:
    from kael_cli.reporters.json import document

    return document(rows)


def _markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["| operation | node | gradient, saved | conventions |", "| --- | --- | --- | --- |"]
    for row in rows:
        gradients = "<br>".join(
            f"{name}: `{_cell(text)}` ({', '.join(row['saves'][name]) or 'nothing'})"
            for name, text in row["derivatives"].items()
            if text
        )
        notes = "; ".join(filter(None, (row["at_kink"], row["convention"])))
        node = f"`{row['node']}`" if row["node"] else ""
        lines.append(f"| `{_cell(row['signature'])}` | {node} | {gradients} | {_cell(notes)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


RENDERERS = {"text": _text, "json": _json, "markdown": _markdown}
