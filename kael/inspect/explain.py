"""The worked example of a recorded forward pass: its table, its graph, and every backward step.

`explain` gives the rows as data; `text`, `markdown` and `document` write them. A terminal is not
known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kael.engine.backward import backward
from kael.engine.node import AccumulateGrad, Gradients, Node
from kael.inspect import table
from kael.inspect.graph import Graph, GraphEdge, GraphNode, graph_of
from kael.inspect.numbers import MOST_ELEMENTS, array_text, as_json
from kael.inspect.recorder import Names, Recorder
from kael.inspect.tree import tree_text
from kael.inspect.wording import formula, listed, local_rule, saved
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

CLAIM_TOLERANCE = (1e-8, 1e-6)
"""Absolute and relative: a claim and an analytic gradient are both exact."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """An input: its name, its value, and whether it requires a gradient."""

    name: str
    value: Array
    requires_grad: bool


@dataclass(frozen=True, slots=True)
class ForwardRow:
    """An operation of the forward pass; `node` is empty where nothing was recorded."""

    value: str
    formula: str
    result: Array
    node: str
    saves: str
    expr: str | None


@dataclass(frozen=True, slots=True)
class CountRow:
    """How many edges reach a node, and from which nodes."""

    id: str
    node: str
    count: int
    sources: list[str]


@dataclass(frozen=True, slots=True)
class Sent:
    """A gradient on its way: the local rule that gave it, its value, and who receives it."""

    rule: str
    value: Array
    target: str
    target_id: str


@dataclass(frozen=True, slots=True)
class BackwardRow:
    """One step: what arrived (one part a sender), what is sent, and the counts afterwards.

    A leaf sends nothing; `stored` is then the text of what it keeps.
    """

    step: int
    id: str
    node: str
    parts: list[Array]
    incoming: list[Array]
    sends: list[Sent]
    stored: str
    counts: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A derivative that somebody derived by hand: the input, the formula as text, its value."""

    name: str
    text: str
    value: Array


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A claim beside the gradient that the backward found."""

    name: str
    text: str
    claimed: Array
    gradient: Array | None
    holds: bool


@dataclass(slots=True)
class Explanation:
    """The worked example."""

    output: str
    graph: Graph
    tree: str
    seed: Array
    inputs: list[InputRow] = field(default_factory=list)
    forward: list[ForwardRow] = field(default_factory=list)
    counts: list[CountRow] = field(default_factory=list)
    backward: list[BackwardRow] = field(default_factory=list)
    checks: list[CheckRow] = field(default_factory=list)


class _Watch:
    """Keeps what arrives at each node and what it returns, in the shapes the edges ask for."""

    def __init__(self) -> None:
        self.arrived: dict[Node, list[Array]] = {}
        self.sent: dict[Node, list[Array | None]] = {}

    def before(self, node: Node, upstream: Array) -> None:
        self.arrived[node] = node.arrived(upstream)

    def after(self, node: Node, upstream: Array, gradients: Gradients) -> None:
        del upstream
        if node.owner is node:
            self.sent[node] = list(gradients)


def explain(
    recorder: Recorder,
    output: Tensor,
    names: Mapping[str, Any],
    *,
    inputs: Sequence[str] = (),
    upstream: Any = None,
    claims: Sequence[Claim] = (),
) -> Explanation:
    """Run the backward of a recorded forward pass and return every step of both.

    `names` maps names to inputs and `let` values; `inputs` says which are inputs (default: those
    that no operation made). `upstream` is the gradient of a non-scalar output. Leaves keep the
    gradients.

    Raises `KaelError` where the output has no graph, or the backward itself fails.
    """
    called = Names(names)
    given = list(inputs) or [
        name for name, tensor in called.tensors.items() if recorder.maker(tensor) is None
    ]
    title = _name_values(recorder, output, called)
    graph = graph_of(output, called.tensors)
    seed = np.ones(output.shape) if upstream is None else np.asarray(upstream)
    explanation = Explanation(title, graph, tree_text(graph), seed)
    explanation.inputs = [
        InputRow(name, called.tensors[name]._array.copy(), called.tensors[name].requires_grad)
        for name in given
        if name in called.tensors
    ]
    explanation.forward = _forward_rows(recorder, called)
    known = _Called(graph)
    explanation.counts = _count_rows(graph, known)
    watch = _Watch()
    rules = _rules(recorder, called)
    backward(output, upstream, watch=watch)
    explanation.backward = _backward_rows(graph, known, watch, rules)
    explanation.checks = [_checked(claim, called.tensors.get(claim.name)) for claim in claims]
    return explanation


def _name_values(recorder: Recorder, output: Tensor, called: Names) -> str:
    """Give every value a name: the output L, the others v1, v2, …; return the output's."""
    taken = set(called.tensors)
    title = called.of(output)
    if title is None:
        title = "L" if output.numel() == 1 and "L" not in taken else "output"
        called.add(title, output)
    number = 0
    for step in recorder.steps:
        if called.of(step.output) is None:
            number += 1
            while f"v{number}" in taken:
                number += 1
            called.add(f"v{number}", step.output)
    return title


