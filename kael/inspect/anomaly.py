"""Where a NaN or an infinity is born, forward or backward, what it reaches, and why.

An origin is a non-finite input, an operation (or its gradient) that is not finite while everything
it read is, and one where an infinity becomes NaN. Each is followed to the output and the gradients
it reaches; one that reaches neither was masked and is a warning. The reasons in words are
`causes.py`'s, the guarded forms `guards.py`'s.

The following is exact for elementwise operations, views and indexing. Through others an origin
is taken to reach every non-finite element of the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from kael import shapes
from kael.engine.backward import backward
from kael.engine.node import AccumulateGrad, FunctionNode, Gradients, Node
from kael.inspect import causes, wording
from kael.inspect.graph import titles_of
from kael.inspect.guards import guarded
from kael.inspect.numbers import MOST_ELEMENTS, array_text, as_json
from kael.inspect.recorder import Names, Recorder, Step, Where
from kael.inspect.wording import SYMBOLS, listed
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]
Mask = Array
Origins = dict[int, Mask]  # which origin, and the elements it made non-finite

Grade = Literal["error", "warning"]
Phase = Literal["forward", "backward"]

MOST_INDICES = 100

# Operations that only move elements: run on a mask, their kernels tell which element went where.
_MOVING = {"where", "cat", "stack", "index", "index_select", "gather", "take_along_dim"}
_MOVING |= {"masked_select", "flip", "roll", "repeat", "movedim", "clone", "to"}


class Operand:
    """A value that an operation read: its name, its number at the element, its shape.

    A constant's name is the constant itself.
    """

    __slots__ = ("constant", "dtype", "name", "shape", "value")

    def __init__(
        self, name: str, value: Any, shape: Sequence[int], dtype: str, constant: bool = False
    ) -> None:
        self.constant = constant
        self.name = name
        self.value = value
        self.shape = list(shape)
        self.dtype = dtype


class Finding:
    """One origin of non-finite values.

    Attributes
    ----------
    phase : "forward" or "backward"
    op, node : the operation's name ("input" for an input) and its node's, None without one
    where : its sub-expression; `expr` is its text
    kind : "NaN" or "Infinity"; `word` is the same for people, "-inf" where all are that
    indices, count : the first elements, and how many there are
    operands : what was read at the first element
    result : the number at the first element
    reason, remedy : in words; `guard` is the doubly guarded form of the user's expression
    reaches : "output" and "gradient of …"; empty where it was masked
    chain : the sub-expressions it went through on its way to the output
    nodes : the nodes it went through on its way to a gradient
    """

    __slots__ = (
        "chain",
        "count",
        "expr",
        "guard",
        "indices",
        "kind",
        "node",
        "nodes",
        "op",
        "operands",
        "phase",
        "reaches",
        "reason",
        "remedy",
        "result",
        "where",
        "word",
    )

    def __init__(
        self, phase: Phase, op: str, node: str | None, where: Any, array: Array, bad: Mask
    ) -> None:
        self.phase = phase
        self.op = op
        self.node = node
        self.where: Where | None = where
        self.expr = None if where is None else str(where.text)
        self.count = int(bad.sum())
        self.indices = [list(map(int, at)) for at in np.argwhere(bad)[:MOST_INDICES]]
        numbers = array[bad]
        self.kind = "NaN" if np.isnan(numbers).any() else "Infinity"
        self.word = "-inf" if (numbers == -np.inf).all() else self.kind
        self.result = float(numbers[0])
        self.operands: list[Operand] = []
        self.reason = ""
        self.remedy = ""
        self.guard: str | None = None
        self.reaches: list[str] = []
        self.chain: list[str] = []
        self.nodes: list[str] = []

    @property
    def grade(self) -> Grade:
        """Error for what reached the output or a gradient, warning for what was masked."""
        return "error" if self.reaches else "warning"

    @property
    def line(self) -> int | None:
        """The line of the sub-expression, from 1."""
        return None if self.where is None else self.where.place.line

    @property
    def column(self) -> int | None:
        """The column of the sub-expression, from 1."""
        return None if self.where is None else self.where.place.column

    def __repr__(self) -> str:
        return f"<{self.grade}: {self.phase} {self.op} {self.kind} at {self.indices[:1]}>"

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain lists and dicts."""
        return {
            "grade": self.grade,
            "phase": self.phase,
            "node": self.node,
            "op": self.op,
            "expr": self.expr,
            "line": self.line,
            "column": self.column,
            "kind": self.kind,
            "indices": self.indices,
            "count": self.count,
            "operands": [
                {"name": operand.name, "value": as_json(operand.value), "shape": operand.shape}
                for operand in self.operands
            ],
            "reason": self.reason,
            "remedy": self.remedy,
            "reaches": self.reaches,
            "chain": [*self.chain, *self.nodes],
        }


