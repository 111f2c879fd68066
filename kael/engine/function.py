"""Custom functions: a forward and a hand-written backward, recorded as one node."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from kael.engine.grad_mode import observing, state
from kael.engine.node import Array, Gradients, Node, gradient_edge, raise_released, stale
from kael.errors import KaelError, KaelTypeError
from kael.tensors import Storage, Tensor


class FunctionContext:
    """What `forward` leaves for `backward`: saved tensors, flags, and any attribute it sets."""

    def __init__(self, name: str, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._name = name
        self._to_save: tuple[Tensor | None, ...] = ()
        self._non_differentiable: set[int] = set()
        self._node: weakref.ref[CustomNode] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `backward`; later in-place writes to them are detected."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise KaelTypeError(
                    f"{self._name}: save_for_backward takes tensors, "
                    f"got {type(tensor).__name__}; set an attribute on ctx for other values"
                )
        self._to_save = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare outputs that take no part in the graph."""
        self._non_differentiable.update(id(tensor) for tensor in tensors)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Refuse: an in-place function would rewrite history, which kael never does."""
        raise KaelError(
            f"{self._name}: kael has no functions that write into their inputs; return a new tensor"
        )

    def set_materialize_grads(self, value: bool) -> None:
        """Accept True alone: an output that gets no gradient always arrives as zeros."""
        if value is not True:
            raise KaelError(
                f"{self._name}: outputs that get no gradient arrive as zeros; "
                "set_materialize_grads takes True only"
            )

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `save_for_backward` kept; `KaelError` if it was overwritten or released."""
        node = None if self._node is None else self._node()
        if node is None:
            return ()
        if node.saved is None:
            raise_released(node)
        return tuple(None if kept is None else self._intact(*kept) for kept in node.saved)

    def _intact(self, array: Array, storage: Storage, version: int) -> Tensor:
        if storage.version != version:
            raise stale(self._name, "it", storage, version)
        tensor = Tensor(array)
        tensor._storage = storage
        return tensor


