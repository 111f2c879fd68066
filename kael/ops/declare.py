"""How an operation is declared: once, and everything else follows.

A declaration gives an operation its signature, forward kernel, formulas, their text, where it has
a kink, how it batches and where its tests draw from. From it come the function in `kael`, the
method of `Tensor`, the name in the expression language, the row of `kael ops`, the "saves" column
of `kael explain`, and tests that nobody writes by hand.

    tanh = unary(
        "tanh", np.tanh,
        vjp=lambda g, out: g - g * out * out,
        text="g * (1 - out**2)",
        domain=normal,
    )

Formulas see NumPy arrays; what they read is named by their parameters (see `engine.formula`).
`text` is an expression in kael's own language over `g`, `out`, the parameters and `shape(x)`, and
the registry test compares it with the formula.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from types import FrameType
from typing import Any, Literal

import numpy as np

from kael import dtypes, kernels, shapes
from kael.engine.formula import Formula, Plan, formula_parameters, readable_names
from kael.engine.grad_mode import state
from kael.errors import KaelError, KaelIndexError, KaelTypeError, KaelValueError
from kael.kernels.small import Made
from kael.ops.arguments import ByForm
from kael.ops.calling import (
    Absent,
    are_plain,
    can_be_kept,
    compile_call,
    compile_operator,
    constant,
)
from kael.ops.registry import ALIASES, COMPOSITES, REGISTRY
from kael.ops.samples import Domain, Sample, binary_samples, unary_samples
from kael.ops.settle import settle
from kael.tensors import Array, Tensor, as_array

Kernel = Callable[..., Any]
Kink = Callable[..., tuple[Array, ...]]
Arguments = tuple[Any, ...]
Picker = Callable[[tuple[Any, ...]], tuple[Any, ...]]
Pickers = tuple[Picker, Picker]
Prepare = Callable[[tuple[Tensor, ...], Arguments], Arguments]
BatchRule = Callable[[Arguments, Sequence[tuple[int, ...]]], Arguments | None]
Batch = Literal["elementwise"] | BatchRule | None
Small = Callable[..., Made]
Samples = Callable[["np.random.Generator"], Iterable[Sample]]

# How many plans an operation keeps: one for each set of forms, and of arguments where they count.
_KEPT_PLANS = 256

# Classes of plain arguments that no call has to convert or refuse.
_PLAIN = frozenset((type(None), bool, int, float, tuple, list))
_LITERALS: Mapping[str, Any] = {"None": None, "True": True, "False": False}


class Operation:
    """One operation: what the engine, the checker, the inspectors and the docs know of it.

    Attributes
    ----------
    name, node_name : the function's name, and the node's (`Log1pBackward`)
    parameters : all parameter names in order; `defaults` maps the optional ones
    inputs : the tensor parameters; `arguments`: the plain ones
    variadic : the one tensor parameter is a list of tensors
    rest : the parameter that also takes several positional values (`reshape(x, 2, 3)`)
    kernel : forward, on arrays and arguments
    small : makes the kernel and the inputs' formulas for a few entries of some forms
    vjps, vjp_text : one formula and its text per input; None and "" where not differentiable
    joint : one formula that gives the gradients of all inputs at once
    broadcasts : gradients are summed and cast back to each input's shape and dtype
    promotes : the inputs that are brought to one dtype before the kernel runs
    kink : arrays that are 0 at a kink and whose sign tells the branch; `at_kink` says what is given
    analytic : the kernel extends to complex numbers with the same formula
    batch : "elementwise", or how arguments change under a leading axis, which every operand with
        a formula then has (None where the call cannot be batched); None: one by one
    samples : draws inputs and arguments for the tests
    booleans : what to write instead, where the kernel takes no booleans
    """

    def __init__(
        self,
        signature: str,
        kernel: Kernel,
        *,
        vjp: Mapping[str, Formula | None] | None = None,
        text: Mapping[str, str] | None = None,
        tensors: tuple[str, ...] = (),
        joint: Formula | None = None,
        joint_inputs: tuple[str, ...] = (),
        node: str | None = None,
        prepare: Prepare | None = None,
        small: Small | None = None,
        broadcasts: bool = False,
        promotes: tuple[str, ...] = (),
        real: bool = False,
        view: bool = False,
        kink: Kink | None = None,
        at_kink: str = "",
        analytic: bool = False,
        batch: Batch = None,
        samples: Samples | None = None,
        strings: tuple[str, ...] = (),
        convention: str = "",
        booleans: str = "",
        prose: bool = False,
        method: bool = True,
        function: bool = True,
        aliases: tuple[str, ...] = (),
        doc: str = "",
        family: str = "",
    ) -> None:
        self.signature = signature
        self.name, self.parameters, self.defaults, self.variadic, self.rest = _parse(signature)
        formulas = dict(vjp or {})
        wanted = {*formulas, *tensors, *joint_inputs}
        self.inputs = tuple(name for name in self.parameters if name in wanted)
        self.arguments = tuple(name for name in self.parameters if name not in wanted)
        self.node_name = node or f"{_pascal(self.name)}Backward"
        self.ufunc = _plain_ufunc(kernel)
        self.kernel: Kernel = kernel if self.ufunc is None else kernels.pooled(self.ufunc)
        self.vjps = tuple(formulas.get(name) for name in self.inputs)
        self.vjp_text = tuple((text or {}).get(name, "") for name in self.inputs)
        self.joint = joint
        self.differentiable = joint is not None or any(f is not None for f in self.vjps)
        self.prepare = prepare
        # Whether calls of equal forms and arguments are prepared alike.
        self.by_form = not self.variadic and (prepare is None or isinstance(prepare, ByForm))
        self.small = small
        self.broadcasts = broadcasts
        self.promotes = promotes
        self.real = real
        self.view = view
        self.kink = kink
        self.at_kink = at_kink
        self.analytic = analytic
        self.batch: Batch = batch
        self.samples = samples
        self.strings = strings
        self.convention = convention
        self.booleans = booleans
        self.prose = prose
        self.method = method
        self.is_function = function
        self.aliases = aliases
        self.doc = doc
        self.family = family
        self.module = ""
        self.plans: dict[Any, Plan] = {}
        self.layouts: dict[Any, Callable[..., Any]] = {}
        # By how many values a call gives in order, and the names of the others.
        self._pickers: dict[tuple[int | str, ...], Pickers] = {}
        self._optional = tuple(self.defaults.values())
        self._check()
        _register(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operation {self.signature}>"

    @property
    def saves(self) -> tuple[tuple[str, ...], ...]:
        """The tensors each input's formula keeps: parameter names, and `out` for the output."""
        tensors = {"out", *self.inputs}
        formulas = self.vjps if self.joint is None else (self.joint,) * len(self.inputs)
        return tuple(
            ()
            if formula is None
            else tuple(name for name in formula_parameters(formula)[1:] if name in tensors)
            for formula in formulas
        )

    def plan_for(self, inputs: tuple[Tensor, ...], arguments: Arguments) -> Plan:
        """Return the plan for prepared operands and arguments, made once for their forms."""
        forms = tuple([tensor.form for tensor in inputs])
        # Whether the key tells everything that a call's shapes follow from.
        known = not self.variadic and not arguments
        key: Any = forms if len(forms) > 1 else forms[0]
        if self.variadic:
            key = tuple([form.requires_grad for form in forms])
        elif arguments and self.by_form and are_plain(arguments):
            # Marked, so that no arguments that a call gives are taken for prepared ones.
            key, known = (Plan, *forms, *arguments), True
        plan = self.plans.get(key)
        if plan is None:
            settled = settle(self, forms, arguments, known)
            plan = Plan(self, settled, arguments if known else None)
            self._keep(key, plan)
        return plan

    def _keep(self, key: Any, plan: Plan) -> None:
        if len(self.plans) >= _KEPT_PLANS:
            self.plans.clear()
        self.plans[key] = plan

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Tensor, ...], Arguments]:
        """Return a call's operands as tensors, and its arguments as the kernel takes them.

        Raises `KaelTypeError` where the call does not fit the signature.
        """
        if self.rest is not None and len(args) > len(self.parameters):
            at = self.parameters.index(self.rest)
            args = (*args[:at], args[at:])
        pick = self._pickers.get((len(args), *kwargs)) or self._new_pickers(args, kwargs)
        given = (*args, *kwargs.values(), *self._optional)
        return self.prepared(pick[0](given), pick[1](given))

    def prepared(
        self, inputs: tuple[Any, ...], arguments: Arguments
    ) -> tuple[tuple[Tensor, ...], Arguments]:
        """Return a bound call's operands as tensors, and its arguments as the kernel takes them."""
        if self.variadic:
            inputs = self._listed(inputs[0])
        else:
            for value in inputs:
                if value.__class__ is not Tensor:
                    inputs = self._converted(inputs)
                    break
        for value in arguments:
            if value.__class__ not in _PLAIN:
                arguments = tuple(map(self._plain, self.arguments, arguments))
                break
        if self.prepare is not None:
            arguments = self.prepare(inputs, arguments)
        return inputs, arguments

    def _listed(self, operands: Any) -> tuple[Tensor, ...]:
        if self.rest and isinstance(operands, Tensor):
            operands = [operands]
        if isinstance(operands, Tensor) or not isinstance(operands, (list, tuple)):
            raise KaelTypeError(
                f"{self.name} takes a list of tensors, got {type(operands).__name__}"
            )
        if not operands:
            raise KaelValueError(f"{self.name} needs at least one tensor")
        return self.operands(list(operands), range(len(operands)))

    def _converted(self, values: Iterable[Any]) -> tuple[Tensor, ...]:
        # None asks for an optional operand's default.
        given = [
            self.defaults.get(name) if value is None else value
            for name, value in zip(self.inputs, values, strict=True)
        ]
        promoting = [i for i, name in enumerate(self.inputs) if name in self.promotes]
        return self.operands(given, promoting)

    def operands(self, values: list[Any], promoting: Collection[int]) -> tuple[Tensor, ...]:
        """Return every operand as a tensor; Python numbers take the dtype of those beside them.

        Only operands that promote do: a condition or an index beside a float stays what it is.
        """
        strong = None
        for index in promoting:
            value = values[index]
            if not isinstance(value, (int, float)):
                dtype = (value if isinstance(value, Tensor) else self._tensor(value)).dtype
                strong = dtype if strong is None else dtypes.promote(strong, dtype)
        return tuple(
            value
            if isinstance(value, Tensor)
            else self._tensor(value, strong if index in promoting else None)
            for index, value in enumerate(values)
        )

    def _tensor(self, value: Any, beside: dtypes.DType | None = None) -> Tensor:
        if value is None or isinstance(value, (str, bytes, dict, set)):
            raise KaelTypeError(f"{self.name} takes tensors and numbers, got {value!r}")
        if beside is not None and isinstance(value, (int, float)):
            return constant(value, beside)
        if isinstance(value, (list, tuple)) and _has_history(value):
            raise KaelTypeError(
                f"{self.name} takes a tensor, and a list of tensors is none: its history would be "
                "lost\nstack or cat makes one tensor of them"
            )
        return Tensor(as_array(value))

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise KaelTypeError(
                    f"{self.name}: {name} must be a plain value, got a tensor of shape "
                    f"{shapes.text(value.shape)}"
                )
            if value.requires_grad and self.differentiable:
                raise KaelTypeError(
                    f"{self.name}: {name} is a plain argument and gets no gradient; "
                    "detach() the tensor to pass its value"
                )
            return value.item()
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size == 1):
            value = value.item()  # a NumPy float64 would widen a float32 operand
        if isinstance(value, (complex, bytes, dict, set, np.ndarray)):
            raise KaelTypeError(
                f"{self.name}: {name} must be a plain value, got {type(value).__name__}"
            )
        if isinstance(value, str) and name not in self.strings:
            raise KaelTypeError(f"{self.name}: {name} takes no string, got {value!r}")
        return value

    def compute(self, arrays: Sequence[Array], arguments: Arguments) -> Array:
        """Run the kernel on arrays as a call would: promoted, quiet, and giving an array."""
        if self.promotes or self.real:
            arrays = self.promoted(arrays)
        if self.variadic:
            arrays = (arrays,)  # type: ignore[assignment]
        array: Array = state.here.run(self.kernel, *arrays, *arguments)
        return array if array.__class__ is np.ndarray else np.asarray(array)

    def promoted(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Return arrays with those that promote brought to one dtype."""
        first = arrays[0].dtype
        if first.kind == "f":
            for array in arrays:
                if array.dtype is not first:
                    break
            else:
                return arrays
        names = self.inputs * len(arrays) if self.variadic else self.inputs
        at = [i for i in range(len(arrays)) if names[i] in self.promotes or self.real]
        dtype: dtypes.DType | None = None
        for i in at:
            own = arrays[i].dtype
            if own.kind == "c":
                return arrays
            dtype = own if dtype is None else dtypes.promote(dtype, own)
        if dtype is None:
            return arrays
        if self.real and dtype.kind != "f":
            dtype = dtypes.default_dtype()
        if all(arrays[i].dtype == dtype for i in at):
            return arrays
        return [a.astype(dtype, copy=False) if i in at else a for i, a in enumerate(arrays)]

    def failure(self, error: Exception, given: Sequence[tuple[int, ...]]) -> KaelError:
        """Return the error to raise for what a kernel refused."""
        listed = " and ".join(shapes.text(shape) for shape in given)
        if self.broadcasts and isinstance(error, ValueError):
            try:
                shapes.broadcast(self.name, *given)
            except KaelValueError as clash:
                return clash
        if isinstance(error, MemoryError):
            return KaelError(f"{self.name}: not enough memory for operands of shape {listed}")
        if self.booleans and isinstance(error, TypeError):
            return KaelTypeError(f"{self.name} takes no booleans; {self.booleans}")
        kind = {IndexError: KaelIndexError, TypeError: KaelTypeError}.get(
            type(error), KaelValueError
        )
        return kind(f"{self.name}: {error} (shapes {listed})")

    def apply(self, inputs: tuple[Tensor, ...], arguments: Arguments = ()) -> Tensor:
        """Run a call whose operands and arguments are already prepared."""
        run = self.plan_for(inputs, arguments).run
        return run(arguments, *inputs) if self.arguments else run(*inputs)

    def call_unknown(
        self, values: tuple[Any, ...], more: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Tensor:
        """Run a call for which no plan is known, and keep the plan if it can be.

        `values` are those of the parameters in order, `more` and `named` what none takes.
        """
        if more:
            self.bind((*values, *more), named)  # which says that these are too many
        given = dict(zip(self.parameters, values, strict=True)) | dict(named)
        inputs, arguments = self.bind(
            (), {name: value for name, value in given.items() if value is not Absent}
        )
        plan = self.plan_for(inputs, arguments)
        plain = [given[name] for name in self.arguments]
        if plan.arguments is not None and can_be_kept(plain):
            key = [tensor.form for tensor in inputs]
            key += [part for value in plain for part in (value, value.__class__)]
            self._keep(tuple(key), plan)
        return plan.run(arguments, *inputs) if self.arguments else plan.run(*inputs)

    @cached_property
    def function(self) -> Callable[..., Tensor]:
        """What users call, under the operation's name."""
        # Not at the declaration: most programs use few operations, and compiling takes 0.25 ms.
        return self._named(compile_call(self))

    def make_operator(self) -> Callable[..., Tensor]:
        """Return the function as an operator between two tensors."""
        return self._named(compile_operator(self))

    def _new_pickers(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Pickers:
        """Return what picks operands and arguments out of the values of calls that look alike."""
        if len(args) > len(self.parameters):
            raise KaelTypeError(
                f"{self.name} takes at most {len(self.parameters)} arguments "
                f"({self.signature}), got {len(args)}"
            )
        in_order = self.parameters[: len(args)]
        for name in kwargs:
            if name in in_order:
                raise KaelTypeError(f"{self.name} got two values for {name!r}")
        at = {name: len(args) + len(kwargs) + i for i, name in enumerate(self.defaults)}
        at |= {name: i for i, name in enumerate((*in_order, *kwargs))}
        for name in self.parameters:
            if name not in at:
                raise KaelTypeError(f"{self.name} needs {name!r}: {self.signature}")
        for name in kwargs:
            if name not in self.parameters:
                raise KaelTypeError(f"{self.name} has no argument {name!r}: {self.signature}")
        pick = _picker([at[n] for n in self.inputs]), _picker([at[n] for n in self.arguments])
        self._pickers[len(args), *kwargs] = pick
        return pick

    def _named(self, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        function.__name__ = function.__qualname__ = self.name
        function.__module__ = "kael"
        function.__doc__ = f"{self.signature}\n\n{self.doc}"
        function.op = self  # type: ignore[attr-defined]
        return function

    def _check(self) -> None:
        readable = readable_names(self)
        for formula in (*self.vjps, self.joint):
            if formula is None:
                continue
            first, *others = formula_parameters(formula)
            unknown = [name for name in others if name not in readable]
            if first != "g" or unknown:
                raise KaelError(
                    f"{self.name}: a formula reads {unknown or first!r}; it takes g first, then "
                    f"names out of {', '.join(sorted(readable))}"
                )


class Composite:
    """A function made of operations: it records their nodes and has none of its own."""

    def __init__(
        self,
        signature: str,
        function: Callable[..., Any],
        *,
        doc: str,
        family: str,
        method: bool,
        strings: tuple[str, ...] = (),
    ) -> None:
        self.signature = signature
        self.name, self.parameters, self.defaults, self.variadic, self.rest = _parse(signature)
        self.function = function
        self.doc = doc
        self.family = family
        self.method = method
        self.strings = strings
        function.__doc__ = f"{signature}\n\n{doc}"
        self.is_function = True
        self.module = _declaring_module()
        COMPOSITES[self.name] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _has_history(values: list[Any] | tuple[Any, ...]) -> bool:
    """Tell whether a tensor in nested lists requires a gradient."""
    return any(
        value.requires_grad
        if isinstance(value, Tensor)
        else isinstance(value, (list, tuple)) and _has_history(value)
        for value in values
    )


def _picker(at: Sequence[int]) -> Picker:
    """Return what picks the values at some positions."""
    if len(at) > 1:
        return itemgetter(*at)
    # A slice, since one position alone would give a value and not a tuple of it.
    return itemgetter(slice(at[0], at[0] + 1) if at else slice(0))


def _plain_ufunc(kernel: Kernel) -> np.ufunc | None:
    """The kernel if it is a ufunc of one or two arrays, entry by entry."""
    if isinstance(kernel, np.ufunc) and kernel.signature is None and kernel.nin < 3:
        return kernel
    return None


def formula(ufunc: np.ufunc, *reads: str) -> Formula:
    """Return the formula that is one ufunc of the upstream gradient and of what it reads."""
    made = kernels.pooled(ufunc)
    marked: Any = made
    marked.parameters = ("g", *reads)
    return made


def unary(
    name: str,
    kernel: Kernel,
    *,
    vjp: Formula | None = None,
    text: str = "",
    domain: Domain,
    arguments: str = "",
    settings: Sequence[Mapping[str, Any]] = ({},),
    real: bool = True,
    analytic: bool = True,
    **facts: Any,
) -> Operation:
    """Declare an elementwise operation of one tensor; integers become the default float dtype.

    `arguments` follow `x` in the signature; `settings` are the values of them that tests use.
    """
    return Operation(
        f"{name}(x, {arguments})" if arguments else f"{name}(x)",
        kernel,
        vjp={"x": vjp},
        text={"x": text},
        real=real,
        analytic=analytic,
        batch="elementwise",
        samples=lambda rng: unary_samples(rng, domain, settings),
        **facts,
    )


def binary(
    name: str,
    kernel: Kernel,
    *,
    vjp: tuple[Formula | None, Formula | None] = (None, None),
    text: tuple[str, str] = ("", ""),
    domain: Domain | tuple[Domain, Domain],
    second: str = "other",
    analytic: bool = True,
    **facts: Any,
) -> Operation:
    """Declare an elementwise operation of two tensors that broadcast and promote."""
    domains = domain if isinstance(domain, tuple) else (domain, domain)
    return Operation(
        f"{name}(x, {second})",
        kernel,
        vjp={"x": vjp[0], second: vjp[1]},
        text={"x": text[0], second: text[1]},
        broadcasts=True,
        promotes=("x", second),
        analytic=analytic,
        batch="elementwise",
        samples=lambda rng: binary_samples(rng, *domains),
        **facts,
    )


def composite(
    signature: str, *, doc: str, family: str, method: bool = True, strings: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Composite]:
    """Declare a function made of operations."""

    def declare(function: Callable[..., Any]) -> Composite:
        return Composite(
            signature, function, doc=doc, family=family, method=method, strings=strings
        )

    return declare


def _register(op: Operation) -> None:
    if op.name in REGISTRY:
        raise KaelError(f"operation {op.name} is declared twice")
    REGISTRY[op.name] = op
    op.module = _declaring_module()
    for alias in op.aliases:
        ALIASES[alias] = op.name


def _declaring_module() -> str:
    """Return the module whose declaration is being run."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals["__name__"] == __name__:
        frame = frame.f_back
    return str(frame.f_globals["__name__"]) if frame is not None else ""


def _pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _parse(
    signature: str,
) -> tuple[str, tuple[str, ...], dict[str, Any], bool, str | None]:
    """Read `name(x, dim=None, *shape)`; `tensors[]` and `*tensors[]` mark a list of tensors."""
    name, _, inside = signature.partition("(")
    names: list[str] = []
    defaults: dict[str, Any] = {}
    variadic = False
    rest = None
    for part in inside.rstrip(")").split(", "):
        if not part:
            continue
        parameter, _, default = part.partition("=")
        if parameter.endswith("[]"):
            parameter, variadic = parameter[:-2], True
        if parameter.startswith("*"):
            parameter = rest = parameter[1:]
        names.append(parameter)
        if default:
            defaults[parameter] = _literal(default)
    return name, tuple(names), defaults, variadic, rest


def _literal(text: str) -> Any:
    if text in _LITERALS:
        return _LITERALS[text]
    if text[0] in "\"'":
        return text[1:-1]
    return int(text) if text.lstrip("-").isdigit() else float(text)