def _forward_rows(recorder: Recorder, called: Names) -> list[ForwardRow]:
    return [
        ForwardRow(
            called.of(step.output) or "",
            formula(step, called),
            step.output._array.copy(),
            step.node_name or "",
            saved(step, called),
            None if step.where is None else step.where.text,
        )
        for step in recorder.steps
    ]


def _rules(recorder: Recorder, called: Names) -> dict[tuple[Node, int], str]:
    """Return the local rule of each input of each node: saved names are gone after the walk."""
    rules = {}
    for node, step in recorder.of.items():
        custom = not hasattr(step.op, "vjp_text")
        for index in range(len(node.inputs)):
            rules[node, index] = (
                f"{step.name}.backward(g)" if custom else local_rule(step, index, called)
            )
    return rules


class _Called:
    """Short names of nodes: `Tanh`, `x`; with the value's name where several share one."""

    def __init__(self, graph: Graph) -> None:
        self._twice = {
            name for name, count in Counter(node.name for node in graph.nodes).items() if count > 1
        }

    def short(self, node: GraphNode) -> str:
        if node.kind == "leaf":
            return node.title or node.label
        name = node.name.removesuffix("Backward")
        if node.name in self._twice:
            return f"{name} ({node.title})" if node.title else f"{name} {node.id}"
        return name

    def long(self, node: GraphNode) -> str:
        if node.kind == "leaf" or node.name in self._twice:
            return node.label
        return node.name


def _count_rows(graph: Graph, known: _Called) -> list[CountRow]:
    """Return the counts in the order in which a walk from the output meets the nodes."""
    outgoing = graph.outgoing()
    sources: dict[GraphNode, list[GraphNode]] = {}
    pending = [graph.nodes[0]]
    while pending:
        node = pending.pop()
        for edge in outgoing[node]:
            if edge.target not in sources:
                sources[edge.target] = []
                pending.append(edge.target)
            sources[edge.target].append(node)
    rows = []
    for node, found in sources.items():
        times = Counter(known.short(source) for source in found)
        texts = [f"{name}{' twice' if n == 2 else f' {n} times' if n > 2 else ''}"
                 for name, n in times.items()]  # fmt: skip
        named = node.kind == "leaf" and node.title
        label = f"{node.name} {node.title}" if named else known.long(node)
        rows.append(CountRow(node.id, label, len(found), texts))
    return rows


def _backward_rows(
    graph: Graph, known: _Called, watch: _Watch, rules: Mapping[tuple[Node, int], str]
) -> list[BackwardRow]:
    left = Counter(edge.target for edge in graph.edges)
    outgoing = graph.outgoing()
    parts: dict[GraphNode, list[Array]] = {node: [] for node in graph.nodes}
    rows = []
    for step, shown in enumerate(graph.nodes, start=1):
        node = shown.node
        places = [index for index, edge in enumerate(node.inputs) if edge is not None]
        edges: list[tuple[int, GraphEdge]] = list(zip(places, outgoing[shown], strict=True))
        sent = watch.sent.get(node, [])
        sends = []
        touched: dict[GraphNode, None] = {}
        for index, edge in edges:
            left[edge.target] -= 1
            touched[edge.target] = None
            value = sent[index] if index < len(sent) else None
            if value is not None:
                parts[edge.target].append(value)
                rule = rules.get((node, index), "g")
                sends.append(Sent(rule, value, known.short(edge.target), edge.target.id))
        rows.append(
            BackwardRow(
                step,
                shown.id,
                known.long(shown),
                parts[shown] if len(parts[shown]) > 1 and shown.kind != "function" else [],
                watch.arrived.get(node, []),
                sends,
                _stored(shown, watch.arrived.get(node, [])),
                [(known.short(target), left[target]) for target in touched],
            )
        )
    return rows


