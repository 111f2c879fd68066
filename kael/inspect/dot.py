"""The graph as Graphviz DOT, rendered by Graphviz, or as Mermaid for Markdown pages.

People's text stands in quoted labels only; ids are counted. So any name can be drawn, and the
same graph gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kael import shapes
from kael.engine.node import AccumulateGrad, Gradients, Node
from kael.errors import KaelError, KaelValueError
from kael.inspect.folding import fold
from kael.inspect.graph import Graph, GraphNode, graph_of
from kael.inspect.numbers import array_text, as_json
from kael.inspect.recorder import Recorder
from kael.kernels import trace_norm as norm
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

MANY_NODES = 1000
"""Above this many nodes a drawing is slow to lay out and hard to read."""

FORMATS = ("svg", "png", "pdf")

_FILL = {"leaf": "#d5e8d4", "operation": "#ffffff", "function": "#fff2cc", "folded": "#eeeeee"}
_SHAPE = {"leaf": "ellipse", "folded": "note"}
_MARKED = "#f8cecc"
_MERMAID_ENTITIES = {  # the first one's own sign occurs in all of them
    "#": "#35;",
    "&": "#38;",
    '"': "#quot;",
    "<": "#lt;",
    ">": "#gt;",
    "\\": "#92;",
}


class DotOptions:
    """What a drawing shows beside names and shapes.

    Attributes
    ----------
    values, gradients : arrays to write into the nodes: what a node computed, and what arrived
    norms : on the edges, the norm of the gradient that arrived at the target
    marked : nodes drawn as failing, each with a word on why; those whose value or gradient is not
        finite are marked without being listed
    colors : fill nodes by kind
    clusters : draw a box around what a `let` name computes, where that is several nodes
    max_nodes : fold repeats, then cut, above this many nodes
    """

    __slots__ = ("clusters", "colors", "gradients", "marked", "max_nodes", "norms", "values")

    def __init__(
        self,
        *,
        values: Mapping[Node, Array] | None = None,
        gradients: Mapping[Node, Array] | None = None,
        norms: Mapping[Node, Array] | None = None,
        marked: Mapping[Node, str] | None = None,
        colors: bool = True,
        clusters: bool = True,
        max_nodes: int | None = None,
    ) -> None:
        if max_nodes is not None and max_nodes < 1:
            raise KaelValueError(f"max_nodes must be at least 1, got {max_nodes}")
        self.values = values or {}
        self.gradients = gradients or {}
        self.norms = norms or {}
        self.marked = marked or {}
        self.colors = colors
        self.clusters = clusters
        self.max_nodes = max_nodes

    def fold(self, graph: Graph) -> Graph:
        """Return the graph at the size asked for."""
        return graph if self.max_nodes is None else fold(graph, self.max_nodes)

    def lines(self, node: GraphNode) -> list[str]:
        """Return the lines of text inside a node."""
        lines = [node.label]
        if len(node.nodes) == 1:
            for title, arrays in (("value", self.values), ("gradient", self.gradients)):
                if node.node in arrays:
                    lines.append(f"{title} {array_text(arrays[node.node])}")
        mark = self.mark(node)
        return [*lines, mark] if mark else lines

    def mark(self, node: GraphNode) -> str | None:
        """Return the word on a node that fails or is not finite."""
        for own in node.nodes:
            if own in self.marked:
                return self.marked[own]
        for title, arrays in (
            ("value", self.values),
            ("gradient", self.gradients),
            ("gradient", self.norms),
        ):
            for own in node.nodes:
                if own in arrays and not np.isfinite(arrays[own]).all():
                    return f"{title} not finite"
        return None

    def as_json(self, graph: Graph) -> dict[str, Any]:
        """Return the graph as plain lists and dicts, with what was asked for beside the names."""
        graph = self.fold(graph)
        document = graph.as_json()
        for row, node in zip(document["nodes"], graph.nodes, strict=True):
            for key, arrays in (("value", self.values), ("gradient", self.gradients)):
                if arrays:
                    known = len(node.nodes) == 1 and node.node in arrays
                    row[key] = as_json(arrays[node.node]) if known else None
        for row, edge in zip(document["edges"], graph.edges, strict=True):
            if self.norms:
                known = len(edge.target.nodes) == 1 and edge.target.node in self.norms
                row["norm"] = as_json(float(norm(self.norms[edge.target.node]))) if known else None
        return document

    def edge(self, target: GraphNode, shape: tuple[int, ...]) -> str:
        """Return the text on an edge: the gradient's shape, and its norm if asked."""
        text = shapes.text(shape)
        if len(target.nodes) == 1 and target.node in self.norms:
            text += f" norm={norm(self.norms[target.node]):g}"
        return text


