"""What `dot` and `tree` share: one spec, its recorded graph, and the formats both can write."""

from collections.abc import Callable
from typing import Any

from kael.errors import KaelError
from kael.inspect.dot import Arrivals, DotOptions, computed, mermaid_text, size_note
from kael.inspect.graph import Graph, graph_of
from kael.specs.model import Instance
from kael.specs.place import SpecError
from kael.specs.runner import Evaluated, recorded, require_graph
from kael_cli.options import GraphOptions
from kael_cli.output import Output
from kael_cli.showing import only_one, show

Render = Callable[[Graph, DotOptions], str | bytes]


def draw(options: GraphOptions, render: Render, *, most: int | None = None) -> int:
    """Write the graph of the one target as `render` has it, or as JSON or Mermaid.

    `most` is the size above which the rendering folds a graph by itself.
    """

    def text(instance: Instance, output: Output) -> None:
        graph, shown = drawn(instance, options)
        note = size_note(graph, options.max_nodes or most)
        if note:
            output.note(note)
        output.write((mermaid_text if options.mermaid else render)(graph, shown))

    def row(instance: Instance) -> dict[str, Any]:
        graph, shown = drawn(instance, options)
        return shown.as_json(graph)

    return show(options, text, row, {"nodes": [], "edges": []}, admit=only_one)


def drawn(instance: Instance, options: GraphOptions) -> tuple[Graph, DotOptions]:
    """Return the graph of an instance, leaves and `let` values named, and what it is to show.

    Only what is asked for is computed: a plain graph needs no backward.
    """
    require_graph(instance)
    values, grads, norms = (getattr(options, name, False) for name in ("values", "grads", "norms"))
    evaluated = (recorded if values else Evaluated)(instance, options.seed or 0)
    graph = graph_for(evaluated)
    arrivals = Arrivals()
    if grads or norms:
        evaluated.backward(arrivals, ones=True)
    recorder = evaluated.recorder
    return graph, DotOptions(
        values=None if recorder is None else computed(graph, recorder),
        gradients=arrivals.each if grads else None,
        norms=arrivals.joined if norms else None,
        max_nodes=options.max_nodes,
    )


def graph_for(evaluated: Evaluated) -> Graph:
    """Return the graph that was recorded, its leaves and `let` values under their names."""
    try:
        return graph_of(evaluated.output, evaluated.names)
    except KaelError as error:
        message, _, detail = str(error).partition("\n")
        raise SpecError(message, evaluated.place, detail=detail or None) from error