def _stored(shown: GraphNode, arrived: list[Array]) -> str:
    if not isinstance(shown.node, AccumulateGrad) or not arrived:
        return ""
    grad = shown.node.leaf.grad
    value = arrived[0] if grad is None else grad._array
    return f"{shown.title or 'leaf'}.grad = {cell_text(value)}"


def _checked(claim: Claim, tensor: Tensor | None) -> CheckRow:
    grad = None if tensor is None or tensor.grad is None else tensor.grad._array
    atol, rtol = CLAIM_TOLERANCE
    claimed = np.broadcast_to(claim.value, claim.value.shape if grad is None else grad.shape)
    found = np.zeros(claimed.shape) if grad is None else grad
    holds = bool(np.allclose(claimed, found, rtol=rtol, atol=atol, equal_nan=True))
    return CheckRow(claim.name, claim.text, claimed, grad, holds)


FORWARD = ("Value", "Formula", "Result", "Node recorded", "Saves")
COUNTS = ("Node", "Count")
BACKWARD = ("Step", "Node runs", "Incoming g", "Local rule", "Sends", "Counts after")
CHECKS = ("Input", "By hand", "Its value", "Gradient", "")


MOST_LISTED = 12
"""How many entries a cell lists: every row is as wide as the widest."""

MOST_IN_CELL = 6
"""How many elements of an array a cell writes out; a row has several arrays side by side."""


def some(texts: Sequence[str], most: int = MOST_LISTED) -> list[str]:
    """Return the first texts, and how many more there are.

    >>> some([str(n) for n in range(1500)])[-2:]
    ['11', '… (1488 more)']
    """
    if len(texts) <= most + 1:
        return list(texts)
    return [*texts[:most], f"… ({len(texts) - most} more)"]


def cell_text(array: Array) -> str:
    """Write an array as it stands in a table."""
    return array_text(array, MOST_IN_CELL)