def find(
    recorder: Recorder,
    output: Tensor,
    names: Mapping[str, Any],
    *,
    upstream: Any = None,
    places: Mapping[str, Where] | None = None,
) -> list[Finding]:
    """Follow a recorded forward pass and its backward; return the origins, errors first.

    `names` maps names to inputs and `let` values, `places` names of inputs to where they are
    given. The backward runs where the output requires a gradient; `upstream` is its seed.
    """
    survey = _Survey(recorder, Names(names), places or {})
    survey.look_at_inputs()
    for step in recorder.steps:
        survey.look_forward(step)
    for origin in survey.origins_of(output):
        survey.reached(origin, "output")
    if output.requires_grad:
        watch = _Backward(survey, titles_of(names))
        watch.look_at_seed(output, upstream)
        backward(output, upstream, watch=watch)
    return sorted(survey.findings, key=lambda finding: finding.grade)


def input_findings(
    names: Mapping[str, Any], places: Mapping[str, Where] | None = None
) -> list[Finding]:
    """Return the inputs that are not finite, before anything runs."""
    survey = _Survey(Recorder(), Names(names), places or {})
    survey.look_at_inputs()
    return survey.findings


def not_finite(array: Array) -> Mask:
    """Return which elements are NaN or infinite; integers and booleans never are."""
    if array.dtype.kind != "f":
        return np.zeros(array.shape, bool)
    return np.asarray(~np.isfinite(array))


