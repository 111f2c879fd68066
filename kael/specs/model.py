"""What a spec is once it is read: its inputs, its formula and what is claimed of it.

Loaders make these from YAML or Python; running and comparing is the runner's. Nothing here reads
files of specs, and importing it is cheap.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kael import dtypes
from kael.engine.grad_mode import no_grad
from kael.errors import KaelError
from kael.specs.expression import MAX_ELEMENTS, Expression
from kael.specs.inputs import Input
from kael.specs.place import Place, SpecError
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

EXPECT_ATOL = 1e-6
EXPECT_RTOL = 1e-5
MODES = ("projection", "full", "adaptive", "complex", "fast")


@dataclass
class Golden:
    """A number or an array that the author states, and where."""

    array: Array
    place: Place


@dataclass
class Expect:
    """Golden values: of the output, and of gradients by input (None: there is no gradient)."""

    place: Place
    value: Golden | None = None
    grad: Mapping[str, Golden | None] = field(default_factory=dict)
    atol: float = EXPECT_ATOL
    rtol: float = EXPECT_RTOL


@dataclass
class Case:
    """The same formula at other inputs, with expectations of its own."""

    name: str
    place: Place
    inputs: Mapping[str, Input] = field(default_factory=dict)
    expect: Expect | None = None


@dataclass
class Spec:
    """One formula and what its author says of it.

    `output` is an expression (with `let` before it) or a Python function of the inputs. `grad` and
    `vjp` claim the gradient of code outside kael; the function then takes and returns arrays.
    `upstream` is None, "ones", "randn" or a value. `gradcheck` holds only the options given.
    """

    name: str
    place: Place
    output: Expression | Function
    inputs: dict[str, Input]
    file: str | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    let: dict[str, Expression] = field(default_factory=dict)
    upstream: str | Golden | None = None
    expect: Expect | None = None
    derivatives: dict[str, Expression | Function] = field(default_factory=dict)
    gradcheck: dict[str, Any] = field(default_factory=dict)
    xfail: str | None = None
    skip: str | None = None
    cases: dict[str, Case] = field(default_factory=dict)
    grad: Function | None = None
    vjp: Function | None = None
    max_elements: int = MAX_ELEMENTS

    @property
    def outside(self) -> bool:
        """Whether the function is code outside kael, which takes and returns arrays."""
        return self.grad is not None or self.vjp is not None

    def instances(self) -> list["Instance"]:
        """Return what there is to check: the base first, then each case."""
        return [Instance(self, None), *(Instance(self, name) for name in self.cases)]


class Instance:
    """A spec at the inputs of its base or of one case."""

    __slots__ = ("case", "inputs", "spec")

    def __init__(self, spec: Spec, case: str | None) -> None:
        self.spec = spec
        self.case = case
        self.inputs: dict[str, Input] = dict(spec.inputs)
        if case is not None:
            self.inputs |= spec.cases[case].inputs

    def __repr__(self) -> str:
        return f"Instance({self.title!r})"

    @property
    def title(self) -> str:
        """`spec`, or `spec[case]`."""
        return self.spec.name if self.case is None else f"{self.spec.name}[{self.case}]"

    @property
    def place(self) -> Place:
        """Where the spec, or its case, stands."""
        return self.spec.place if self.case is None else self.spec.cases[self.case].place

    @property
    def expect(self) -> Expect | None:
        """The golden values of the base, or those of the case itself."""
        return self.spec.expect if self.case is None else self.spec.cases[self.case].expect

    def leaves(self, seed: int = 0, dtype: dtypes.DType | None = None) -> dict[str, Tensor]:
        """Return fresh leaf tensors by name, in the order of the inputs.

        `dtype` is the floating dtype of numbers and generators. Raises `SpecError`.
        """
        default = dtypes.default_dtype() if dtype is None else dtype
        leaves = {}
        for name, given in self.inputs.items():
            stream = (seed, self.spec.name, name)
            array = given.array(stream, default, self.spec.max_elements)
            leaves[name] = leaf = Tensor(array)
            if given.wants_gradient(array.dtype):
                leaf.requires_grad_()
        return leaves

    def forward(self, leaves: Mapping[str, Tensor]) -> Tensor:
        """Return the output at the given leaves.

        Raises `SpecError` at the sub-expression, or in the function, that cannot be evaluated.
        """
        return self.evaluate(leaves)[0]

    def evaluate(self, leaves: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Any]]:
        """Return the output and the values of the `let` names."""
        output = self.spec.output
        if not isinstance(output, Expression):
            return self._call(output, leaves), {}
        names: dict[str, Any] = dict(leaves)
        for name, expression in self.spec.let.items():
            names[name] = expression.value(names, self.spec.max_elements)
        result = output.evaluate(names, self.spec.max_elements)
        return result, {name: names[name] for name in self.spec.let}

    def claim(
        self, name: str, leaves: Mapping[str, Tensor], lets: Mapping[str, Any] | None = None
    ) -> Array:
        """Return the derivative that the author claims for an input, as it is (not broadcast).

        Raises `SpecError` when it cannot be evaluated or its shape does not broadcast to the
        input's.
        """
        claimed = self.spec.derivatives[name]
        shape = leaves[name].shape
        with no_grad():
            if isinstance(claimed, Expression):
                if lets is None:
                    lets = self.evaluate(leaves)[1] if self.spec.let else {}
                array = claimed.evaluate({**leaves, **lets}, self.spec.max_elements).numpy()
                place = claimed.place
            else:
                given = leaves.values() if not self.spec.outside else arrays_of(leaves)
                array = as_array(
                    self._run(claimed, given), f"the derivative of '{name}'", self.place
                )
                place = self.place
        try:
            np.broadcast_to(array, shape)
        except ValueError:
            raise SpecError(
                f"the derivative of '{name}' has shape {list(array.shape)}, which does not "
                f"broadcast to the input's {list(shape)}",
                place,
            ) from None
        return array

    def outside_gradients(
        self, leaves: Mapping[str, Tensor], upstream: Array
    ) -> dict[str, Array | None]:
        """Return the gradients that code outside kael claims, by input (None where it has none).

        Raises `SpecError` when there is not one for each input.
        """
        function = self.spec.vjp or self.spec.grad
        assert function is not None
        before = [upstream] if self.spec.vjp is not None else []
        result = self._run(function, [*before, *arrays_of(leaves)])
        wanted = [name for name, leaf in leaves.items() if leaf.requires_grad]
        if isinstance(result, Mapping):
            parts = {name: result.get(name) for name in leaves}
        elif isinstance(result, (tuple, list)) and len(result) == len(leaves) != 1:
            parts = dict(zip(leaves, result, strict=True))
        elif isinstance(result, (tuple, list)) and len(result) == len(wanted):
            parts = dict(zip(wanted, result, strict=True))
        elif len(wanted) == 1:
            parts = {wanted[0]: result}
        else:
            raise SpecError(
                f"the claimed gradient must be one array for each of {', '.join(leaves)}",
                self.spec.place,
            )
        return {
            name: None if parts.get(name) is None else
            as_array(parts[name], f"the gradient of '{name}'", self.spec.place)
            for name in leaves
        }  # fmt: skip

    def _call(self, function: Function, leaves: Mapping[str, Tensor]) -> Tensor:
        if self.spec.outside:
            result = self._run(function, arrays_of(leaves))
            if isinstance(result, Tensor):
                message = (
                    f"{self.spec.name} has grad= or vjp= and must return an array, got a tensor"
                )
                raise SpecError(message, self.spec.place)
            return Tensor(as_array(result, f"the result of {self.spec.name}", self.spec.place))
        result = self._run(function, leaves.values())
        if isinstance(result, Tensor):
            return result
        kind = type(result).__name__
        if isinstance(result, (np.ndarray, np.generic)):
            hint = "an array has no history, the gradient stops there: use kael's operations"
        elif result is None:
            kind, hint = "nothing", "end the function with return"
        else:
            hint = "a gradient is checked of one tensor"
        raise SpecError(
            f"{self.spec.name} must return a tensor, got {kind}", self.spec.place, hint=hint
        )

    def _run(self, function: Function, values: Any) -> Any:
        from kael.specs.user_code import run

        names = list(self.inputs)
        if function is self.spec.output:
            return run(function, (), dict(zip(names, values, strict=True)), self.spec)
        return run(function, tuple(values), {}, self.spec)


def arrays_of(leaves: Mapping[str, Tensor]) -> list[Array]:
    """Return copies of the leaves' values, which the code that gets them may write to."""
    return [np.array(leaf.numpy()) for leaf in leaves.values()]


def as_array(value: Any, what: str, place: Place) -> Array:
    """Return what a function gave as an array of numbers."""
    if isinstance(value, Tensor):
        return np.array(value.numpy())
    try:
        array = np.asarray(value)
    except (ValueError, KaelError):
        array = np.asarray(None)
    if array.dtype.kind not in "biufc":
        raise SpecError(f"{what} is no array of numbers, got {type(value).__name__}", place)
    return array


def names_of(instances: Sequence[Instance]) -> Iterator[str]:
    """Yield the names of the inputs of some instances, each once."""
    yield from dict.fromkeys(name for instance in instances for name in instance.inputs)