def listed_in_cell(arrays: Sequence[Array]) -> int:
    """Return how many of some arrays a cell lists: as many as one of numbers has elements."""
    widest = max((array.size for array in arrays if array.size <= MOST_IN_CELL), default=1)
    return max(1, MOST_LISTED // max(1, widest))


def forward_cells(row: ForwardRow) -> list[str]:
    """Return the texts of a row of the forward table."""
    saves = row.saves if row.node else ""
    return [row.value, row.formula, cell_text(row.result), row.node or "none", saves]


def count_cells(row: CountRow) -> list[str]:
    """Return the texts of a dependency count."""
    sources = listed(some([f"from {source}" for source in row.sources]))
    return [row.node, f"{row.count} ({sources})"]


def backward_cells(row: BackwardRow) -> list[str]:
    """Return the texts of a backward step."""
    counts = [f"{name} {left}, {'waiting' if left else 'ready'}" for name, left in row.counts]
    return [
        str(row.step),
        row.node,
        incoming_text(row),
        "; ".join(some(list(dict.fromkeys(sent.rule for sent in row.sends)))),
        row.stored or "; ".join(sends_texts(row.sends)),
        "; ".join(some(counts)),
    ]


def incoming_text(row: BackwardRow) -> str:
    """Return what arrived, as a sum where several senders gave a part."""
    if not row.incoming:
        return "no gradient"
    whole = ", ".join(map(cell_text, row.incoming))
    if len(row.parts) > 1 and row.incoming[0].size <= MOST_IN_CELL:
        parts = some(list(map(cell_text, row.parts)), listed_in_cell(row.parts))
        return f"{' + '.join(parts)} = {whole}"
    return whole


def sends_texts(sends: Sequence[Sent]) -> list[str]:
    """Return one text a value sent; what goes to several nodes unchanged is written once."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for sent in sends:
        grouped.setdefault((sent.rule, cell_text(sent.value)), []).append(sent.target)
    texts = [
        f"{value} {' and '.join(some([f'to {target}' for target in targets]))}"
        for (_, value), targets in grouped.items()
    ]
    return some(texts, listed_in_cell([sent.value for sent in sends]))


def check_cells(row: CheckRow) -> list[str]:
    """Return the texts of a claim."""
    gradient = "none" if row.gradient is None else cell_text(row.gradient)
    verdict = "agrees" if row.holds else "differs"
    return [row.name, row.text, cell_text(np.asarray(row.claimed)), gradient, verdict]


Section = tuple[str, tuple[str, ...], list[list[str]]]


def sections(explanation: Explanation) -> list[Section]:
    """Return title, head and rows of each table, in order; the tree stands after the first."""
    title = explanation.output
    seed = array_text(explanation.seed)
    found: list[Section] = [
        ("Forward pass", FORWARD, [forward_cells(row) for row in explanation.forward]),
        ("Dependency counts", COUNTS, [count_cells(row) for row in explanation.counts]),
        (
            f"Backward pass: the seed is d{title}/d{title} = {seed}"
            if explanation.seed.size == 1
            else f"Backward pass: the upstream gradient of {title} is {seed}",
            BACKWARD,
            [backward_cells(row) for row in explanation.backward],
        ),
    ]
    if explanation.checks:
        found.append(("Check by hand", CHECKS, [check_cells(row) for row in explanation.checks]))
    return found


def text(explanation: Explanation) -> str:
    """Return the worked example as aligned text."""
    blocks = [_inputs_text(explanation.inputs)] if explanation.inputs else []
    for number, (title, head, rows) in enumerate(sections(explanation)):
        blocks.append("\n".join([title, *(f"  {line}" for line in table.columns(head, rows))]))
        if number == 0:
            tree = explanation.tree.splitlines()
            blocks.append("\n".join(["Graph", *(f"  {line}" for line in tree)]))
    return "\n\n".join(blocks) + "\n"


def _inputs_text(inputs: Sequence[InputRow]) -> str:
    lines = []
    for row in inputs:
        note = "" if row.requires_grad else "  (no gradient)"
        lines.append(f"  {row.name} = {array_text(row.value)}{note}")
    return "\n".join(["Inputs", *lines])


def markdown(explanation: Explanation, level: int = 2) -> str:
    """Return the worked example as Markdown."""
    mark = "#" * level
    blocks = []
    if explanation.inputs:
        rows = [
            [f"`{row.name}`", array_text(row.value), "yes" if row.requires_grad else "no"]
            for row in explanation.inputs
        ]
        columns = ("Input", "Value", "Gradient")
        blocks += [f"{mark} Inputs", "\n".join(table.markdown(columns, rows))]
    for number, (title, head, rows) in enumerate(sections(explanation)):
        blocks += [f"{mark} {title}", "\n".join(table.markdown(head, rows))]
        if number == 0:
            blocks += [f"{mark} Graph", f"```text\n{explanation.tree.rstrip()}\n```"]
    return "\n\n".join(blocks) + "\n"


def document(explanation: Explanation) -> dict[str, Any]:
    """Return the worked example as plain lists and dicts; large arrays as shape and summary."""
    return {
        **explanation.graph.as_json(),
        "output": explanation.output,
        "inputs": [
            {"name": row.name, "requires_grad": row.requires_grad, **_value(row.value)}
            for row in explanation.inputs
        ],
        "forward": [
            {
                "value_name": row.value,
                "formula": row.formula,
                **_value(row.result),
                "node": row.node or None,
                "saves": row.saves or None,
                "expr": row.expr,
            }
            for row in explanation.forward
        ],
        "counts": [
            {"id": row.id, "node": row.node, "count": row.count, "from": row.sources}
            for row in explanation.counts
        ],
        "steps": [_step(row) for row in explanation.backward],
        "checks": [
            {
                "input": row.name,
                "claim": row.text,
                "claimed": _value(np.asarray(row.claimed)),
                "gradient": None if row.gradient is None else _value(row.gradient),
                "holds": row.holds,
            }
            for row in explanation.checks
        ],
    }


def _step(row: BackwardRow) -> dict[str, Any]:
    return {
        "step": row.step,
        "id": row.id,
        "node": row.node,
        "incoming": [_value(part) for part in row.incoming],
        "sends": [
            {"to": sent.target_id, "rule": sent.rule, **_value(sent.value)} for sent in row.sends
        ],
        "stored": row.stored or None,
        "counts": [{"node": name, "count": left} for name, left in row.counts],
    }


def _value(array: Array) -> dict[str, Any]:
    small = array.size <= MOST_ELEMENTS
    shown = as_json(array) if small else None
    return {"shape": list(array.shape), "value": shown, "text": array_text(array)}
