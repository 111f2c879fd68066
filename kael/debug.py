"""Looking at a backward: the trace, anomaly detection, and the recorded graph as DOT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kael.engine.hooks import set_anomaly_detection, set_backward_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kael.tensors import Tensor

__all__ = ["autograd_graph_dot", "set_anomaly_detection", "set_backward_trace"]


def autograd_graph_dot(tensor: Tensor, names: Mapping[str, Tensor] | None = None) -> str:
    """Return the graph recorded below `tensor` in Graphviz's DOT, gradient shapes on the edges.

    `names` gives leaves their labels. Two runs give the same text.
    """
    from kael.inspect import dot

    return dot.graph_dot(tensor, names)
