"""Runs an instance of a spec forward and backward and hands back what came of it; never prints.

What a check adds to that (differences, claims, expectations, verdicts) is `verdict.py`'s, so that
showing a gradient does not import the checker.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from kael.engine.backward import backward as walk_backward
from kael.engine.hooks import Anomaly, Watch, Watches, anomaly_enabled
from kael.engine.node import Node
from kael.errors import KaelError
from kael.specs.expression import Expression, current_span
from kael.specs.inputs import generator
from kael.specs.model import Golden, Instance
from kael.specs.place import Place, SpecError
from kael.tensors import Tensor

if TYPE_CHECKING:
    from kael.inspect.recorder import Recorder

Array = np.ndarray[Any, Any]

REDUCE = "give the spec an upstream (upstream: ones), or reduce the output: (…).sum()"


class Evaluated:
    """An instance after a forward pass: its leaves, its output and its `let` values.

    `recorder` sees the operations of the forward pass. `leaves` replaces the instance's own.
    Raises `SpecError` where it cannot be evaluated.
    """

    __slots__ = ("instance", "leaves", "lets", "output", "recorder", "seed")

    def __init__(
        self,
        instance: Instance,
        seed: int = 0,
        recorder: "Recorder | None" = None,
        leaves: dict[str, Tensor] | None = None,
    ) -> None:
        self.instance = instance
        self.seed = seed
        self.recorder = recorder
        self.leaves = instance.leaves(seed) if leaves is None else leaves
        with nullcontext() if recorder is None else recorder.observing():
            self.output, self.lets = instance.evaluate(self.leaves)
        if self.output.dtype.kind == "c":
            message = f"the result must be made of real numbers, got {self.output.dtype}"
            raise SpecError(message, instance.place)

    @property
    def names(self) -> dict[str, Any]:
        """What people call the leaves and intermediate values."""
        return {**self.leaves, **self.lets}

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
            if given.array.ndim and given.array.shape != shape:
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

    def backward(
        self, watch: Watch | None = None, *, ones: bool = False, anomaly: bool = False
    ) -> None:
        """Fill the gradients of the leaves.

        Raises `SpecError` with the engine's message and the place of the output; with `anomaly`,
        `AnomalyError` at the first node that returns NaN.
        """
        upstream = self.upstream(ones=ones)
        if self.instance.spec.outside:
            self._claim(upstream)
            return
        if anomaly:
            guard = Anomalies(self)
            watch = guard if watch is None else Watches([watch, guard])
        try:
            walk_backward(self.output, upstream, watch=watch)
        except (SpecError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise self.failure(error) from error

    def failure(self, error: BaseException) -> BaseException:
        """Return the error of a spec for what its evaluation raised.

        What is neither kael's own word nor from a user's Python is a bug, and comes back as it is.
        """
        if isinstance(error, KaelError):
            message, _, detail = str(error).partition("\n")
            if anomaly_enabled() and message.endswith(" in its gradient"):
                return AnomalyError(message, self.place, detail=detail or None)
            hint = REDUCE if "only for scalar outputs" in message else None
            return SpecError(message, self.place, detail=detail or None, hint=hint)
        if isinstance(self.instance.spec.output, Expression):
            return error
        from kael.specs.user_code import failure

        return failure(error, self.place, f"the backward of {self.instance.spec.name}")

    def _claim(self, upstream: Array | None) -> None:
        """Take the gradients that code outside kael claims; there is no graph to walk."""
        if upstream is None:
            upstream = np.ones(self.output.shape, self.output.dtype)
        for name, claimed in self.instance.outside_gradients(self.leaves, upstream).items():
            leaf = self.leaves[name]
            if claimed is not None and leaf.requires_grad:
                leaf._grad = Tensor(np.array(claimed, leaf.dtype))


def require_graph(instance: Instance) -> None:
    """Raise SpecError for code outside kael, which records no graph to look at."""
    if instance.spec.outside:
        raise SpecError("code outside kael records no graph", instance.place)


def recorded(instance: Instance, seed: int = 0) -> Evaluated:
    """Return an instance after a forward pass of which every operation was kept.

    Raises `SpecError` for code outside kael.
    """
    from kael.inspect.recorder import Recorder

    require_graph(instance)
    if isinstance(instance.spec.output, Expression):
        return Evaluated(instance, seed, Recorder(current_span))
    from kael.specs.user_code import Lines

    return Evaluated(instance, seed, Recorder(Lines(instance.spec.file)))


class AnomalyError(SpecError):
    """A gradient is NaN: a check that was asked for found something; nothing is wrong with kael."""


class Anomalies(Anomaly):
    """A watch that stops at the first gradient that is NaN, and names the sub-expression."""

    def __init__(self, evaluated: Evaluated) -> None:
        super().__init__(check_inf=False)
        self._evaluated = evaluated

    def after(self, node: Node, upstream: Array, gradients: Any) -> None:
        """Raise `AnomalyError` if a returned gradient is NaN."""
        try:
            super().after(node, upstream, gradients)
        except KaelError as error:
            message, _, detail = str(error).partition("\n")
            raise AnomalyError(message, self._place(node), detail=detail or None) from None

    def _place(self, node: Node) -> Place:
        recorder = self._evaluated.recorder
        step = None if recorder is None else recorder.of.get(node.owner)
        place = None if step is None or step.where is None else step.where.place
        return place if isinstance(place, Place) else self._evaluated.place


def claims_of(evaluated: Evaluated) -> Mapping[str, Array]:
    """Return the gradients the author claims, by input.

    A claim is a formula, not a number: it is evaluated in float64 where the inputs are float32.
    """
    leaves, lets = evaluated.leaves, evaluated.lets or None
    narrow = {name: leaf for name, leaf in leaves.items() if leaf.dtype == np.float32}
    if narrow:
        wide = {name: Tensor(leaf.numpy().astype(np.float64)) for name, leaf in narrow.items()}
        leaves, lets = {**leaves, **wide}, None
    return {
        name: evaluated.instance.claim(name, leaves, lets)
        for name in evaluated.instance.spec.derivatives
    }
