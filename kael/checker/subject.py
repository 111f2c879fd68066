"""The formula under check, as the checker drives it: evaluate, differentiate, move its inputs.

A subject holds the arrays that are moved in place (always put back, also when the formula
raises), evaluates the formula at wherever they are, and asks for its analytic gradient at the
given point. `TensorSubject` drives a function of tensors, `OutsideSubject` one of NumPy arrays
with a gradient that comes from elsewhere. What the numbers mean is decided by others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from kael.checker.model import Array, Floats
from kael.checker.numeric import EPSILON
from kael.engine.backward import backward
from kael.engine.grad_mode import enable_grad, no_grad, observing
from kael.errors import KaelTypeError, KaelValueError
from kael.tensors import Tensor


class Subject:
    """A formula, its differentiated inputs, and where each of them stands in the call."""

    names: list[str]
    positions: list[int]
    arrays: list[Array]
    output_shape: tuple[int, ...]
    evaluations: int
    float32: bool = False
    raised: str | None = None
    """What the function said where it raised, beside the given point."""
    given: list[Array]
    """The values of `arrays` at the given point."""

    def evaluate(self) -> Floats:
        """The output at the present inputs, flat and owned."""
        raise NotImplementedError

    def record(self) -> Floats:
        """The output as the analytic side computes it; `gradients` may be asked for then."""
        raise NotImplementedError

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Let `record` be called at other points, and come back to what was recorded before."""
        yield

    def gradients(self, upstream: Floats) -> list[Array | None]:
        """The analytic gradient of each differentiated input; None where none arrived."""
        raise NotImplementedError

    def beside(self, error: Exception) -> Floats:
        """No finite value, for a function that raised at a point it was moved to.

        What it raises at the given point is let out.
        """
        moved = any(
            array.tobytes() != given.tobytes()
            for array, given in zip(self.arrays, self.given, strict=True)
        )
        if not moved:
            raise error
        self.raised = self.raised or str(error).partition("\n")[0] or type(error).__name__
        return np.full(math.prod(self.output_shape), np.nan)

    def recording(self) -> Any:
        """The context in which the numeric side evaluates."""
        return no_grad()

    def rounding(self, upstream: Floats) -> float:
        """The rounding of a weighted sum of the output that its own value does not show."""
        return 0.0

    @property
    def originals(self) -> list[Array]:
        """The inputs as the formula itself is given them, in its own dtype."""
        return self.arrays

    @property
    def differentiable(self) -> bool:
        """Whether the recorded output is connected to anything."""
        return True

    def flat(self, which: int) -> Any:
        """One input as a flat sequence that writes through."""
        array = self.arrays[which]
        return array.reshape(-1) if array.flags.c_contiguous else array.flat

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put every input back on the way out, whatever happened."""
        kept = [array.copy() for array in self.arrays]
        try:
            yield
        finally:
            for array, original in zip(self.arrays, kept, strict=True):
                array[...] = original


class TensorSubject(Subject):
    """A function of tensors; its gradient is what `backward` leaves in the leaves.

    A float32 formula is evaluated again on float64 copies of its inputs for the numeric side.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Tensor],
        names: Sequence[str],
        chosen: Sequence[int],
    ) -> None:
        self.function = function
        self.inputs = list(inputs)
        self.positions = list(chosen)
        self.names = [names[i] for i in chosen]
        self.leaves = [self.inputs[i] for i in chosen]
        self.float32 = any(leaf._array.dtype == np.float32 for leaf in self.leaves)
        self.moved = self.inputs
        if self.float32:
            self.moved = [_widened(tensor) for tensor in self.inputs]
        self.arrays = [self.moved[i]._array for i in chosen]
        self.given = [array.copy() for array in self.arrays]
        self.evaluations = 0
        self.output: Tensor | None = None
        self.output_shape = ()

    def evaluate(self) -> Floats:
        self.evaluations += 1
        try:
            output = self.function(*self.moved)
        except Exception as error:
            return self.beside(error)
        if not isinstance(output, Tensor):
            _refuse_output(output)
        _require_shape(output.shape, self.output_shape)
        # A copy: the output may be a view of the very input that is being moved.
        return np.array(output._array, dtype=np.float64).reshape(-1)

    def evaluate_complex(self, arrays: Sequence[Array]) -> Array:
        """The output at complex inputs, flat; for operations that extend to them."""
        self.evaluations += 1
        inputs = list(self.moved)
        for position, array in zip(self.positions, arrays, strict=True):
            inputs[position] = Tensor(array)
        output = self.function(*inputs)
        if not isinstance(output, Tensor):
            _refuse_output(output)
        return np.array(output._array).reshape(-1)

    def record(self) -> Floats:
        self.evaluations += 1
        with enable_grad():
            output = self.function(*self.inputs)
        if not isinstance(output, Tensor):
            _refuse_output(output)
        self.output = output
        self.output_shape = output.shape
        return np.array(output._array, dtype=np.float64).reshape(-1)

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        kept = self.output
        try:
            yield
        finally:
            self.output = kept

    def rounding(self, upstream: Floats) -> float:
        """The rounding of every intermediate value, carried to the output by its own gradient.

        (x + 1e12) - 1e12 is of size 1 and rounded to 1e-4: the sum inside shows it. First-order
        error analysis, each recorded operation being off by its last bit.
        """
        return EPSILON * norm_of(value * arrived for value, arrived in self.inside(upstream))

    def inside(self, upstream: Floats) -> list[tuple[Array, Array]]:
        """Each recorded result at the present inputs, in order, and the gradient that reached it.

        Those that none reached have zeros.
        """
        results: list[tuple[Any, Array]] = []
        kept: list[Any] = []

        def observe(
            op: Any,
            inputs: tuple[Tensor, ...],
            arguments: tuple[Any, ...],
            output: Tensor,
            node: Any,
        ) -> None:
            kept.append((op, inputs, arguments))
            if node is not None and output._array.dtype.kind == "f":
                results.append((node, output._array))

        arrivals = _Arrivals()
        with enable_grad(), observing(observe):
            output = self.function(*self.moved)
        self.evaluations += 1
        if not output.requires_grad:
            return []
        seed = Tensor(upstream.reshape(output.shape).astype(output.dtype))
        # The output may be one that the function keeps and hands out again.
        backward(output, seed, retain_graph=True, watch=arrivals, into={})
        found = []
        for node, value in results:
            arrived = arrivals.at.get(node)
            if getattr(arrived, "shape", None) != value.shape:
                arrived = np.zeros(value.shape)
            found.append((value, np.asarray(arrived, dtype=np.float64)))
        return found

    @property
    def originals(self) -> list[Array]:
        return [leaf._array for leaf in self.leaves]

    @property
    def differentiable(self) -> bool:
        return self.output is not None and self.output.requires_grad

    def gradients(self, upstream: Floats) -> list[Array | None]:
        assert self.output is not None
        if not self.output.requires_grad:
            return [None] * len(self.leaves)
        seed = upstream.reshape(self.output_shape).astype(self.output.dtype)
        # Other tensors may take part too, a model's parameters: nobody's grad is touched.
        found: dict[Tensor, Array] = {}
        backward(self.output, Tensor(seed), retain_graph=True, into=found)
        return [found.get(leaf) for leaf in self.leaves]


