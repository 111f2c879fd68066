"""The recorded graph as data: nodes with stable ids, edges with gradient shapes, people's names.

How it is drawn is not known here. The walk uses an explicit stack and visits the nodes in the
order the engine runs them, so ids count that order and two runs give the same ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from kael.engine.backward import count_shared
from kael.engine.node import AccumulateGrad, FunctionNode, Node, gradient_edge
from kael.errors import KaelError, KaelTypeError
from kael.tensors import Tensor

Kind = Literal["leaf", "operation", "function", "folded"]
Shape = tuple[int, ...]


class GraphNode:
    """One node of a drawing; after folding it may stand for many nodes of the graph.

    Attributes
    ----------
    id : `n0`, `n1`, … in the order of the backward walk
    name : the node's name (`MulBackward`)
    title : the name of the leaf, or of the `let` value it computes; None without one
    shape : the shape of the gradient that arrives (a list of shapes for several outputs)
    nodes : the engine's nodes it stands for, the first of them representative
    """

    __slots__ = ("id", "kind", "name", "nodes", "shape", "title")

    def __init__(
        self,
        id: str,
        name: str,
        title: str | None,
        shape: list[Any],
        kind: Kind,
        nodes: tuple[Node, ...],
    ) -> None:
        self.id = id
        self.name = name
        self.title = title
        self.shape = shape
        self.kind = kind
        self.nodes = nodes

    @property
    def node(self) -> Node:
        """The engine's node it shows."""
        return self.nodes[0]

    @property
    def label(self) -> str:
        """What a drawing shows: the name, the title, and how often it is repeated."""
        return self.repeated(self.name if self.title is None else f"{self.name} ({self.title})")

    @property
    def untitled(self) -> str:
        """The label without the title."""
        return self.repeated(self.name)

    def repeated(self, text: str) -> str:
        """Return a text with how often the node is repeated."""
        repeats = len(self.nodes)
        return text if repeats == 1 or self.kind == "folded" else f"{text} x {repeats}"

    def __repr__(self) -> str:
        return f"<{self.id} {self.label}>"


class GraphEdge:
    """An edge from a node to the node that receives the gradient of one of its inputs."""

    __slots__ = ("shape", "source", "target")

    def __init__(self, source: GraphNode, target: GraphNode, shape: Shape) -> None:
        self.source = source
        self.target = target
        self.shape = shape

    def __repr__(self) -> str:
        return f"<{self.source.id} -> {self.target.id} {list(self.shape)}>"


class Graph:
    """Nodes in the order of the backward walk, and the edges between them."""

    __slots__ = ("edges", "nodes", "of")

    def __init__(self, nodes: list[GraphNode], edges: list[GraphEdge]) -> None:
        self.nodes = nodes
        self.edges = edges
        self.of: dict[Node, GraphNode] = {node: shown for shown in nodes for node in shown.nodes}

    @property
    def size(self) -> int:
        """How many nodes the engine has; folding does not change it."""
        return len(self.of)

    def outgoing(self) -> dict[GraphNode, list[GraphEdge]]:
        """Return each node's edges in the order of its inputs."""
        outgoing: dict[GraphNode, list[GraphEdge]] = {node: [] for node in self.nodes}
        for edge in self.edges:
            outgoing[edge.source].append(edge)
        return outgoing

    def as_json(self) -> dict[str, Any]:
        """Return the nodes and edges as plain lists and dicts."""
        return {
            "nodes": [
                {"id": n.id, "name": n.name, "label": n.label, "shape": n.shape} for n in self.nodes
            ],
            "edges": [
                {"from": e.source.id, "to": e.target.id, "shape": list(e.shape)} for e in self.edges
            ],
        }


def graph_of(tensor: Tensor, names: Mapping[str, Any] | None = None) -> Graph:
    """Return the graph recorded below `tensor`.

    `names` maps names to leaves and to intermediate tensors (a list of tensors names each of
    them `name[0]`, `name[1]`, …); other values are passed over. A leaf gives its one accumulator.

    Raises `KaelError` for a tensor that has no graph.
    """
    if not isinstance(tensor, Tensor):
        raise KaelTypeError(f"a graph is recorded below a tensor, not {type(tensor).__name__}")
    start = gradient_edge(tensor)
    if start is None:
        raise KaelError(
            "there is no graph: the tensor does not require grad\n"
            "no input required a gradient, or the forward pass ran without recording"
        )
    titles = titles_of(names or {})
    shown: dict[Node, GraphNode] = {}
    for node in walk_order(start):
        if node.owner is node:
            title = titles.get(node)
            shown[node] = GraphNode(
                f"n{len(shown)}", node.name, title, shape_of(node), kind_of(node), (node,)
            )
    edges = [
        GraphEdge(graph_node, shown[edge.owner], edge.shape)
        for node, graph_node in shown.items()
        for edge in node.inputs
        if edge is not None
    ]
    return Graph(list(shown.values()), edges)


def walk_order(start: Node) -> list[Node]:
    """Return every node below `start` in the order the engine runs them."""
    waiting = count_shared(start)
    order: list[Node] = []
    ready = [start]
    while ready:
        node = ready.pop()
        order.append(node)
        for edge in node.inputs:
            if edge is not None:
                waiting[edge] = waiting.get(edge, 1) - 1
                if not waiting[edge]:
                    ready.append(edge)
    return order


def titles_of(names: Mapping[str, Any]) -> dict[Node, str]:
    """Return the first name of each node that has one."""
    titles: dict[Node, str] = {}
    for name, tensor in named_tensors(names):
        if tensor.requires_grad:
            node = gradient_edge(tensor)
            assert node is not None
            titles.setdefault(node.owner, name)
    return titles


def named_tensors(names: Mapping[str, Any]) -> Iterable[tuple[str, Tensor]]:
    """Yield each name with its tensor; the tensors of a list are `name[0]`, `name[1]`, …"""
    for name, value in names.items():
        if isinstance(value, Tensor):
            yield str(name), value
        elif isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                if isinstance(item, Tensor):
                    yield f"{name}[{index}]", item


def shape_of(node: Node) -> list[Any]:
    """Return the shape of the gradient that arrives at a node, or one shape an output."""
    outputs = getattr(node, "outputs", None)
    if outputs is not None and len(outputs) > 1:
        return [list(shape) for shape, _ in outputs]
    return list(node.shape)


def kind_of(node: Node) -> Kind:
    """Tell leaves, operations and hand-written functions apart."""
    if isinstance(node, AccumulateGrad):
        return "leaf"
    return "operation" if isinstance(node, FunctionNode) else "function"