_PLAIN = DotOptions()


class Arrivals:
    """A watch of a backward that keeps the gradient that arrived at each node.

    `each` has it as an array, for nodes of one output; `joined` has all outputs of a node in one
    flat array, whose norm is that of the trace.
    """

    def __init__(self) -> None:
        self.each: dict[Node, Array] = {}
        self.joined: dict[Node, Array] = {}

    def before(self, node: Node, upstream: Array) -> None:
        """Keep what arrived at a node."""
        if node.owner is not node:
            return
        parts = node.arrived(upstream)
        if len(parts) == 1:
            self.each[node] = np.array(parts[0])
        self.joined[node] = np.concatenate([part.ravel() for part in parts])

    def after(self, node: Node, upstream: Array, gradients: Gradients) -> None:
        """Do nothing: the next node shows what was passed on."""


def computed(graph: Graph, recorder: Recorder) -> dict[Node, Array]:
    """Return what each node of one output computed in the forward pass, and the leaves' values."""
    values: dict[Node, Array] = {}
    for node in graph.of:
        step = recorder.of.get(node)
        if isinstance(node, AccumulateGrad):
            values[node] = node.leaf.numpy()
        elif step is not None and len(getattr(node, "outputs", "1")) == 1:
            values[node] = step.output.numpy()
    return values


def graph_dot(
    tensor: Tensor, names: Mapping[str, Any] | None = None, options: DotOptions = _PLAIN
) -> str:
    """Return the graph recorded below `tensor` as DOT text.

    Edges point from a node to the node that receives its gradient and carry that gradient's
    shape; a leaf used twice is one node with two edges into it.

    Raises `KaelError` for a tensor that has no graph.
    """
    return dot_text(graph_of(tensor, names), options)


