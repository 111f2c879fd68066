"""Fewer nodes for the same graph: repeats become one node, what is left over one summary.

A loop records the same few nodes again and again. Such a run is shown once, each node marked with
how often it is repeated ("x 100"). If the drawing is still larger than asked, the nodes nearest to
the output stay, with the leaves while they are few, and one node tells what was left out.
"""

from __future__ import annotations

from collections import Counter

from kael.inspect.graph import Graph, GraphEdge, GraphNode

LONGEST_PERIOD = 64
FEWEST_REPEATS = 3
NAMES_LISTED = 6

Signature = tuple[object, ...]


def fold(graph: Graph, max_nodes: int) -> Graph:
    """Return a graph of at most `max_nodes` nodes; the same one if it is small enough."""
    if len(graph.nodes) <= max_nodes:
        return graph
    graph = fold_repeats(graph)
    return graph if len(graph.nodes) <= max_nodes else cut(graph, max_nodes)


def fold_repeats(graph: Graph) -> Graph:
    """Return the graph with every run of a repeated pattern shown once."""
    position = {node: index for index, node in enumerate(graph.nodes)}
    signatures = _signatures(graph, position)
    group = list(range(len(graph.nodes)))
    at = 0
    while at < len(group):
        period, length = _longest_run(signatures, at)
        for offset in range(length):
            group[at + offset] = at + offset % period
        at += max(length, 1)
    return _merged(graph, position, group)


def _signatures(graph: Graph, position: dict[GraphNode, int]) -> list[Signature]:
    targets: dict[GraphNode, list[object]] = {node: [] for node in graph.nodes}
    for edge in graph.edges:
        # A leaf that every repeat uses is far from some of them: only that it is a leaf counts.
        leaf = edge.target.kind == "leaf"
        step = "leaf" if leaf else position[edge.target] - position[edge.source]
        targets[edge.source].append((step, edge.shape))
    return [(node.name, str(node.shape), *targets[node]) for node in graph.nodes]


def _longest_run(signatures: list[Signature], at: int) -> tuple[int, int]:
    """Return the period and length of the run of repeats that starts here; length 0: none."""
    best_period, best_length = 1, 0
    total = len(signatures)
    for period in range(1, min(LONGEST_PERIOD, (total - at) // FEWEST_REPEATS) + 1):
        end = at + period
        while end < total and signatures[end] == signatures[end - period]:
            end += 1
        length = (end - at) // period * period
        if length >= FEWEST_REPEATS * period and length > best_length:
            best_period, best_length = period, length
    return best_period, best_length


def _merged(graph: Graph, position: dict[GraphNode, int], group: list[int]) -> Graph:
    members: dict[int, list[GraphNode]] = {}
    for index, head in enumerate(group):
        members.setdefault(head, []).append(graph.nodes[index])
    shown: dict[int, GraphNode] = {}
    for head, nodes in members.items():
        first = nodes[0]
        engine_nodes = tuple(node for folded in nodes for node in folded.nodes)
        shown[head] = GraphNode(
            f"n{len(shown)}", first.name, _titles(nodes), first.shape, first.kind, engine_nodes
        )
    edges: dict[tuple[int, int, tuple[int, ...]], GraphEdge] = {}
    plain: list[GraphEdge] = []
    for edge in graph.edges:
        source, target = position[edge.source], position[edge.target]
        heads = group[source], group[target]
        made = GraphEdge(shown[heads[0]], shown[heads[1]], edge.shape)
        if heads == (source, target) and len(members[source]) == 1 == len(members[target]):
            plain.append(made)
        elif heads[0] < heads[1]:
            edges.setdefault((*heads, edge.shape), made)
        # What is left leads from one repeat to the next: "x 100" says it.
    order = {node.id: index for index, node in enumerate(shown.values())}
    every = [*plain, *edges.values()]
    every.sort(key=lambda edge: order[edge.source.id])
    return Graph(list(shown.values()), every)


def _titles(nodes: list[GraphNode]) -> str | None:
    titles = [node.title for node in nodes if node.title is not None]
    if len(titles) <= NAMES_LISTED:
        return ", ".join(titles) or None
    return f"{titles[0]}, {titles[1]}, … {titles[-1]}"


def cut(graph: Graph, max_nodes: int) -> Graph:
    """Return the nodes nearest to the output, the leaves if they are few, and one summary."""
    depth = _depths(graph)
    leaves = [node for node in graph.nodes if node.kind == "leaf"]
    kept = set(leaves) if len(leaves) <= max_nodes // 2 else set()
    for node in sorted(graph.nodes, key=lambda node: depth[node]):
        if len(kept) >= max_nodes - 1:
            break
        kept.add(node)
    folded = [node for node in graph.nodes if node not in kept]
    summary = GraphNode(
        "", _summary(folded), None, [], "folded", tuple(n for f in folded for n in f.nodes)
    )
    shown = {node: node if node in kept else summary for node in graph.nodes}
    nodes = [node for node in graph.nodes if node in kept and node.kind != "leaf"]
    nodes.append(summary)
    nodes += [node for node in graph.nodes if node in kept and node.kind == "leaf"]
    renamed = {
        node: GraphNode(f"n{i}", node.name, node.title, node.shape, node.kind, node.nodes)
        for i, node in enumerate(nodes)
    }
    edges: list[GraphEdge] = []
    known: set[tuple[str, str, tuple[int, ...]]] = set()
    for edge in graph.edges:
        source, target = renamed[shown[edge.source]], renamed[shown[edge.target]]
        if "folded" in (source.kind, target.kind):
            key = (source.id, target.id, edge.shape)
            if source is target or key in known:
                continue
            known.add(key)
        edges.append(GraphEdge(source, target, edge.shape))
    return Graph(list(renamed.values()), edges)


def _depths(graph: Graph) -> dict[GraphNode, int]:
    depth = dict.fromkeys(graph.nodes, len(graph.nodes))
    depth[graph.nodes[0]] = 0
    outgoing = graph.outgoing()
    for node in graph.nodes:
        for edge in outgoing[node]:
            depth[edge.target] = min(depth[edge.target], depth[node] + 1)
    return depth


def _summary(folded: list[GraphNode]) -> str:
    counts: Counter[str] = Counter()
    for node in folded:
        counts[node.name] += len(node.nodes)
    total = counts.total()
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    text = ", ".join(f"{name} x {count}" for name, count in listed[:NAMES_LISTED])
    more = f", {len(listed) - NAMES_LISTED} more kinds" if len(listed) > NAMES_LISTED else ""
    return f"{total} more nodes: {text}{more}"
