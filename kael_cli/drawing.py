"""What `dot` and `tree` share: one spec, its recorded graph, and the formats both can write."""

from collections.abc import Callable
from typing import Any

from kael.errors import KaelError
from kael.inspect.dot import DotOptions, mermaid_text, size_note
from kael.inspect.graph import Graph, graph_of
from kael.specs.model import Instance
from kael.specs.place import SpecError
from kael.specs.runner import Evaluated, require_graph
from kael_cli.options import GraphOptions
from kael_cli.output import Output
from kael_cli.showing import only_one, show


def draw(
    options: GraphOptions, render: Callable[[Graph], str | bytes], *, most: int | None = None
) -> int:
    """Write the graph of the one target as `render` has it, or as JSON or Mermaid.

    `most` is the size above which the rendering folds a graph by itself.
    """

    def text(instance: Instance, output: Output) -> None:
        graph = graph_for(instance, options)
        note = size_note(graph, options.max_nodes or most)
        if note:
            output.note(note)
        if options.mermaid:
            output.write(mermaid_text(graph, DotOptions(max_nodes=options.max_nodes)))
        else:
            output.write(render(graph))

    def row(instance: Instance) -> dict[str, Any]:
        graph = graph_for(instance, options)
        return DotOptions(max_nodes=options.max_nodes).fold(graph).as_json()

    return show(options, text, row, admit=only_one)


def graph_for(instance: Instance, options: GraphOptions) -> Graph:
    """Return the graph of an instance, its leaves and `let` values under their names."""
    require_graph(instance)
    evaluated = Evaluated(instance, options.seed or 0)
    try:
        return graph_of(evaluated.output, evaluated.names)
    except KaelError as error:
        message, _, detail = str(error).partition("\n")
        raise SpecError(message, evaluated.place, detail=detail or None) from error
