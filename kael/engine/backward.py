"""The walk: from a root to the leaves, each node once, when its gradient is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kael import shapes
from kael.engine.grad_mode import state
from kael.engine.hooks import Watch, watch_of_this_backward
from kael.engine.node import AccumulateGrad, Array, Node, accumulate, gradient_edge
from kael.errors import KaelError, KaelTypeError, KaelValueError
from kael.tensors import Tensor, as_array

_ndarray = np.ndarray


def backward(
    root: Tensor,
    gradient: Any = None,
    retain_graph: bool = False,
    *,
    watch: Watch | None = None,
    into: dict[Tensor, Array] | None = None,
) -> None:
    """Add the gradient of `root` with respect to every leaf into the leaves' `grad`.

    `gradient` is the upstream gradient, with the root's shape (a tensor, array, list or number);
    a root of one element needs none. Unless `retain_graph`, saved values are freed node by node,
    and a second backward through the same graph is an error. `watch` sees each node run.
    With `into` the leaves' own `grad` is left alone: their gradients are put there.

    Raises `KaelError` when the root requires no gradient or a node was released, and
    `KaelValueError` for a gradient of the wrong shape.
    """
    if not isinstance(root, Tensor):
        raise KaelTypeError(f"backward needs a tensor, got {type(root).__name__}")
    if not root.requires_grad:
        raise KaelError(
            "backward needs a tensor that requires grad\n"
            "no input required a gradient, or the forward pass ran without recording"
        )
    seed = seed_gradient(root, gradient)
    start = gradient_edge(root)
    assert start is not None
    here = state.here
    recording, here.grad_enabled = here.grad_enabled, False
    try:
        walk(start, seed, retain_graph, watch_of_this_backward(watch), into)
    finally:
        here.grad_enabled = recording


def seed_gradient(root: Tensor, gradient: Any) -> Array:
    """Return the gradient the walk starts with: ones for a scalar, else the caller's."""
    array = root._array
    if gradient is None:
        if array.size != 1:
            raise KaelValueError(
                "grad can be implicitly created only for scalar outputs, got shape "
                f"{shapes.text(array.shape)}"
            )
        return np.array(1, array.dtype, ndmin=array.ndim)
    if isinstance(gradient, bool):
        raise KaelTypeError(
            f"backward({gradient}) is ambiguous: the first argument is the gradient; "
            f"write backward(retain_graph={gradient})"
        )
    given = gradient._array if isinstance(gradient, Tensor) else as_array(gradient)
    if given.shape != array.shape:
        raise KaelValueError(
            f"gradient shape {shapes.text(given.shape)} does not match output shape "
            f"{shapes.text(array.shape)}"
        )
    return given.astype(array.dtype, copy=False)


def count_shared(start: Node) -> dict[Node, int]:
    """Return how many edges reach each node that more than one reaches, below `start`."""
    seen: set[Node] = set()
    shared: dict[Node, int] = {}
    pending = [start]
    while pending:
        edges: Any = pending.pop().edges
        while edges.__class__ is not tuple:  # down a chain
            if edges in seen:
                shared[edges] = shared.get(edges, 1) + 1
                break
            seen.add(edges)
            if edges.__class__ is AccumulateGrad:
                break
            edges = edges.edges
        else:
            for edge in edges:
                if edge in seen:
                    shared[edge] = shared.get(edge, 1) + 1
                elif edge is not None:
                    seen.add(edge)
                    if edge.__class__ is not AccumulateGrad:  # which has no edges
                        pending.append(edge)
    return shared