class _Survey:
    """The findings so far, and which of them made which elements of which tensor non-finite."""

    def __init__(self, recorder: Recorder, names: Names, places: Mapping[str, Where]) -> None:
        self.recorder = recorder
        self.names = names
        self.places = places
        self.findings: list[Finding] = []
        self._origins: dict[int, Origins] = {}
        self._alive: list[Tensor] = []
        self._consumers: dict[int, list[tuple[Step, int]]] | None = None

    def origins_of(self, tensor: Tensor) -> Origins:
        """Return the origins of a tensor's non-finite elements."""
        return self._origins.get(id(tensor), {})

    def reached(self, origin: int, what: str) -> None:
        """Note that an origin reached the output or a gradient."""
        if what not in self.findings[origin].reaches:
            self.findings[origin].reaches.append(what)

    def passed(self, origin: int, expression: str) -> None:
        """Note a sub-expression that an origin went through."""
        chain = self.findings[origin].chain
        if not chain or chain[-1] != expression:
            chain.append(expression)

    def add(self, finding: Finding) -> int:
        """Keep a finding and return its number."""
        self.findings.append(finding)
        return len(self.findings) - 1

    def keep(self, tensor: Tensor, origins: Origins) -> None:
        """Note the origins of a tensor's non-finite elements."""
        if origins:
            self._origins[id(tensor)] = origins
            self._alive.append(tensor)  # its id must stay its own

    # Inputs and constants.

    def look_at_inputs(self) -> None:
        """Find the inputs that are not finite."""
        for name, tensor in self.names.tensors.items():
            if self.recorder.maker(tensor) is None and id(tensor) not in self._origins:
                self._look_at_given(tensor, name, self.places.get(name), f"the input {name} holds")

    def _look_at_given(self, tensor: Tensor, name: str, where: Where | None, subject: str) -> None:
        array = tensor._array
        bad = not_finite(array)
        if not bad.any():
            return
        finding = Finding("forward", "input", None, where, array, bad)
        finding.expr = name
        value = finding.result if array.ndim else array.item()
        finding.operands = [Operand(name, value, array.shape, str(array.dtype))]
        finding.reason = f"{subject} {'NaN' if finding.kind == 'NaN' else 'an infinity'}"
        finding.remedy = "give finite numbers, or mask them with where before they are used"
        self.keep(tensor, {self.add(finding): bad})

    # Forward.

    def look_forward(self, step: Step) -> None:
        """Look at one operation's result."""
        for index, tensor in enumerate(step.inputs):
            known = self.recorder.maker(tensor) or self.names.of(tensor)
            if not known and id(tensor) not in self._origins:
                name = step.parameter(index)
                self._look_at_given(tensor, name, step.where, "a constant is")
        result = step.output._array
        bad = not_finite(result)
        if not bad.any():
            return
        inputs = [tensor._array for tensor in step.inputs]
        fresh, turned = born(result, bad, inputs, elementwise(step))
        origins = self._inherited(step, bad & ~fresh)
        for mask in (fresh, turned):
            if mask.any():
                origins[self._found_forward(step, result, mask)] = mask
        self.keep(step.output, origins)

    def _inherited(self, step: Step, bad: Mask) -> Origins:
        origins: Origins = {}
        text = step.name if step.where is None else step.where.text
        for index, tensor in enumerate(step.inputs):
            for origin, mask in self.origins_of(tensor).items():
                moved = carried(step, index, mask) & bad
                if moved.any():
                    origins[origin] = origins.get(origin, moved) | moved
        for origin in origins:
            self.passed(origin, text)
        return origins

    def _found_forward(self, step: Step, result: Array, mask: Mask) -> int:
        finding = Finding("forward", step.name, step.node_name, step.where, result, mask)
        at = tuple(finding.indices[0])
        finding.operands = self.operands(step, at)
        values = None
        if elementwise(step):
            values = [float(operand.value) for operand in finding.operands]
        arrays = [tensor._array for tensor in step.inputs]
        finding.reason, finding.remedy = causes.forward_cause(
            step.name, values, arrays, finding.result, largest(result)
        )
        return self.add(finding)

    def operands(self, step: Step, at: tuple[int, ...], count: int | None = None) -> list[Operand]:
        """Return what an operation read at an element of its result."""
        plain = elementwise(step)
        return [
            self.operand(tensor, step.parameter(index), step.output.shape if plain else None, at)
            for index, tensor in enumerate(step.inputs[:count])
        ]

    def operand(
        self, tensor: Tensor, parameter: str, shape: tuple[int, ...] | None, at: tuple[int, ...]
    ) -> Operand:
        """Return one operand, by the best name there is for it."""
        array = tensor._array
        if shape is not None:
            value = np.broadcast_to(array, shape)[at].item()
        else:
            value = array.tolist() if array.size <= MOST_ELEMENTS else array_text(array)
        name = self.names.of(tensor)
        maker = self.recorder.maker(tensor)
        constant = name is None and maker is None and array.ndim == 0
        if constant:
            name = wording.operand(tensor, self.names)
        elif name is None:
            name = parameter if maker is None or maker.where is None else maker.where.text
        return Operand(name, value, array.shape, str(array.dtype), constant)

    # The way from an operation to the mask that leaves its result out.

    def mask_of(self, step: Step) -> tuple[Step, int] | None:
        """Return the `where` that a result goes into first, and by which operand."""
        consumers = self._all_consumers()
        seen = {id(step.output)}
        pending = [step.output]
        while pending:
            for consumer, index in consumers.get(id(pending.pop(0)), []):
                if consumer.name == "where" and index in (1, 2):
                    return consumer, index
                if id(consumer.output) not in seen:
                    seen.add(id(consumer.output))
                    pending.append(consumer.output)
        return None

    def _all_consumers(self) -> dict[int, list[tuple[Step, int]]]:
        if self._consumers is None:
            self._consumers = {}
            for step in self.recorder.steps:
                for index, tensor in enumerate(step.inputs):
                    self._consumers.setdefault(id(tensor), []).append((step, index))
        return self._consumers


def elementwise(step: Step) -> bool:
    """Tell whether an element of the result reads one element of each operand."""
    return getattr(step.op, "batch", None) == "elementwise" and not step.op.variadic


