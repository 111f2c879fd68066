"""The graph as a text tree: every node once, a shared node marked where it is met again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kael import shapes
from kael.inspect.folding import fold
from kael.inspect.graph import Graph, GraphEdge, GraphNode, graph_of
from kael.tensors import Tensor

SEEN = " same node as above"

MOST_NODES = 500
"""How many nodes a tree shows unless told otherwise: a chain is as wide as it is long."""


def graph_tree(
    tensor: Tensor,
    names: Mapping[str, Any] | None = None,
    *,
    max_nodes: int | None = None,
    gradient_shapes: bool = False,
    titles: bool = False,
) -> str:
    """Return the graph recorded below `tensor` as a text tree.

    Leaves are named, and so is a `let` value that is used more than once; `titles` names every
    `let` value, `gradient_shapes` writes the shape that each node receives.

    Raises `KaelError` for a tensor that has no graph.
    """
    graph = graph_of(tensor, names)
    return tree_text(graph, max_nodes=max_nodes, gradient_shapes=gradient_shapes, titles=titles)


def tree_text(
    graph: Graph,
    *,
    max_nodes: int | None = None,
    gradient_shapes: bool = False,
    titles: bool = False,
) -> str:
    """Return a graph as a text tree, each node's children in the order of its inputs."""
    graph = fold(graph, MOST_NODES if max_nodes is None else max_nodes)
    outgoing = graph.outgoing()
    uses = Counter(edge.target for edge in graph.edges)
    lines: list[str] = []
    seen: set[GraphNode] = set()
    # Each entry: the node, its edge, the text before its branch, and whether it is the last child.
    pending: list[tuple[GraphNode, GraphEdge | None, str, bool]] = [
        (graph.nodes[0], None, "", True)
    ]
    while pending:
        node, edge, indent, last = pending.pop()
        branch = "" if edge is None else "└── " if last else "├── "
        named = titles or node.kind == "leaf" or uses[node] > 1
        label = " ".join((node.label if named else node.untitled).split())
        if gradient_shapes and edge is not None:
            label += f" {shapes.text(edge.shape)}"
        again = node in seen
        lines.append(f"{indent}{branch}{label}{SEEN if again else ''}")
        if again:
            continue
        seen.add(node)
        below = indent if edge is None else indent + ("    " if last else "│   ")
        children = outgoing[node]
        for index in range(len(children) - 1, -1, -1):
            child = children[index]
            pending.append((child.target, child, below, index == len(children) - 1))
    return "\n".join(lines) + "\n"