class _Arrivals:
    """A watch on a backward that keeps what reaches each node."""

    def __init__(self) -> None:
        self.at: dict[Any, Any] = {}

    def before(self, node: Any, upstream: Any) -> None:
        self.at[node] = upstream

    def after(self, node: Any, upstream: Any, gradients: Any) -> None:
        """Nothing is asked of what the node gave."""


def norm_of(parts: Iterable[Array]) -> float:
    """The root of the sum of all squares; what is NaN does not count."""
    size = 0.0
    for part in parts:
        terms = np.abs(np.where(np.isnan(part), 0.0, part))
        largest = float(terms.max(initial=0.0))
        if 0 < largest < np.inf:
            # Scaled first: the square of a large term need not exist.
            largest *= float(np.sqrt(np.sum((terms / largest) ** 2)))
        size = float(np.hypot(size, largest))
    return size


class OutsideSubject(Subject):
    """A function of NumPy arrays with a claimed gradient: `grad(*inputs)` or `vjp(g, *inputs)`."""

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Any],
        names: Sequence[str],
        chosen: Sequence[int],
        grad: Callable[..., Any] | None = None,
        vjp: Callable[..., Any] | None = None,
    ) -> None:
        if (grad is None) == (vjp is None):
            raise KaelTypeError("a function outside kael is checked with either grad= or vjp=")
        self.function = function
        self.grad = grad
        self.vjp = vjp
        self.inputs = [np.array(value) for value in inputs]
        self.positions = list(chosen)
        for i in chosen:
            self.inputs[i] = np.array(self.inputs[i], dtype=np.float64)
        self.names = [names[i] for i in chosen]
        self.arrays = [self.inputs[i] for i in chosen]
        self.given = [array.copy() for array in self.arrays]
        self.evaluations = 0
        self.output_shape = ()

    def evaluate(self) -> Floats:
        self.evaluations += 1
        try:
            output = self.function(*self._arguments())
        except Exception as error:
            # math.log(-1) raises where NumPy gives NaN.
            return self.beside(error)
        value = np.array(output, dtype=np.float64)
        _require_shape(value.shape, self.output_shape)
        return value.reshape(-1)

    def record(self) -> Floats:
        self.evaluations += 1
        output = np.array(self.function(*self._arguments()))
        if output.dtype.kind not in "fiub":
            raise KaelTypeError(
                f"a function under check must return real numbers, got {output.dtype}"
            )
        self.output_shape = output.shape
        if self.grad is not None and output.size != 1:
            raise KaelValueError(
                "grad= is for a scalar result; this function returns shape "
                f"{list(output.shape)}: give vjp=, called vjp(g, *inputs)"
            )
        return output.astype(np.float64).reshape(-1)

    def gradients(self, upstream: Floats) -> list[Array | None]:
        if self.vjp is not None:
            returned = self.vjp(upstream.reshape(self.output_shape), *self._arguments())
            factor = None
        else:
            assert self.grad is not None
            returned = self.grad(*self._arguments())
            factor = float(upstream[0])
        several = isinstance(returned, (tuple, list)) and len(self.inputs) > 1
        parts = list(returned) if several else [returned]
        if len(parts) == len(self.inputs):
            parts = [parts[i] for i in self.positions]
        elif len(parts) != len(self.arrays):
            raise KaelValueError(
                f"the claimed gradient has {len(parts)} parts for {len(self.arrays)} inputs"
            )
        for name, part in zip(self.names, parts, strict=True):
            if np.iscomplexobj(part):
                raise KaelTypeError(f"the claimed gradient of {name} must be real, got complex")
        claimed = [None if part is None else np.array(part, dtype=np.float64) for part in parts]
        for name, array, part in zip(self.names, self.arrays, claimed, strict=True):
            if part is not None and part.shape != array.shape:
                raise KaelValueError(
                    f"the claimed gradient of {name} has shape {list(part.shape)} "
                    f"but expected shape {list(array.shape)}"
                )
        return [p if p is None or factor is None else p * factor for p in claimed]

    def _arguments(self) -> list[Array]:
        # Copies: outside code may write into its arguments.
        return [array.copy() for array in self.inputs]


def _widened(tensor: Tensor) -> Tensor:
    """A float64 copy of a floating tensor; other dtypes pass as they are."""
    if tensor._array.dtype.kind != "f":
        return tensor
    return Tensor(tensor._array.astype(np.float64)).requires_grad_(tensor.requires_grad)


def _require_shape(found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if found != expected:
        raise KaelValueError(
            f"the output's shape is {list(expected)} at the given point and {list(found)} right "
            "beside it\na function whose shape depends on its values has no derivative there"
        )


def _refuse_output(output: object) -> None:
    if isinstance(output, (np.ndarray, np.generic)):
        raise KaelTypeError(
            "the function under check returned a NumPy array, which has no history; "
            "return a tensor (numpy() and np.asarray() leave the graph)"
        )
    raise KaelTypeError(
        f"the function under check must return one tensor, got {type(output).__name__}"
    )