def born(result: Array, bad: Mask, read: Sequence[Array], by_element: bool) -> tuple[Mask, Mask]:
    """Return which non-finite elements are born here, and which turned from infinity to NaN."""
    nothing = np.zeros(bad.shape, bool)
    if by_element:
        infinite = nan = nothing
        for array in read:
            infinite = infinite | np.broadcast_to(not_finite(array), bad.shape)
            if array.dtype.kind == "f":
                nan = nan | np.broadcast_to(np.isnan(array), bad.shape)
        return bad & ~infinite, np.isnan(result) & infinite & ~nan
    if not any(not_finite(array).any() for array in read):
        return bad, nothing
    if any(array.dtype.kind == "f" and np.isnan(array).any() for array in read):
        return nothing, nothing
    return nothing, np.isnan(result)


def carried(step: Step, index: int, mask: Mask) -> Mask:
    """Return the elements of a result that elements of an operand can reach."""
    shape = step.output.shape
    if getattr(step.op, "view", False) or step.name in _MOVING:
        moved = []
        for number, tensor in enumerate(step.inputs):
            own = tensor._array
            if own.dtype.kind == "f":
                own = mask.astype(own.dtype) if number == index else np.zeros_like(own)
            moved.append(own)
        found: Mask = step.op.compute(moved, step.arguments) != 0
        return found
    if elementwise(step):
        return np.broadcast_to(mask, shape)
    return np.ones(shape, bool)


def largest(array: Array) -> str:
    """Return the largest number of an array's dtype, as text."""
    return f"{np.finfo(array.dtype).max:g}"


