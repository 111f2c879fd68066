"""The graph: nodes, the edges between them, and the leaves' accumulators.

A node owns its inputs' edges, so holding the loss holds the graph. A node is known by the shape
and dtype of its own output: that is what a gradient sent along an edge must have.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from kael import kernels
from kael.dtypes import DType
from kael.errors import KaelError
from kael.forms import Form
from kael.tensors import Storage, Tensor

if TYPE_CHECKING:
    from kael.engine.formula import Plan

Array = np.ndarray[Any, Any]
Gradients = tuple[Array | None, ...]
_add = np.add
_add_reduce: Any = np.add.reduce  # what array.sum calls, by way of Python

# One lock for all leaves: a leaf's sum must not lose what another thread adds, and its one
# accumulator must not be made twice.
_leaf_lock = threading.Lock()
_take, _give_back = _leaf_lock.acquire, _leaf_lock.release


class Node:
    """One backward function: it maps the gradient of its output to those of its inputs."""

    __slots__ = ("__weakref__", "edges", "form", "retained", "saved")

    # A lone first edge is held without a tuple around it: every object that the cyclic garbage
    # collector tracks makes a long graph slower to build.
    edges: Node | tuple[Node | None, ...]
    form: Form  # of the output: shape and dtype are what a gradient that arrives must have
    retained: weakref.ref[Tensor] | None
    saved: tuple[Any, ...] | None  # None once released: a second backward is then an error
    plan: Plan | None = None  # how an operation's node applies; other kinds have `apply` alone

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the output."""
        return self.form.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the output."""
        return self.form.dtype

    @property
    def inputs(self) -> tuple[Node | None, ...]:
        """The node that receives the gradient of each input; None where none is asked for."""
        edges = self.edges
        return edges if isinstance(edges, tuple) else (edges,)

    @property
    def name(self) -> str:
        """The name in traces, drawings and errors (`MulBackward`)."""
        raise NotImplementedError

    def apply(self, upstream: Array) -> Gradients:
        """Return one gradient per input; None where an input needs none."""
        raise NotImplementedError

    def fit(self, gradient: Array, index: int) -> Array:
        """Return `gradient` in the shape and dtype of input `index`, or refuse it."""
        edge = self.inputs[index]
        assert edge is not None
        if gradient.shape == edge.shape and gradient.dtype == edge.dtype:
            return gradient
        start = f"Function {self.name} returned an invalid gradient at index {index} - got"
        if gradient.shape != edge.shape:
            raise KaelError(f"{start} {list(gradient.shape)} but expected shape {list(edge.shape)}")
        raise KaelError(f"{start} {gradient.dtype} but expected dtype {edge.dtype}")

    def arrived(self, upstream: Array) -> list[Array]:
        """Return what arrived, one gradient an output."""
        return [upstream]

    @property
    def owner(self) -> Node:
        """The node people see: itself, except for one output of a function with several."""
        return self

    def __repr__(self) -> str:
        return f"<{self.name}>"


class FunctionNode(Node):
    """A recorded operation: its plan (which formulas, what is saved) and the saved values.

    `Plan.run` makes and fills one: a constructor would be a third of the cost.
    """

    __slots__ = ("plan",)

    plan: Plan

    @property
    def name(self) -> str:
        """The operation's node name."""
        return self.plan.op.node_name

    @property
    def inputs(self) -> tuple[Node | None, ...]:
        """The node that receives the gradient of each input; None where none is asked for."""
        edges = self.edges
        if isinstance(edges, tuple):
            return edges
        return (edges, *[None] * (len(self.plan.op.inputs) - 1))

    def apply(self, upstream: Array) -> Gradients:
        """Evaluate the formulas of the inputs that need a gradient."""
        return self.plan.apply(self, upstream)

    def fit(self, gradient: Array, index: int) -> Array:
        """Undo broadcasting and promotion where the operation does them; else refuse."""
        edges: Any = self.edges
        edge = edges[index] if edges.__class__ is tuple else edges
        if self.plan.op.broadcasts:
            if gradient.shape != edge.shape:
                gradient = sum_to_shape(gradient, edge.shape)
            if gradient.dtype is not edge.dtype:
                gradient = gradient.astype(edge.dtype)
            if gradient.__class__ is np.ndarray and gradient.shape == edge.shape:
                return gradient
        return super().fit(gradient, index)