def dot_text(graph: Graph, options: DotOptions = _PLAIN) -> str:
    """Return a graph as DOT text."""
    graph = options.fold(graph)
    clusters = clusters_of(graph) if options.clusters else {}
    lines = [
        "digraph kael {",
        "  rankdir=TB;",
        '  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="Helvetica"];',
        '  edge [fontname="Helvetica", fontsize=10];',
    ]
    for number, (title, members) in enumerate(clusters.items()):
        lines += [
            f"  subgraph cluster_{number} {{",
            f"    label={quoted(title)};",
            '    style="rounded,dashed"; fontname="Helvetica";',
            *(f"    {node.id};" for node in members),
            "  }",
        ]
    lines += [f"  {node.id} [{_attributes(node, options)}];" for node in graph.nodes]
    lines += [
        f"  {edge.source.id} -> {edge.target.id} "
        f"[label={quoted(options.edge(edge.target, edge.shape))}];"
        for edge in graph.edges
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _attributes(node: GraphNode, options: DotOptions) -> str:
    attributes = [f"label={quoted(*options.lines(node))}"]
    if node.kind in _SHAPE:
        attributes.append(f"shape={_SHAPE[node.kind]}")
    if options.mark(node):
        attributes += [f'fillcolor="{_MARKED}"', 'color="#b85450"', "penwidth=2"]
    elif options.colors and node.kind != "operation":
        attributes.append(f'fillcolor="{_FILL[node.kind]}"')
    return ", ".join(attributes)


def quoted(*lines: str) -> str:
    r"""Return lines of text as one quoted DOT string.

    >>> print(quoted('c"d', "e\\f"))
    "c\"d\ne\\f"
    """
    text = "\n".join(lines).replace("\\", "\\\\").replace('"', '\\"').replace("\r", "")
    text = text.replace("\n", "\\n")
    return '"' + "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text) + '"'


def clusters_of(graph: Graph) -> dict[str, list[GraphNode]]:
    """Return the nodes that only one `let` value needs, by its name, where they are several.

    The node of a `let` value opens a cluster; a node all of whose consumers are in one cluster
    belongs to it. Leaves stay outside.
    """
    home: dict[GraphNode, str | None] = {}
    consumers: dict[GraphNode, list[GraphNode]] = {node: [] for node in graph.nodes}
    for edge in graph.edges:
        consumers[edge.target].append(edge.source)
    for node in graph.nodes:
        homes = {home[consumer] for consumer in consumers[node]}
        if node.kind in ("leaf", "folded"):
            home[node] = None
        elif node.title is not None:
            home[node] = node.title
        else:
            home[node] = homes.pop() if len(homes) == 1 else None
    clusters: dict[str, list[GraphNode]] = {}
    for node, title in home.items():
        if title is not None:
            clusters.setdefault(title, []).append(node)
    return {title: nodes for title, nodes in clusters.items() if len(nodes) > 1}


def mermaid_text(graph: Graph, options: DotOptions = _PLAIN) -> str:
    """Return a graph as a Mermaid flowchart, which Markdown pages draw by themselves."""
    graph = options.fold(graph)
    lines = ["flowchart TD"]
    for node in graph.nodes:
        text = "<br>".join(map(_mermaid_quoted, options.lines(node)))
        lines.append(
            f'  {node.id}(["{text}"])' if node.kind == "leaf" else f'  {node.id}["{text}"]'
        )
    for edge in graph.edges:
        text = _mermaid_quoted(options.edge(edge.target, edge.shape))
        lines.append(f'  {edge.source.id} -->|"{text}"| {edge.target.id}')
    marked = [node.id for node in graph.nodes if options.mark(node)]
    leaves = [node.id for node in graph.nodes if node.kind == "leaf" and node.id not in marked]
    if options.colors and leaves:
        lines += [f"  classDef leaf fill:{_FILL['leaf']}", f"  class {','.join(leaves)} leaf"]
    if marked:
        lines += [f"  classDef marked fill:{_MARKED}", f"  class {','.join(marked)} marked"]
    return "\n".join(lines) + "\n"


def _mermaid_quoted(text: str) -> str:
    for char, entity in (
        ("#", "#35;"),
        ("&", "#38;"),
        ('"', "#quot;"),
        ("<", "#lt;"),
        (">", "#gt;"),
    ):
        text = text.replace(char, entity)
    text = text.replace("\r", "").replace("\n", "<br>").replace("\\", "#92;")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def size_note(graph: Graph, max_nodes: int | None = None) -> str | None:
    """Return a word on a graph too large to be read, or None."""
    if graph.size <= MANY_NODES or (max_nodes is not None and max_nodes <= MANY_NODES):
        return None
    return (
        f"the graph has {graph.size:,} nodes, too many to read; "
        "--max-nodes 100 folds repeats and cuts the rest"
    )


def rendered(dot: str, format: str) -> bytes:
    """Return DOT text drawn by Graphviz as svg, png or pdf.

    Raises `KaelError` where Graphviz is not installed or fails, and `KaelValueError` for another
    format.
    """
    if format not in FORMATS:
        raise KaelValueError(f"a graph is drawn as {', '.join(FORMATS)}, not {format!r}")
    import os
    import tempfile

    import pydot

    with tempfile.TemporaryDirectory() as folder:
        source, drawing = os.path.join(folder, "graph.dot"), os.path.join(folder, "graph.out")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(dot)
        arguments = [f"-T{format}", "-o", drawing, source]
        try:
            _, errors, process = pydot.call_graphviz("dot", arguments, folder)
        except FileNotFoundError:
            raise KaelError(
                f"Graphviz is not installed: its program 'dot' draws the {format}\n"
                "install it with 'apt install graphviz', 'brew install graphviz' or "
                "'winget install graphviz',\nor write the DOT text itself to a file.dot"
            ) from None
        if process.returncode != 0 or not os.path.exists(drawing):
            # pydot annotates text and gives bytes.
            given: Any = errors
            said = given.decode(errors="replace") if isinstance(given, bytes) else given
            raise KaelError(f"Graphviz could not draw the graph: {said.strip()}")
        with open(drawing, "rb") as stream:
            return stream.read()
