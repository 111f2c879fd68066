"""What happened in a forward pass: every operation with what went in, what came out, and where.

A recorder is an observer of operations. What a reader of a spec calls the place of an operation
(its sub-expression) comes from a callable given by the caller; in a Python program it is the
user's own line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kael.engine.grad_mode import observing
from kael.engine.node import Node
from kael.engine.sources import user_line
from kael.inspect.graph import named_tensors
from kael.tensors import Tensor


class HasText(Protocol):
    """A whole text."""

    @property
    def text(self) -> str: ...


class HasPlace(Protocol):
    """A position in a file; its text is `file:line:column`."""

    @property
    def line(self) -> int | None: ...

    @property
    def column(self) -> int | None: ...


class Where(Protocol):
    """A sub-expression: its text, where it stands in the whole text, and its place in a file."""

    @property
    def text(self) -> str: ...

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def source(self) -> HasText: ...

    @property
    def place(self) -> HasPlace: ...


Lookup = Callable[[], "Where | None"]


class Step:
    """One operation of a forward pass.

    Attributes
    ----------
    op : the `Operation`, or the `Function` class
    inputs, arguments : its tensor operands and its plain arguments, in the declared order
    output : its result; `node`: what was recorded, None where nothing was
    where : the sub-expression or the user's line, None where it is not known
    """

    __slots__ = ("arguments", "inputs", "node", "op", "output", "where")

    def __init__(
        self,
        op: Any,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        output: Tensor,
        node: Node | None,
        where: Where | None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.arguments = arguments
        self.output = output
        self.node = node
        self.where = where

    @property
    def name(self) -> str:
        """The operation's name, or the class's."""
        return str(getattr(self.op, "name", None) or self.op.__name__)

    @property
    def op_arguments(self) -> tuple[str, ...]:
        """The names of the plain arguments, as declared."""
        return tuple(getattr(self.op, "arguments", ()))

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the operation."""
        return tuple(getattr(self.op, "aliases", ()))

    @property
    def node_name(self) -> str | None:
        """The name of the recorded node, None where nothing was recorded."""
        return None if self.node is None else self.node.owner.name

    def parameter(self, index: int) -> str:
        """Return the name of the parameter that operand `index` was given for."""
        names: tuple[str, ...] = getattr(self.op, "inputs", ())
        if getattr(self.op, "variadic", False):
            return f"{names[0]}[{index}]"
        return names[index] if index < len(names) else f"input {index}"

    def __repr__(self) -> str:
        return f"<step {self.name}>"


class Recorder:
    """Keeps every operation that runs under `with recorder.observing():`, in order.

    It holds the tensors of the whole forward pass alive: it is made for looking closely.
    """

    def __init__(self, where: Lookup | None = None) -> None:
        self._where = where
        self.steps: list[Step] = []
        self.of: dict[Node, Step] = {}
        self._made: dict[int, Step] = {}

    def observing(self) -> observing:
        """Return the context in which operations are recorded."""
        return observing(self)

    def __call__(
        self,
        op: Any,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        output: Tensor,
        node: Node | None,
    ) -> None:
        """Record one operation; the engine's observer slot calls this."""
        where = None if self._where is None else self._where()
        step = Step(op, inputs, arguments, output, node, user_line() if where is None else where)
        self.steps.append(step)
        self._made[id(output)] = step
        if node is not None:
            self.of.setdefault(node.owner, step)

    def maker(self, tensor: Tensor) -> Step | None:
        """Return the operation that made a tensor; None for an input or a constant."""
        step = self._made.get(id(tensor))
        return step if step is not None and step.output is tensor else None


class Names:
    """What people call the tensors of a forward pass: inputs and `let` values."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.tensors = dict(named_tensors(names))
        self._names: dict[int, str] = {}
        for name, tensor in self.tensors.items():
            self._names.setdefault(id(tensor), name)

    def of(self, tensor: Tensor) -> str | None:
        """Return a tensor's name, None where it has none."""
        return self._names.get(id(tensor))

    def add(self, name: str, tensor: Tensor) -> None:
        """Give a tensor a name, if it has none."""
        if id(tensor) not in self._names:
            self.tensors[name] = tensor
            self._names[id(tensor)] = name
