"""Runs instances of specs forward and backward and hands back what came of it; never prints.

What `gradcheck` adds to that (differences, claims, expectations, verdicts) is `verdict.py`'s, so
that showing a gradient does not import the checker.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kael.engine.backward import backward as walk_backward
from kael.engine.grad_mode import observing
from kael.engine.hooks import Anomaly, Watch, Watches, norm
from kael.engine.node import Node
from kael.errors import KaelError
from kael.specs.expression import Expression, Span, current_span
from kael.specs.inputs import generator
from kael.specs.model import Golden, Instance
from kael.specs.place import Place, SpecError
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

REDUCE = "give the spec an upstream (upstream: ones), or reduce the output: (…).sum()"


class Evaluated:
    """An instance after a forward pass: its leaves, its output and its `let` values."""

    __slots__ = ("instance", "leaves", "lets", "output", "seed")

    def __init__(self, instance: Instance, seed: int = 0, dtype: Any = None) -> None:
        self.instance = instance
        self.seed = seed
        self.leaves = instance.leaves(seed, dtype)
        self.output, self.lets = instance.evaluate(self.leaves)

    @property
    def place(self) -> Place:
        """Where the output is written."""
        output = self.instance.spec.output
        return output.place if isinstance(output, Expression) else self.instance.place

    def upstream(self, *, ones: bool = False) -> Array | None:
        """Return the upstream gradient the spec names; None where it names none.

        `ones` gives a non-scalar output ones then. Raises `SpecError` for a given one that does
        not fit the output.
        """
        given = self.instance.spec.upstream
        shape, dtype = self.output.shape, self.output.dtype
        if given is None:
            return np.ones(shape, dtype) if ones and self.output.numel() != 1 else None
        if isinstance(given, Golden):
            if given.array.size != 1 and given.array.shape != shape:
                raise SpecError(
                    f"gradient shape {list(given.array.shape)} does not match output shape "
                    f"{list(shape)}",
                    given.place,
                )
            return np.broadcast_to(given.array, shape).astype(dtype)
        if given == "randn":
            stream = generator(self.seed, self.instance.spec.name, "upstream")
            return stream.standard_normal(shape).astype(dtype)
        return np.ones(shape, dtype)

    def backward(self, watch: Watch | None = None, *, ones: bool = False) -> None:
        """Fill the gradients of the leaves.

        Raises `SpecError` with the engine's message and the place of the output.
        """
        spec = self.instance.spec
        upstream = self.upstream(ones=ones)
        if spec.outside:
            self._claim(upstream)
            return
        try:
            walk_backward(self.output, upstream, watch=watch)
        except SpecError:
            raise
        except KaelError as error:
            message, _, detail = str(error).partition("\n")
            hint = REDUCE if "only for scalar outputs" in message else None
            raise SpecError(message, self.place, detail=detail or None, hint=hint) from error

    def _claim(self, upstream: Array | None) -> None:
        """Take the gradients that code outside kael claims; there is no graph to walk."""
        if upstream is None:
            upstream = np.ones(self.output.shape, self.output.dtype)
        for name, claimed in self.instance.outside_gradients(self.leaves, upstream).items():
            leaf = self.leaves[name]
            if claimed is not None and leaf.requires_grad:
                leaf._grad = Tensor(np.array(claimed, leaf.dtype))


class Step:
    """One node of a backward walk, in the words of the spec."""

    __slots__ = ("expr", "name", "node", "norm", "shape")

    def __init__(self, node: str, name: str | None, shape: Any, size: float, expr: str | None):
        self.node = node
        self.name = name
        self.shape = shape
        self.norm = size
        self.expr = expr


class Steps:
    """A watch and an observer that together name the nodes of a walk.

    As an observer it notes which sub-expression each node was recorded for; as a watch, the order
    of the nodes and what arrives at them.
    """

    def __init__(self) -> None:
        self.spans: dict[Node, Span] = {}
        self._walked: list[tuple[Node, Any, float]] = []

    def __call__(
        self, op: Any, inputs: Any, arguments: Any, output: Tensor, node: Node | None
    ) -> None:
        """Note the sub-expression that is being evaluated."""
        del op, inputs, arguments, output
        span = current_span()
        if node is not None and span is not None:
            self.spans[node] = span

    def before(self, node: Node, upstream: Any) -> None:
        """Note the node and what arrives."""
        if node.owner is not node:
            return  # one output of a function with several, which has a step of its own
        parts = node.arrived(upstream)
        shapes = [list(part.shape) for part in parts]
        sizes = [norm(part) for part in parts]
        total = sizes[0] if len(sizes) == 1 else norm(np.array(sizes))
        self._walked.append((node, shapes[0] if len(shapes) == 1 else shapes, total))

    def after(self, node: Node, upstream: Array, gradients: Any) -> None:
        """Nothing: a step tells what arrives."""

    def named(self, evaluated: Evaluated) -> list[Step]:
        """Return the steps, each with its leaf's or `let` name and its sub-expression."""
        from kael.inspect.graph import titles_of

        titles = titles_of({**evaluated.leaves, **evaluated.lets})
        return [
            Step(
                node.name,
                titles.get(node),
                shape,
                size,
                self.spans[node].text if node in self.spans else None,
            )
            for node, shape, size in self._walked
        ]


class AnomalyError(SpecError):
    """A gradient is NaN: the check that was asked for found something, kael has no complaint."""


class Anomalies(Anomaly):
    """A watch that stops at the first gradient that is NaN, at its sub-expression."""

    def __init__(self, evaluated: Evaluated, spans: Mapping[Node, Span]) -> None:
        super().__init__(check_inf=False)
        self._evaluated = evaluated
        self._spans = spans

    def after(self, node: Node, upstream: Array, gradients: Any) -> None:
        """Raise `AnomalyError` if a returned gradient is NaN."""
        try:
            super().after(node, upstream, gradients)
        except KaelError as error:
            span = self._spans.get(node)
            place = self._evaluated.place if span is None else span.place
            message, _, detail = str(error).partition("\n")
            raise AnomalyError(message, place, detail=detail or None) from None


def run(
    instance: Instance,
    *,
    seed: int = 0,
    dtype: Any = None,
    watch: Watch | None = None,
    anomaly: bool = False,
) -> Evaluated:
    """Run an instance forward and backward; its leaves then hold their gradients.

    With `anomaly`, raises `AnomalyError` at the first node that returns NaN.
    """
    observer = watch if isinstance(watch, Steps) else Steps() if anomaly else None
    if observer is None:
        evaluated = Evaluated(instance, seed, dtype)
    else:
        with observing(observer):
            evaluated = Evaluated(instance, seed, dtype)
    if observer is not None and anomaly:
        guard = Anomalies(evaluated, observer.spans)
        watch = guard if watch is None else Watches([watch, guard])
    evaluated.backward(watch)
    return evaluated
