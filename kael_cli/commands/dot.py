"""`kael dot`: the recorded graph for Graphviz."""

import os

from kael.errors import KaelError
from kael.inspect.dot import FORMATS, DotOptions, dot_text, rendered
from kael.inspect.graph import Graph
from kael_cli.drawing import draw
from kael_cli.exits import CommandError
from kael_cli.options import GraphOptions

OPTIONS = GraphOptions


def run(options: GraphOptions) -> int:
    """Print the graph as DOT text, or draw it where `-o` names a picture."""
    suffix = os.path.splitext(options.output or "")[1].lower().lstrip(".")

    def render(graph: Graph) -> str | bytes:
        text = dot_text(graph, DotOptions(max_nodes=options.max_nodes))
        if suffix not in FORMATS:
            return text
        try:
            return rendered(text, suffix)
        except KaelError as error:
            raise CommandError(str(error)) from error

    return draw(options, render)
