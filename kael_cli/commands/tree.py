"""`kael tree`: the recorded graph as a text tree."""

from kael.inspect.dot import DotOptions
from kael.inspect.graph import Graph
from kael.inspect.tree import MOST_NODES, tree_text
from kael_cli.drawing import draw
from kael_cli.options import GraphOptions

OPTIONS = GraphOptions


def run(options: GraphOptions) -> int:
    """Print the graph as a tree, each shared node once."""

    def render(graph: Graph, shown: DotOptions) -> str:
        del shown
        return tree_text(graph, max_nodes=options.max_nodes, gradient_shapes=options.verbose)

    return draw(options, render, most=MOST_NODES)
