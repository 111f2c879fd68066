"""`kael dot`: the recorded graph for Graphviz."""

import os

from kael.errors import KaelError
from kael.inspect.dot import FORMATS, dot_text, rendered
from kael.inspect.dot import DotOptions as Shown
from kael.inspect.graph import Graph
from kael_cli.drawing import draw
from kael_cli.exits import CommandError
from kael_cli.options import DotOptions

OPTIONS = DotOptions

OTHER_PICTURES = ("bmp", "eps", "gif", "jpeg", "jpg", "ps", "tif", "tiff", "webp")
"""Endings under which nobody wants to find DOT text."""


def run(options: DotOptions) -> int:
    """Print the graph as DOT text, or draw it where `-o` names a picture."""
    suffix = os.path.splitext(options.output or "")[1].lower().lstrip(".")
    picture = suffix in (*FORMATS, *OTHER_PICTURES)
    if picture and (options.mermaid or options.format == "json"):
        asked = "--mermaid" if options.mermaid else "--format json"
        raise CommandError(f"{asked} writes text, and '{options.output}' is the name of a picture")

    def render(graph: Graph, shown: Shown) -> str | bytes:
        text = dot_text(graph, shown)
        if not picture:
            return text
        try:
            return rendered(text, suffix)
        except KaelError as error:
            raise CommandError(str(error)) from error

    return draw(options, render)