# One guard for the whole walk: formulas meet 1/0 and inf - inf without a warning.
@np.errstate(all="ignore")
def walk(
    start: Node,
    seed: Array,
    retain_graph: bool,
    watch: Watch | None,
    into: dict[Tensor, Array] | None,
) -> None:
    """Run every node below `start` once all gradients of its output have arrived."""
    # For each node that several edges reach: how many are still to come, what has come, and whether
    # that is a sum of the walk's own.
    waiting: dict[Node, list[Any]] = {
        shared: [count, None, False] for shared, count in count_shared(start).items()
    }
    ready: list[tuple[Node, Any]] = []
    node: Node = start
    upstream: Any = seed
    while True:
        gradients: tuple[Any, ...]
        if node.__class__ is AccumulateGrad:
            # Leaves apart: Python reads an attribute several times faster at a place that meets
            # one class alone.
            if upstream is not None:
                if watch is not None:
                    watch.before(node, upstream)
                if into is None:
                    node.apply(upstream)
                else:
                    into[node.leaf] = np.array(upstream)  # others may hold the same array
                if watch is not None:
                    watch.after(node, upstream, ())
            if not ready:
                return
            node, upstream = ready.pop()
            continue
        plan = node.plan
        if upstream is None:
            # Nothing arrived, but whoever waits for this node must not wait for ever.
            gradients = (None,) * len(node.inputs)
            proven = True
        else:
            if node.retained is not None:
                store_retained(node, upstream)
            if watch is not None:
                watch.before(node, upstream)
                gradients = fitted(node, node.inputs, node.apply(upstream))
                watch.after(node, upstream, gradients)
                proven = True
            elif plan is not None:  # such a node does no more than call its plan
                apply = plan.apply
                gradients = apply(node, upstream)
                proven = plan.proven
            else:
                gradients = node.apply(upstream)
                proven = False
        if not retain_graph:
            node.saved = None
        edges: Any = node.edges
        if edges.__class__ is not tuple:
            gradient = gradients[0]
            if proven and edges not in waiting and gradient.__class__ is _ndarray:
                # A link of a chain, the only edge here and there: nothing is summed, and what
                # would be pushed last runs next.
                node, upstream = edges, gradient
                continue
            edges = (edges,)
        if not proven:
            gradients = fitted(node, edges, gradients)
        following: Any = None  # what would be pushed last runs next
        for index, edge in enumerate(edges):
            if edge is None:
                continue
            gradient = gradients[index]
            if gradient.__class__ is not _ndarray:
                gradient = as_gradient(gradient)
            parts = waiting.get(edge)
            if parts is not None:
                parts[0] -= 1
                if gradient is not None:
                    held = parts[1]
                    if held is None:
                        parts[1] = gradient
                    elif parts[2]:
                        held += gradient
                    else:
                        # Out of place the first time: a formula may have returned the very array
                        # that another edge holds.
                        parts[1:] = as_gradient(held + gradient), True
                if parts[0]:
                    continue
                gradient, parts[1] = parts[1], None
            if following is not None:
                ready.append((following, upstream))
            following, upstream = edge, gradient
        if following is not None:
            node = following
        elif ready:
            node, upstream = ready.pop()
        else:
            return


def fitted(node: Node, edges: Sequence[Node | None], gradients: Sequence[Any]) -> tuple[Any, ...]:
    """Return the gradients of a node in their inputs' shapes and dtypes, or refuse them."""
    found: list[Any] = []
    fits = True
    for index, edge in enumerate(edges):
        gradient = None if edge is None else as_gradient(gradients[index])
        if edge is not None and gradient is not None:
            form = edge.form
            if gradient.shape != form.shape or gradient.dtype is not form.dtype:
                gradient = node.fit(gradient, index)
                fits = False
        found.append(gradient)
    plan = node.plan
    if fits and plan is not None and plan.steady:
        plan.proven = True
    return tuple(found)


def as_gradient(gradient: Any) -> Any:
    """Return what a formula gave as an array: NumPy's 0-d results decay to scalars."""
    return np.asarray(gradient) if isinstance(gradient, np.generic) else gradient


def store_retained(node: Node, upstream: Array) -> None:
    """Store the gradient that arrived for an output marked with `retain_grad`."""
    assert node.retained is not None
    output = node.retained()
    # An output detached in place has left the graph, though the graph is still whole.
    if output is not None and output._grad_fn is node:
        accumulate(output, upstream)


def retain_grad(tensor: Tensor) -> None:
    """Make a non-leaf keep its gradient; a leaf does anyway."""
    import weakref

    if not tensor.requires_grad:
        raise KaelError("retain_grad needs a tensor that requires grad")
    node = tensor._grad_fn
    if node is not None:
        node.retained = weakref.ref(tensor)
