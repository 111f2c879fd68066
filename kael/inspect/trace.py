"""The backward pass as rows, one a node in the order the engine runs them, and their formats.

The default format is the engine's own trace line. Rows know names and sub-expressions where a
recorder watched the forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from time import perf_counter
from typing import Any

import numpy as np

from kael import shapes
from kael.engine.hooks import trace_line
from kael.engine.node import Gradients, Node
from kael.errors import KaelError
from kael.inspect.graph import titles_of
from kael.inspect.numbers import array_text, as_json
from kael.inspect.recorder import Recorder, Where
from kael.inspect.table import columns
from kael.kernels import trace_norm as norm

Array = np.ndarray[Any, Any]

VANISHING = 1e-6
EXPLODING = 1e6
"""A gradient is marked where its root mean square is this far from that of the seed."""


class TraceRow:
    """One node of the walk and the gradient that arrived at it.

    Attributes
    ----------
    step : from 1
    node, name : the node's name; the name of its leaf or `let` value, else None
    arrived : the gradient, one array an output
    where : the sub-expression the node was recorded for
    seconds : what the node took
    mark : "vanishing", "exploding", "zero", "not finite", or None
    """

    __slots__ = ("arrived", "line", "mark", "name", "node", "seconds", "step", "where")

    def __init__(
        self,
        step: int,
        node: str,
        name: str | None,
        arrived: list[Array],
        where: Where | None,
        line: str,
    ) -> None:
        self.step = step
        self.node = node
        self.name = name
        self.arrived = arrived
        self.where = where
        self.line = line
        self.seconds = 0.0
        self.mark: str | None = None

    @property
    def shape(self) -> list[Any]:
        """The gradient's shape, or one an output."""
        parts = [list(part.shape) for part in self.arrived]
        return parts[0] if len(parts) == 1 else parts

    @property
    def norm(self) -> float:
        """The L2 norm over all that arrived."""
        norms = [norm(part) for part in self.arrived]
        return norms[0] if len(norms) == 1 else norm(np.array(norms))

    @property
    def values(self) -> Array:
        """All that arrived, flat."""
        return np.concatenate([part.ravel() for part in self.arrived])

    @property
    def expr(self) -> str | None:
        """The sub-expression as written."""
        return None if self.where is None else self.where.text


class Tracer:
    """A watch that collects the rows of one backward.

    `names` maps names to leaves and `let` values; `recorder` is what watched the forward pass.
    """

    def __init__(
        self, names: Mapping[str, Any] | None = None, recorder: Recorder | None = None
    ) -> None:
        self.rows: list[TraceRow] = []
        self._titles = titles_of(names or {})
        self._recorder = recorder
        self._started = 0.0

    def before(self, node: Node, upstream: Array) -> None:
        """Note what arrived at a node."""
        if node.owner is not node:
            return
        step = None if self._recorder is None else self._recorder.of.get(node)
        row = TraceRow(
            len(self.rows) + 1,
            node.name,
            self._titles.get(node),
            node.arrived(upstream),
            None if step is None else step.where,
            trace_line(node, upstream),
        )
        row.mark = mark_of(row, self.rows[0] if self.rows else row)
        self.rows.append(row)
        self._started = perf_counter()

    def after(self, node: Node, upstream: Array, gradients: Gradients) -> None:
        """Note how long the node took."""
        del upstream, gradients
        if node.owner is node:
            self.rows[-1].seconds = perf_counter() - self._started


def mark_of(row: TraceRow, first: TraceRow) -> str | None:
    """Return the word on a gradient that is not finite, zero, or far from the seed in size."""
    size, seed = row.norm, first.norm
    values = row.values
    if not np.isfinite(values).all():
        return "not finite"
    if size == 0:
        return "zero" if values.size and seed else None
    if seed == 0 or not np.isfinite(seed):
        return None
    ratio = (size / seed) * (first.values.size / values.size) ** 0.5
    return "vanishing" if ratio < VANISHING else "exploding" if ratio > EXPLODING else None