class _Backward:
    """A watch that follows non-finite gradients from node to node."""

    def __init__(self, survey: _Survey, titles: Mapping[Node, str]) -> None:
        self.survey = survey
        self.titles = titles
        self.arriving: dict[Node, set[int]] = {}

    def look_at_seed(self, output: Tensor, upstream: Any) -> None:
        """Find a seed that is not finite."""
        if upstream is None:
            return
        seed = upstream._array if isinstance(upstream, Tensor) else np.asarray(upstream)
        bad = not_finite(seed)
        if not bad.any() or output._grad_fn is None:
            return
        finding = Finding("backward", "input", None, None, seed, bad)
        finding.expr = "upstream"
        finding.reason = "the upstream gradient is not finite"
        finding.remedy = "give a finite upstream gradient"
        finding.operands = [Operand("upstream", finding.result, seed.shape, str(seed.dtype))]
        self.arriving[output._grad_fn] = {self.survey.add(finding)}

    def before(self, node: Node, upstream: Array) -> None:
        """Note a non-finite gradient that reaches a leaf."""
        if isinstance(node, AccumulateGrad) and not_finite(upstream).any():
            name = self.titles.get(node, "a leaf")
            for origin in sorted(self.arriving.get(node, ())):
                self.survey.reached(origin, f"gradient of {name}")

    def after(self, node: Node, upstream: Array, gradients: Gradients) -> None:
        """Look at what a node returned."""
        arriving = self.arriving.pop(node, set())
        if node.owner is not node:
            self.arriving.setdefault(node.owner, set()).update(arriving)
            return
        returned = [
            (index, edge, np.asarray(gradient))
            for index, (edge, gradient) in enumerate(zip(node.inputs, gradients, strict=False))
            if edge is not None and gradient is not None and edge.dtype.kind == "f"
        ]
        returned = [entry for entry in returned if not_finite(entry[2]).any()]
        if not returned:
            return
        arrived = node.arrived(upstream)
        if not any(not_finite(part).any() for part in arrived):
            arriving = set()
        step = self.survey.recorder.of.get(node)
        born_here: set[int] = set()
        for index, edge, gradient in returned:
            origins = set(arriving)
            if step is None:
                if not origins:
                    origins |= self._found(node, None, index, arrived, gradient, born_here)
            else:
                origins |= self._origins(node, step, index, arrived, gradient, born_here)
            for origin in origins:
                nodes = self.survey.findings[origin].nodes
                if nodes[-1:] != [node.name]:
                    nodes.append(node.name)
            self.arriving.setdefault(edge, set()).update(origins)

    def _origins(
        self,
        node: Node,
        step: Step,
        index: int,
        arrived: list[Array],
        gradient: Array,
        born_here: set[int],
    ) -> set[int]:
        """Return the origins of a gradient, a new one among them where it is born here."""
        read = tensors_read(step, index)
        by_element = elementwise(step) and gradient.shape == step.output.shape
        arrays = [*arrived, *(tensor._array for tensor in read)]
        bad = not_finite(gradient)
        fresh, turned = born(gradient, bad, arrays, by_element)
        origins: set[int] = set()
        for tensor in read:
            for origin, mask in self.survey.origins_of(tensor).items():
                if not by_element or (np.broadcast_to(mask, bad.shape) & bad).any():
                    origins.add(origin)
        own = self.survey.origins_of(step.output)
        for mask in (fresh, turned):
            if not mask.any():
                continue
            # The same elements broke the value already, and that reached the output: one cause.
            same = {
                origin
                for origin, elements in own.items()
                if "output" in self.survey.findings[origin].reaches
                and (not by_element or (elements & mask).any())
            }
            known = np.zeros(mask.shape, bool)
            for origin in same:
                known = known | (own[origin] if by_element else True)
            origins |= same
            if (mask & ~known).any():
                part = mask & ~known
                origins |= self._found(node, step, index, arrived, gradient, born_here, part)
        return origins

    def _found(
        self,
        node: Node,
        step: Step | None,
        index: int,
        arrived: list[Array],
        gradient: Array,
        born_here: set[int],
        mask: Mask | None = None,
    ) -> set[int]:
        """Keep a new origin at a node, one for all inputs whose elements coincide."""
        bad = not_finite(gradient) if mask is None else mask
        name = node.name.removesuffix("Backward") if step is None else step.name
        where = None if step is None else step.where
        finding = Finding("backward", name, node.name, where, gradient, bad)
        for origin in born_here:
            if self.survey.findings[origin].indices == finding.indices:
                return {origin}
        self._explain(finding, node, step, index, arrived, gradient)
        origin = self.survey.add(finding)
        born_here.add(origin)
        return {origin}

    def _explain(
        self,
        finding: Finding,
        node: Node,
        step: Step | None,
        index: int,
        arrived: list[Array],
        gradient: Array,
    ) -> None:
        at = tuple(finding.indices[0])
        plain = step is not None and elementwise(step) and gradient.shape == step.output.shape
        shown: Any = arrived[0]
        value = shown[at].item() if plain else _whole(shown)
        finding.operands = [Operand("upstream", value, shown.shape, str(shown.dtype))]
        upstream = slope = None
        place = "this point"
        infinite = bool(not_finite(shown).any())
        if step is not None:
            operands = self.survey.operands(step, at)
            finding.operands += operands
            infinite = infinite or any(
                not_finite(t._array).any() for t in tensors_read(step, index)
            )
            if plain:
                upstream = float(value)
                slope = self._slope(node, index, shown, at)
                place = listed(
                    [f"{o.name} = {number(o.value)}" for o in operands if not o.constant]
                )
        finding.reason, finding.remedy = causes.backward_cause(
            finding.op, upstream, slope, place, finding.result, infinite
        )
        if step is not None and finding.reason == causes.trapped(finding.op):
            self._guard(finding, step)

    @staticmethod
    def _slope(node: Node, index: int, upstream: Array, at: tuple[int, ...]) -> float | None:
        """Return the local slope at an element: what the node returns for an upstream of 1."""
        if not isinstance(node, FunctionNode):
            return None
        gradient = node.apply(np.ones_like(upstream))[index]
        return None if gradient is None else float(np.asarray(gradient)[at])

    def _guard(self, finding: Finding, step: Step) -> None:
        found = self.survey.mask_of(step)
        argument = finding.operands[-1].name
        if found is not None:
            finding.guard = guarded(step, *found)
        if finding.guard is not None:
            finding.remedy = f"guard the argument too: {finding.guard}"
        else:
            finding.remedy = (
                f"guard the argument too: {step.name}(where(condition, {argument}, 1)), with the "
                "condition under which the result is used"
            )


