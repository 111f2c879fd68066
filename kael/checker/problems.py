"""A function with a gradient that is claimed for it, which can be asked for both anywhere.

A diagnosis has to look further than the point at which a gradient failed: at points beside it,
mirrored, shuffled. What it looks at may be a whole formula, one recorded node of it, a
derivative that the author of a spec claims, or code outside kael; all four are problems. How
they are looked at is in `evidence`, what it means in `faults`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kael.checker.kinkfinder import met_at
from kael.checker.model import Array, Floats
from kael.checker.subject import OutsideSubject, Subject, TensorSubject
from kael.engine.backward import backward
from kael.engine.function import Arrived, Function, FunctionContext
from kael.engine.grad_mode import enable_grad, no_grad, observing
from kael.engine.node import AccumulateGrad, Node, sum_to_shape
from kael.errors import KaelError
from kael.tensors import Tensor

ClaimOf = Callable[[str, Sequence[Array]], Array]
"""(input, all differentiated inputs) -> the derivative that is claimed for the input there."""


Where = Callable[[], Any]
"""Gives the sub-expression that is being evaluated, with `text` and `place`, or None."""


@dataclass(frozen=True)
class Use:
    """One use of an input in a formula, and what comes back along it: a term of the gradient."""

    text: str
    gradient: Array


@dataclass(frozen=True)
class Repair:
    """A small change of a claimed formula: what it says of the claim if the changed one holds."""

    code: str
    fault: str
    remedy: str
    value: Callable[[Sequence[Array]], Array]


class Problem:
    """A function of some arrays, and the gradient that somebody says it has."""

    names: list[str]
    arrays: list[Array]
    what: str = "the gradient of {name}"
    """How a sentence calls the gradient of an input."""
    where: str = ""
    """Where the formula is, for the end of a sentence."""
    upstream: Floats | None = None
    """The one upstream gradient under which the gradient is claimed; None: under any."""
    output_shape: tuple[int, ...] = ()
    float32: bool = False
    """Whether the claimed gradient has the digits of float32 alone."""
    raised: str | None = None
    """What the function said where it raised, beside the given point."""

    def output(self, arrays: Sequence[Array]) -> Floats:
        """The output somewhere, flat; NaN where it has none."""
        raise NotImplementedError

    def gradients(self, arrays: Sequence[Array], upstream: Floats) -> list[Array]:
        """The gradients claimed there, as they come: of a wrong shape too."""
        raise NotImplementedError

    def exact(self, arrays: Sequence[Array], index: int) -> Array | None:
        """The gradient that is right there, where one is known but for rounding."""
        del arrays, index
        return None

    def uses(self, arrays: Sequence[Array], upstream: Floats) -> list[list[Use]] | None:
        """The terms of the true gradient, one a use of an input; None where nobody knows."""
        del arrays, upstream
        return None

    def kink_at(self, index: int, entry: int) -> str | None:
        """The operation that has its kink at an entry of an input, as far as anybody sees it."""
        del index, entry
        return None

    def repairs(self, name: str) -> Iterable[Repair]:
        """What else the author may have meant to claim for an input; nothing where it is code."""
        del name
        return ()


class WholeProblem(Problem):
    """A whole formula of tensors, with the gradient that `backward` leaves in the leaves."""

    def __init__(self, subject: TensorSubject, where: Where | None = None) -> None:
        self.subject, self.located = subject, where
        self.raised = subject.raised
        self.names = list(subject.names)
        self.arrays = [np.array(a, dtype=np.float64) for a in subject.originals]
        self.output_shape = subject.output_shape
        self.float32 = subject.float32

    def output(self, arrays: Sequence[Array]) -> Floats:
        with no_grad(), observing(None):
            output = self.subject.function(*self._tensors(arrays, self.subject.moved))
        return np.array(output._array, dtype=np.float64).reshape(-1)

    def gradients(self, arrays: Sequence[Array], upstream: Floats) -> list[Array]:
        tensors = self._tensors(arrays, self.subject.inputs)
        leaves = [tensors[i] for i in self.subject.positions]
        with enable_grad(), observing(None):
            output = self.subject.function(*tensors)
        return gradients_of(output, leaves, upstream)

    def uses(self, arrays: Sequence[Array], upstream: Floats) -> list[list[Use]] | None:
        tensors = self._tensors(arrays, self.subject.moved)
        leaves = [tensors[i] for i in self.subject.positions]
        return uses_of(lambda: self.subject.function(*tensors), leaves, upstream, self.located)

    def kink_at(self, index: int, entry: int) -> str | None:
        x = float(self.arrays[index].reshape(-1)[entry])
        found = met_at(self.subject, index, entry, 1e-6 * max(1.0, abs(x)), self.located)
        if found is None:
            return None
        text, place = ("", "") if found.place is None else told(found.place)
        return called(found.operation, text, place)

    def _tensors(self, arrays: Sequence[Array], inputs: Sequence[Tensor]) -> list[Tensor]:
        tensors = list(inputs)
        for position, array in zip(self.subject.positions, arrays, strict=True):
            tensors[position] = leaf_of(array.astype(inputs[position].dtype))
        return tensors


class OutsideProblem(Problem):
    """Code outside kael, with the gradient that is claimed for it."""

    def __init__(self, subject: OutsideSubject) -> None:
        self.subject = subject
        self.raised = subject.raised
        self.names = list(subject.names)
        self.arrays = [np.array(a, dtype=np.float64) for a in subject.arrays]
        self.output_shape = subject.output_shape
        self.what = "the gradient claimed for {name}"
        if subject.vjp is None:
            self.upstream = np.ones(1)

    def output(self, arrays: Sequence[Array]) -> Floats:
        with self._at(arrays):
            return self.subject.evaluate()

    def gradients(self, arrays: Sequence[Array], upstream: Floats) -> list[Array]:
        with self._at(arrays):
            found = self.subject.gradients(upstream)
        return [
            np.zeros(a.shape) if g is None else g for g, a in zip(found, self.arrays, strict=True)
        ]

    def _at(self, arrays: Sequence[Array]) -> Any:
        restored = self.subject.restored()
        return _Moved(self.subject, arrays, restored)


class _Moved:
    """The arrays of a subject at other values for a while."""

    def __init__(self, subject: Subject, arrays: Sequence[Array], restored: Any) -> None:
        self.subject, self.arrays, self.restored = subject, arrays, restored

    def __enter__(self) -> None:
        self.restored.__enter__()
        for array, value in zip(self.subject.arrays, self.arrays, strict=True):
            array[...] = value

    def __exit__(self, *error: Any) -> None:
        self.restored.__exit__(*error)


class ClaimProblem(Problem):
    """A formula of tensors, with derivatives that its author claims under one upstream."""

    what = "the derivative claimed for {name}"

    def __init__(
        self,
        whole: WholeProblem,
        claim_of: ClaimOf,
        upstream: Floats,
        repairs_of: Callable[[str], Iterable[Repair]] | None = None,
        verified: Collection[str] = (),
    ) -> None:
        self.whole, self.claim_of, self.upstream = whole, claim_of, upstream
        self.verified = verified
        self.repairs_of = repairs_of
        self.names, self.arrays = whole.names, whole.arrays
        self.output_shape, self.float32 = whole.output_shape, whole.float32

    def output(self, arrays: Sequence[Array]) -> Floats:
        return self.whole.output(arrays)

    def gradients(self, arrays: Sequence[Array], upstream: Floats) -> list[Array]:
        del upstream
        found = []
        for name, array in zip(self.names, arrays, strict=True):
            try:
                claimed = self.claim_of(name, arrays)
            except KeyError:
                claimed = np.full(array.shape, np.nan)
            found.append(np.array(np.broadcast_to(claimed, array.shape), dtype=np.float64))
        return found

    def exact(self, arrays: Sequence[Array], index: int) -> Array | None:
        """The gradient of the formula itself, of the inputs of which it was verified."""
        if self.names[index] not in self.verified or self.upstream is None:
            return None
        return self.whole.gradients(arrays, self.upstream)[index]

    def uses(self, arrays: Sequence[Array], upstream: Floats) -> list[list[Use]] | None:
        return self.whole.uses(arrays, upstream)

    def kink_at(self, index: int, entry: int) -> str | None:
        return self.whole.kink_at(index, entry)

    def repairs(self, name: str) -> Iterable[Repair]:
        return () if self.repairs_of is None else self.repairs_of(name)


@dataclass
class Step:
    """One recorded operation with its operands, to be made again at other values of them."""

    op: Any
    inputs: tuple[Tensor, ...]
    arguments: tuple[Any, ...]
    output: Tensor
    node: Node | None
    text: str
    """The sub-expression, empty where it is not known."""
    place: str

    @property
    def name(self) -> str:
        """The operation's name, or the class's."""
        return str(getattr(self.op, "name", None) or self.op.__name__)

    @property
    def custom(self) -> bool:
        """Whether it is a `Function` with a hand-written backward."""
        return isinstance(self.op, type)

    @property
    def called(self) -> str:
        """What a sentence calls it: its text and place, as far as they are known."""
        return called(self.name, self.text, self.place)

    def operands(self) -> list[str]:
        """What each operand is called."""
        names: Sequence[str] = getattr(self.op, "inputs", ())
        if self.custom:
            parameters = list(inspect.signature(self.op.forward).parameters.values())[1:]
            names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
            return [names[i] if i < len(names) else f"argument {i}" for i in self.edges()]
        if getattr(self.op, "variadic", False):
            return [f"{names[0]}[{i}]" for i in range(len(self.inputs))]
        return [*names[: len(self.inputs)]]

    def again(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of the same call with other operands."""
        if not self.custom:
            return [self.op.apply(tuple(tensors), self.arguments)]
        args, kwargs = self.arguments.call  # type: ignore[attr-defined]
        made = self.op.apply(*_replaced(args, tensors), **kwargs)
        return [made] if isinstance(made, Tensor) else list(made)

    def forward(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The forward of a `Function` as an ordinary recorded formula of kael's operations."""
        args, kwargs = self.arguments.call  # type: ignore[attr-defined]
        needs = tuple(isinstance(arg, Tensor) for arg in args)
        ctx = FunctionContext(self.name, needs)
        made = self.op.forward(ctx, *_replaced(args, tensors), **kwargs)
        return [made] if isinstance(made, Tensor) else list(made)

    def edges(self) -> list[int]:
        """Which of the node's inputs each operand is."""
        if not self.custom:
            return list(range(len(self.inputs)))
        args = self.arguments.call[0]  # type: ignore[attr-defined]
        return [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]


def _replaced(args: Sequence[Any], tensors: Sequence[Tensor]) -> list[Any]:
    given = iter(tensors)
    return [next(given) if isinstance(arg, Tensor) else arg for arg in args]


class NodeProblem(Problem):
    """One recorded node at its recorded operands, with its own backward."""

    def __init__(self, step: Step, known: Mapping[int, str]) -> None:
        self.step = step
        self.chosen = [i for i, x in enumerate(step.inputs) if x.requires_grad]
        operands = names_of(step, known)
        self.names = [operands[i] for i in self.chosen]
        self.arrays = [np.array(step.inputs[i]._array, dtype=np.float64) for i in self.chosen]
        self.output_shape = step.output.shape
        self.float32 = any(step.inputs[i].dtype == np.float32 for i in self.chosen)
        self.what = f"the gradient that {step.name}Backward returns for {{name}}"
        if step.node is not None:
            self.what = f"the gradient that {step.node.owner.name} returns for {{name}}"
        self.where = f" at {step.called}" if step.text or step.place else ""

    def output(self, arrays: Sequence[Array]) -> Floats:
        with no_grad(), observing(None):
            made = self.step.again(self._operands(arrays, np.dtype(np.float64)))
        return np.concatenate([np.asarray(o._array, dtype=np.float64).reshape(-1) for o in made])

    def gradients(self, arrays: Sequence[Array], upstream: Floats) -> list[Array]:
        operands = self._operands(arrays, None)
        with enable_grad(), observing(None):
            made = self.step.again(operands)
        node = next((o._grad_fn.owner for o in made if o._grad_fn is not None), None)
        if node is None:
            return [np.zeros(a.shape) for a in arrays]
        parts, start = {}, 0
        for number, output in enumerate(made):
            size = output._array.size
            part = upstream[start : start + size].reshape(output.shape).astype(output.dtype)
            parts[number] = part
            start += size
        with no_grad(), observing(None):
            found = node.apply(parts[0] if len(made) == 1 else Arrived(parts))  # type: ignore[arg-type]
        edges = self.step.edges()
        return [
            self._fitted(node, found[edges[i]], edges[i], array)
            for i, array in zip(self.chosen, arrays, strict=True)
        ]

    def uses(self, arrays: Sequence[Array], upstream: Floats) -> list[list[Use]] | None:
        if not self.step.custom:
            return None
        operands = self._operands(arrays, np.dtype(np.float64))
        leaves = [operands[i] for i in self.chosen]

        def function() -> Tensor:
            made = self.step.forward(operands)
            if len(made) != 1:
                raise KaelError("several outputs")
            return made[0]

        return uses_of(function, leaves, upstream)

    def _operands(self, arrays: Sequence[Array], dtype: Any) -> list[Tensor]:
        operands = list(self.step.inputs)
        for i, array in zip(self.chosen, arrays, strict=True):
            operands[i] = leaf_of(array.astype(dtype or self.step.inputs[i].dtype))
        return operands

    def _fitted(self, node: Node, gradient: Any, edge: int, array: Array) -> Array:
        if gradient is None:
            return np.zeros(array.shape)
        gradient = np.asarray(gradient)
        if gradient.shape != array.shape and getattr(self.step.op, "broadcasts", False):
            gradient = sum_to_shape(gradient, array.shape)
        return np.array(gradient, dtype=np.float64)


def names_of(step: Step, known: Mapping[int, str]) -> list[str]:
    """What the operands of a step are called: an input of the formula by its own name."""
    names = [known.get(id(x), name) for x, name in zip(step.inputs, step.operands(), strict=True)]
    return names if len(set(names)) == len(names) else step.operands()


def problem_of(subject: Subject) -> Problem:
    """The problem of a whole subject under check."""
    if isinstance(subject, OutsideSubject):
        return OutsideProblem(subject)
    assert isinstance(subject, TensorSubject)
    return WholeProblem(subject)


def leaf_of(array: Array) -> Tensor:
    """A leaf of its own that requires a gradient, where its dtype can."""
    tensor = Tensor(array)
    if array.dtype.kind == "f":
        tensor.requires_grad_()
    return tensor


def gradients_of(output: Tensor, leaves: Sequence[Tensor], upstream: Floats) -> list[Array]:
    """The gradients of fresh leaves, zeros where none arrived."""
    found: dict[Tensor, Array] = {}
    if output.requires_grad:
        seed = upstream.reshape(output.shape).astype(output.dtype)
        backward(output, Tensor(seed), into=found)
    return [
        found[leaf].astype(np.float64) if leaf in found else np.zeros(leaf.shape) for leaf in leaves
    ]


class _Arrivals:
    """A watch that keeps what each edge brings to the leaves."""

    def __init__(self, leaves: Sequence[Tensor]) -> None:
        self.index = {id(leaf): i for i, leaf in enumerate(leaves)}
        self.found: list[list[tuple[Node, Array]]] = [[] for _ in leaves]

    def before(self, node: Node, upstream: Array) -> None:
        """Nothing to keep yet."""

    def after(self, node: Node, upstream: Array, gradients: Any) -> None:
        """Keep what the node sends to a leaf."""
        for index, edge in enumerate(node.inputs):
            if not isinstance(edge, AccumulateGrad) or id(edge.leaf) not in self.index:
                continue
            if gradients[index] is not None:
                self.found[self.index[id(edge.leaf)]].append((node, np.array(gradients[index])))


def uses_of(
    function: Callable[[], Tensor],
    leaves: Sequence[Tensor],
    upstream: Floats,
    where: Where | None = None,
) -> list[list[Use]] | None:
    """What each use of each leaf contributes to its gradient; None where nothing is recorded."""
    texts: dict[int, str] = {}
    held: list[Any] = []
    outside = told(None)

    def observe(
        op: Any,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        output: Tensor,
        node: Any,
    ) -> None:
        del arguments
        if node is not None:
            held.append((node, inputs, output))
            text, place = told(None if where is None else where())
            if (text, place) == outside:
                text = place = ""
            name = str(getattr(op, "name", None) or op.__name__)
            texts[id(node.owner)] = called(name, text, place)

    watch = _Arrivals(leaves)
    try:
        with enable_grad(), observing(observe):
            output = function()
        if not isinstance(output, Tensor) or not output.requires_grad:
            return None
        seed = upstream.reshape(output.shape).astype(output.dtype)
        backward(output, Tensor(seed), watch=watch, into={})
    except KaelError:
        return None
    return [
        [Use(texts.get(id(node.owner), node.name), gradient) for node, gradient in found]
        for found in watch.found
    ]


def steps_of(function: Callable[[], Any], where: Callable[[], Any] | None = None) -> Iterator[Step]:
    """The operations of one recorded evaluation, in order."""
    steps: list[Step] = []
    outside = told(None)

    def observe(
        op: Any,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        output: Tensor,
        node: Any,
    ) -> None:
        text, place = told(None if where is None else where())
        if (text, place) == outside:
            # The caller of the checker is no part of the formula.
            text = place = ""
        steps.append(Step(op, inputs, arguments, output, node, text, place))

    with enable_grad(), observing(observe):
        function()
    yield from steps


def called(name: str, text: str, place: str) -> str:
    """What a sentence calls an operation: its text and place, as far as they are known."""
    shown = f"`{text}`" if text else name
    return f"{shown} ({place})" if place else shown


def told(span: Any) -> tuple[str, str]:
    """The text and the place of whatever a where-callable gave."""
    if span is None:
        from kael.engine.sources import user_line

        line = user_line()
        if line is None:
            return "", ""
        here = os.path.join(os.getcwd(), "")
        return line.text, str(line).removeprefix(here).replace(os.sep, "/")
    if isinstance(span, str):
        return span, ""
    return str(getattr(span, "text", "")), str(getattr(span, "place", ""))


def is_function(step: Step) -> bool:
    """Whether a step is a call of a user's `Function`."""
    return isinstance(step.op, type) and issubclass(step.op, Function)