def selected(
    rows: Sequence[TraceRow], only: str | None = None, top: int | None = None
) -> list[TraceRow]:
    """Return the rows of some nodes, or the `top` largest by norm; order and step numbers stay.

    `only` is the name of a node (`MulBackward`, `Mul`), a leaf or a `let` value, or a glob.
    Raises `KaelError` where it names none of them.
    """
    chosen = list(rows)
    if only is not None:
        chosen = [row for row in rows if _matches(row, only)]
        if not chosen:
            known = sorted({row.node for row in rows} | {row.name for row in rows if row.name})
            raise KaelError(f"no node is named '{only}'; there are {', '.join(known)}")
    if top is not None and top < len(chosen):
        # NaN is the largest of all: who asks for the largest gradients wants to see it.
        by_size = sorted(chosen, key=lambda row: (not np.isnan(row.norm), -row.norm, row.step))
        chosen = sorted(by_size[:top], key=lambda row: row.step)
    return chosen


def _matches(row: TraceRow, pattern: str) -> bool:
    names = {row.node, row.node.removesuffix("Backward"), row.name}
    return any(name is not None and fnmatchcase(name, pattern) for name in names)


def lines(rows: Sequence[TraceRow], *, values: bool = False, marks: bool = False) -> list[str]:
    """Return the engine's line of each row, with the gradient itself or a mark where asked."""
    out = []
    for row in rows:
        line = row.line
        if values:
            line += " " + " ".join(array_text(part) for part in row.arrived)
        if marks and row.mark:
            line += f"  ({row.mark})"
        out.append(line)
    return out


HEAD = ("step", "node", "name", "expression", "at", "shape", "norm", "min", "max", "nan/inf", "ms")


def table(rows: Sequence[TraceRow], *, values: bool = False, times: bool = True) -> list[str]:
    """Return the rows as aligned columns, the head first."""
    named = any(row.name for row in rows)
    placed = any(row.where for row in rows)
    marked = any(row.mark for row in rows)
    hidden = set() if named else {"name"}
    hidden |= set() if placed else {"expression", "at"}
    hidden |= set() if times else {"ms"}
    head = [*HEAD, *(["mark"] if marked else []), *(["gradient"] if values else [])]
    body = [_cells(row) for row in rows]
    kept = [title for title in head if title not in hidden]
    return columns(kept, [[cells[title] for title in kept] for cells in body], _RIGHT)


_RIGHT = frozenset(("step", "norm", "min", "max", "nan/inf", "ms"))


def _cells(row: TraceRow) -> dict[str, str]:
    values = row.values
    finite = values[np.isfinite(values)]
    shape = row.shape
    return {
        "step": str(row.step),
        "node": row.node,
        "name": row.name or "",
        "expression": row.expr or "",
        "at": _position(row.where),
        "shape": ",".join(map(shapes.text, shape)) if _several(row) else shapes.text(shape),
        "norm": f"{row.norm:g}",
        "min": f"{finite.min():g}" if finite.size else "",
        "max": f"{finite.max():g}" if finite.size else "",
        "nan/inf": str(values.size - finite.size),
        "ms": f"{row.seconds * 1e3:.3f}",
        "mark": row.mark or "",
        "gradient": " ".join(array_text(part) for part in row.arrived),
    }


def _several(row: TraceRow) -> bool:
    return len(row.arrived) > 1


def _position(where: Where | None) -> str:
    if where is None or where.place.line is None:
        return ""
    column = where.place.column
    return f"{where.place.line}:{column}" if column is not None else str(where.place.line)


def records(rows: Sequence[TraceRow], *, values: bool = False) -> list[dict[str, Any]]:
    """Return the rows as JSON objects; times are left out, so that two runs are equal."""
    found = []
    for row in rows:
        record: dict[str, Any] = {
            "step": row.step,
            "node": row.node,
            "name": row.name,
            "shape": row.shape,
            "norm": as_json(row.norm),
            "expr": row.expr,
        }
        if row.mark:
            record["mark"] = row.mark
        if values:
            parts = [as_json(part) for part in row.arrived]
            record["value"] = parts[0] if len(parts) == 1 else parts
        found.append(record)
    return found