class AccumulateGrad(Node):
    """The end of the walk at a leaf: adds what arrives to the leaf's `grad`."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Tensor) -> None:
        self.leaf = leaf
        self.edges = ()
        self.form = leaf.form
        self.retained = None
        self.saved = ()

    @property
    def name(self) -> str:
        """The name of every accumulator."""
        return "AccumulateGrad"

    def apply(self, upstream: Array) -> Gradients:
        """Add the gradient to the leaf, unless the leaf was detached in place."""
        # Detached in place and used again, it has another accumulator.
        known = self.leaf._accumulator
        if known is not None and known() is self:
            accumulate(self.leaf, upstream)
        return ()


def accumulate(tensor: Tensor, gradient: Array) -> None:
    """Add a gradient into `tensor.grad`: the first as a copy, later ones in place."""
    _take()  # half the cost of a `with`
    try:
        stored = tensor._grad
        if stored is None:
            tensor._grad = Tensor(kernels.copy(gradient))
            return
        array = stored._array
        try:
            _add(array, gradient, array)
        except ValueError:  # the user's own, an expanded one, which is read-only
            tensor._grad = Tensor(np.asarray(array + gradient))
            return
        storage = stored._storage or stored.storage
        storage.version += 1
        storage.writer = "backward"
    finally:
        _give_back()


def gradient_edge(tensor: Tensor) -> Node | None:
    """Return the node that receives the gradient of `tensor`.

    That is its `grad_fn`, the accumulator that every use of a leaf shares, or None where no
    gradient is asked for.
    """
    form = tensor._form
    if form is None or not form.requires_grad:
        return None
    node: Node | None = tensor._grad_fn
    if node is not None:
        return node
    known = tensor._accumulator
    node = None if known is None else known()
    if node is not None:
        return node
    with _leaf_lock:
        known = tensor._accumulator
        node = None if known is None else known()
        if node is None:
            node = AccumulateGrad(tensor)
            tensor._accumulator = weakref.ref(node)
        return node


def sum_to_shape(gradient: Array, target: tuple[int, ...]) -> Array:
    """Reduce a gradient to the shape that was broadcast: sum what broadcasting repeated."""
    extra = gradient.ndim - len(target)
    if extra > 0:
        gradient = np.asarray(_add_reduce(gradient, tuple(range(extra)) if extra > 1 else 0))
        if gradient.shape == target:
            return gradient
    stretched = tuple(
        dim for dim, size in enumerate(target) if size == 1 and gradient.shape[dim] != 1
    )
    return _add_reduce(gradient, stretched, keepdims=True) if stretched else gradient


def raise_released(node: Node) -> NoReturn:
    """Raise the error for a backward through a node whose saved values are gone."""
    raise KaelError(
        f"Trying to backward through the graph a second time ({node.name}); "
        "specify retain_graph=true"
    )


def raise_stale(node: Node, name: str, storage: Storage, expected: int) -> NoReturn:
    """Raise the error for a saved value that was overwritten, and name both sides."""
    saved = "its output" if name == "out" else f"its input {name!r}"
    raise stale(node.name, saved, storage, expected)


def stale(saver: str, saved: str, storage: Storage, expected: int) -> KaelError:
    """Return the error for what `saver` kept and an in-place operation overwrote."""
    return KaelError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: expected version {expected}, got {storage.version}\n"
        f"{saver} saved {saved}; {storage.writer} overwrote it afterwards"
    )