def tensors_read(step: Step, index: int) -> list[Tensor]:
    """Return the operands, and the output, that the formula of one input's gradient reads."""
    if not hasattr(step.op, "saves"):
        return [*step.inputs, step.output]
    if step.op.variadic:
        return list(step.inputs)
    names = step.op.saves[index]
    tensors = dict(zip(step.op.inputs, step.inputs, strict=True))
    return [step.output if name == "out" else tensors[name] for name in names]


def _whole(array: Array) -> Any:
    return array.tolist() if array.size <= MOST_ELEMENTS else array_text(array)


def number(value: Any) -> str:
    """Write a number as Python does: a float keeps its point."""
    return repr(value)


# As text.


def text(findings: Sequence[Finding]) -> str:
    """Return findings as text for people, one block each."""
    return "\n".join(block(finding) for finding in findings)


def block(finding: Finding) -> str:
    """Return one finding: place and fault, the sub-expression with a caret, evidence, remedy."""
    place = "" if finding.where is None else f"{finding.where.place}: "
    lines = [f"{place}{finding.grade}: {title(finding)}"]
    if finding.where is not None:
        lines += [f"  {line}" for line in pointed(finding.where)]
    lines.append(f"  {evidence(finding)}")
    kinds = [f"{o.name} {o.dtype} {shapes.text(o.shape)}" for o in finding.operands]
    lines.append(f"  operands: {', '.join(kinds)}")
    lines.append(f"  reason: {finding.reason}")
    if finding.reaches:
        lines.append(f"  reaches: {', '.join(finding.reaches)}")
        way = finding.chain if "output" in finding.reaches else finding.nodes[1:]
        if way:
            lines.append(f"  by way of: {' -> '.join(_shortened(way))}")
    else:
        lines.append("  masked: it reaches neither the output nor a gradient")
    lines += broken(f"  remedy: {finding.remedy}")
    return "\n".join(lines) + "\n"


def broken(line: str, most: int = 100) -> list[str]:
    """Return a line, in several where it is long and its parts end in semicolons."""
    return [line] if len(line) <= most else line.replace("; ", ";\n    ").split("\n")


def title(finding: Finding) -> str:
    """Return the fault in a sentence."""
    count = finding.count
    at = f"at {finding.indices[0]}" + (f" and {count - 1} more" if count > 1 else "")
    if finding.indices[0] == []:
        at = "in its one element"
    if finding.op == "input":
        return f"{finding.expr} is {finding.word} {at}"
    owner = f"{finding.op} ({finding.node})" if finding.node else finding.op
    subject = f"{owner} gives" if finding.phase == "forward" else f"the gradient of {owner} is"
    return f"{subject} {finding.word} {at}"


def evidence(finding: Finding) -> str:
    """Return the numbers at the first element: `2.0 / 0.0 at [1] is inf`."""
    at = f"at {finding.indices[0]} " if finding.indices[0] else ""
    result = repr(finding.result)
    operands = finding.operands
    if finding.op == "input":
        return f"{finding.expr} {at}is {result}"
    if finding.phase == "backward":
        values = [f"{o.name} = {number(o.value)}" for o in operands if not o.constant]
        return f"{', '.join(values)} {at}gives {result}"
    values = [number(operand.value) for operand in operands]
    if finding.op in SYMBOLS and len(values) == 2:
        return f"{values[0]} {SYMBOLS[finding.op]} {values[1]} {at}is {result}"
    return f"{finding.op}({', '.join(values)}) {at}is {result}"


def pointed(where: Where) -> list[str]:
    """Return the line of the source that a sub-expression begins in, and a caret under it."""
    whole = where.source.text
    first = whole.rfind("\n", 0, where.start) + 1
    last = whole.find("\n", where.start)
    line = whole[first : last if last >= 0 else len(whole)]
    size = max(1, min(where.end - first, len(line)) - (where.start - first))
    stripped = line.lstrip()
    indent = where.start - first - (len(line) - len(stripped))
    if not stripped or indent < 0:
        return []
    return [stripped, " " * indent + "^" * size]


def _shortened(way: list[str], most: int = 8) -> list[str]:
    if len(way) <= most:
        return way
    return [*way[: most // 2], f"… {len(way) - most} more …", *way[-(most // 2) :]]