class Function:
    """An operation with a hand-written backward.

    Subclasses define two static methods: `forward(ctx, *args)` computes with tensors and returns
    one tensor or a tuple of them; `backward(ctx, *grads)` takes one gradient an output and returns
    one an argument of `forward`, None where there is none. Use it as `Square.apply(x)`.

    >>> import kael
    >>> class Square(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * x * 2
    >>> x = kael.tensor([3.0], requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor([6.])
    """

    # What observers of operations may ask of any operation.
    kink: ClassVar[None] = None
    analytic: ClassVar[bool] = False
    batch: ClassVar[None] = None

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; tensors that `backward` needs go to `ctx.save_for_backward`."""
        raise NotImplementedError("a Function needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return one gradient for each argument of `forward`, None where there is none."""
        raise NotImplementedError("a Function needs a static method backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` without recording and record one node for it."""
        for name, value in kwargs.items():
            if isinstance(value, Tensor) and value.requires_grad and state.here.grad_enabled:
                raise KaelTypeError(
                    f"{cls.__name__}.apply: {name} requires a gradient, which only arguments "
                    "given by position get"
                )
        tensors = tuple(arg for arg in args if isinstance(arg, Tensor))
        needs = tuple(isinstance(arg, Tensor) and arg.requires_grad for arg in args)
        ctx = FunctionContext(f"{cls.__name__}Backward", needs)
        recording = state.here.grad_enabled and any(needs)
        previous = state.here.grad_enabled
        state.here.grad_enabled = False
        try:
            with observing(None):
                returned = cls.forward(ctx, *args, **kwargs)
        finally:
            state.here.grad_enabled = previous
        outputs = _as_outputs(cls, returned)
        fresh = [_own(output, (*tensors, *outputs[:i])) for i, output in enumerate(outputs)]
        if recording:
            _record(cls, ctx, args, outputs, fresh)
        ctx._to_save = ()
        observer = state.here.observer
        if observer is not None:
            plain = CallArguments(arg for arg in args if not isinstance(arg, Tensor))
            plain.call = args, kwargs
            for output in fresh:
                observer(cls, tensors, plain, output, output.grad_fn)
        return fresh[0] if isinstance(returned, Tensor) else tuple(fresh)


class CallArguments(tuple[Any, ...]):
    """The plain arguments of one call of a `Function`, as observers are told them.

    `call` is the whole call, positional and named arguments, for who wants to make it again.
    """

    call: tuple[tuple[Any, ...], dict[str, Any]]


def _as_outputs(cls: type[Function], returned: Any) -> tuple[Tensor, ...]:
    outputs = (returned,) if isinstance(returned, Tensor) else returned
    if not isinstance(outputs, (tuple, list)) or not outputs:
        raise KaelTypeError(
            f"{cls.__name__}.forward must return a tensor or a tuple of tensors, "
            f"got {type(returned).__name__}"
        )
    for output in outputs:
        if not isinstance(output, Tensor):
            raise KaelTypeError(
                f"{cls.__name__}.forward must return tensors, got {type(output).__name__}"
            )
    return tuple(outputs)


def _own(output: Tensor, others: tuple[Tensor, ...]) -> Tensor:
    """An input or earlier output handed back gets a tensor of its own, with its own history."""
    return output.detach() if output.requires_grad or any(output is x for x in others) else output


def _same(tensor: Tensor | None, outputs: tuple[Tensor, ...], fresh: list[Tensor]) -> Tensor | None:
    for output, own in zip(outputs, fresh, strict=True):
        if tensor is output:
            return own
    return tensor


def _record(
    cls: type[Function],
    ctx: FunctionContext,
    args: tuple[Any, ...],
    outputs: tuple[Tensor, ...],
    fresh: list[Tensor],
) -> None:
    edges = tuple(gradient_edge(arg) if isinstance(arg, Tensor) else None for arg in args)
    node = CustomNode(cls, ctx, edges, fresh)
    ctx._node = weakref.ref(node)
    # Arrays and storages, not tensors: a saved output would hold its own node alive.
    to_save = [_same(tensor, outputs, fresh) for tensor in ctx._to_save]
    node.saved = tuple(
        None if tensor is None else (tensor._array, tensor.storage, tensor.version)
        for tensor in to_save
    )
    for number, (output, own) in enumerate(zip(outputs, fresh, strict=True)):
        if own._array.dtype.kind != "f" or id(output) in ctx._non_differentiable:
            continue
        own._form = own.form.recorded
        own._grad_fn = node if len(fresh) == 1 else OutputOf(node, number, own)


class CustomNode(Node):
    """The node of one call of a `Function`."""

    __slots__ = ("ctx", "function", "outputs")

    def __init__(
        self,
        function: type[Function],
        ctx: FunctionContext,
        inputs: tuple[Node | None, ...],
        outputs: Sequence[Tensor],
    ) -> None:
        self.function = function
        self.ctx = ctx
        self.edges = inputs
        self.outputs = [(output._array.shape, output._array.dtype) for output in outputs]
        self.retained = None
        self.saved = ()
        # The gradient of several outputs arrives as `Arrived`, which has no shape of its own.
        single = len(outputs) == 1
        self.form = outputs[0].form if single else Arrived.form

    @property
    def name(self) -> str:
        """The class's name and `Backward`."""
        return f"{self.function.__name__}Backward"

    def arrived(self, upstream: Any) -> list[Array]:
        """Return one gradient an output: zeros where none arrived."""
        if not isinstance(upstream, Arrived):
            return [upstream]
        return [
            upstream.parts[number] if number in upstream.parts else np.zeros(shape, dtype)
            for number, (shape, dtype) in enumerate(self.outputs)
        ]

    def apply(self, upstream: Any) -> Gradients:
        """Call the class's `backward` with tensors and check what it returns."""
        if self.saved is None:
            raise_released(self)
        grads = [_lent(part) for part in self.arrived(upstream)]
        with observing(None):
            returned = self.function.backward(self.ctx, *grads)
        gradients = returned if isinstance(returned, (tuple, list)) else (returned,)
        expected = len(self.inputs)
        if len(gradients) > expected and all(g is None for g in gradients[expected:]):
            gradients = gradients[:expected]
        if len(gradients) != expected:
            raise KaelError(
                f"Function {self.name} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(gradients)}): {self.function.__name__}.backward "
                "must return one gradient for each argument of forward, None where there is none"
            )
        return tuple(self._array_of(gradient, index) for index, gradient in enumerate(gradients))

    def _array_of(self, gradient: Any, index: int) -> Array | None:
        if gradient is None:
            return None
        if not isinstance(gradient, Tensor):
            raise KaelTypeError(
                f"Function {self.name} returned an invalid gradient at index {index} - got "
                f"{type(gradient).__name__} but expected a tensor or None"
            )
        return gradient._array


class LentStorage(Storage):
    """The storage of a gradient while a `backward` has it: other edges may hold the same array."""

    __slots__ = ()

    lent = True


def _lent(array: Array) -> Tensor:
    tensor = Tensor(array)
    tensor._storage = LentStorage()
    return tensor


class Arrived:
    """The gradients that have arrived for a function of several outputs, by output number."""

    __slots__ = ("parts",)

    # Any other shape and dtype, so that the walk takes this one for fitting.
    form: Any = SimpleNamespace(shape=None, dtype=None)
    shape = form.shape
    dtype = form.dtype

    def __init__(self, parts: dict[int, Array]) -> None:
        self.parts = parts

    def __add__(self, other: Arrived) -> Arrived:
        return Arrived({**self.parts, **other.parts})

    def __iadd__(self, other: Arrived) -> Arrived:
        self.parts.update(other.parts)
        return self


class OutputOf(Node):
    """The edge (node, output number) of one output of a function with several.

    It takes part in the walk as a node of its own, so that ordinary operations, with one output,
    pay nothing for output numbers.
    """

    __slots__ = ("node", "number")

    def __init__(self, node: CustomNode, number: int, output: Tensor) -> None:
        self.node = node
        self.number = number
        self.edges = node
        self.form = output.form
        self.retained = None
        self.saved = ()

    @property
    def name(self) -> str:
        """The function's name and the output's number."""
        return f"{self.node.name}[{self.number}]"

    @property
    def owner(self) -> Node:
        """The function's node."""
        return self.node

    def apply(self, upstream: Array) -> Gradients:
        """Hand the gradient on, marked with the output's number."""
        return (Arrived({self.number: upstream}),)  # type: ignore[return-value]
