"""`kael ops`: the operation reference, read from the declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kael_cli.exits import CommandError, Exit
from kael_cli.options import OpsOptions
from kael_cli.output import Output

if TYPE_CHECKING:
    from kael.ops.reference import Row

OPTIONS = OpsOptions


def run(options: OpsOptions) -> int:
    """Print one operation or all of them."""
    rows = _rows(options.name)
    with Output(options) as output:
        output.write(RENDERERS[options.format](rows))
    return Exit.HOLDS


def _rows(name: str | None) -> list[Row]:
    from kael.ops import lookup, reference

    if name is None:
        return reference.rows()
    entry = lookup(name)
    if entry is None:
        from kael.ops.names import FAMILIES
        from kael.specs.spelling import did_you_mean

        near = did_you_mean(name, FAMILIES)
        hint = "" if near else "\n'kael ops' lists them"
        raise CommandError(f"unknown operation '{name}'{near}{hint}")
    return [reference.row(entry)]


def _text(rows: list[Row]) -> str:
    from kael.ops import reference

    blocks = []
    for row in rows:
        lines = [row["signature"] + (f"  {row['node']}" if row["node"] else "")]
        lines += [f"  {line}" for line in row["doc"].splitlines()]
        for what, text, saved in reference.facts(row):
            lines.append(f"  {what}: {text}" + (f"   (saves {saved})" if saved else ""))
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _json(rows: list[Row]) -> str:
    from kael_cli.reporters.json import document

    return document([dict(row) for row in rows])


def _markdown(rows: list[Row]) -> str:
    from kael.ops import reference

    return reference.markdown(rows)


RENDERERS = {"text": _text, "json": _json, "markdown": _markdown}
