"""Which recorded node is wrong, and where a history ends: a look into a composed formula.

Each node's own backward is checked at the operands it was recorded with, by the same checker that
checks whole formulas. Where all of them are right, the fault lies in between: something that
moves with an input takes part in the graph without a history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Array, Floats, GradcheckOptions, Report
from kael.checker.problems import NodeProblem, Step, Where, is_function, leaf_of, names_of, steps_of
from kael.checker.subject import TensorSubject
from kael.checker.verification import subject_of, verify
from kael.engine.grad_mode import enable_grad
from kael.errors import KaelError
from kael.ops.registry import lookup
from kael.tensors import Tensor

MOST_EVALUATIONS = 40_000
"""Evaluations of single nodes; what is then left is not looked at."""

MOST_OF_ONE = 300

LARGE = 512

MOST_WRONG = 3


@dataclass
class WrongNode:
    """A node whose own backward does not hold at its recorded operands.

    `evidence` is what was measured of the inputs that are wrong, where that was enough to see it.
    """

    problem: NodeProblem
    report: Report
    evidence: dict[str, Evidence] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """Where something that moves with an input has no history."""

    input: str
    sentence: str


def wrong_nodes(
    subject: TensorSubject,
    options: GradcheckOptions,
    where: Where | None,
    failing: Mapping[int, Array] | None = None,
) -> tuple[list[WrongNode], bool]:
    """The nodes that are wrong by themselves, and whether every node was looked at.

    Hand-written ones are looked at first, and in large operands the entries that are `failing` in
    an input of the same size.
    """
    # A function of several outputs is told once for each; it has one node.
    once: dict[int, Step] = {}
    for step in steps_of(lambda: subject.function(*subject.inputs), where):
        if step.node is not None:
            once.setdefault(id(step.node.owner), step)
    steps = list(once.values())
    steps.sort(key=lambda step: not is_function(step))
    found: list[WrongNode] = []
    known = {
        id(subject.inputs[position]): name
        for position, name in zip(subject.positions, subject.names, strict=True)
    }
    evaluations = 0
    local = replace(
        options,
        mode="projection" if options.mode in ("fast", "complex") else options.mode,
        inputs=None,
        replayable=False,
        max_evaluations=MOST_OF_ONE,
        numeric=True,
    )
    for step in steps:
        if evaluations > MOST_EVALUATIONS:
            return found, False
        problem = NodeProblem(step, known)
        seen = _seen_at_once(problem, failing or {})
        if seen:
            found.append(WrongNode(problem, Report("failed"), seen))
            continue
        report = check_node(step, local, known)
        if report is None:
            continue
        evaluations += report.evaluations
        if report.status == "failed":
            found.append(WrongNode(problem, report))
            if len(found) >= MOST_WRONG:
                break
    return found, True


def _seen_at_once(problem: NodeProblem, failing: Mapping[int, Array]) -> dict[str, Evidence]:
    """The inputs of a large node of which some entries, picked evenly, show that they are wrong.

    A whole check would look at hundreds of wrong entries one by one.
    """
    if sum(array.size for array in problem.arrays) <= LARGE:
        return {}
    looked = [
        Evidence(problem, index, failing.get(array.size), array.size)
        for index, array in enumerate(problem.arrays)
    ]
    return {one.name: one for one in looked if any(view.wrong.any() for view in one.given)}


def check_node(step: Step, options: GradcheckOptions, known: Mapping[int, str]) -> Report | None:
    """Check one node by itself; None where it cannot be made again."""
    chosen = [i for i, x in enumerate(step.inputs) if x.requires_grad]
    operands = list(step.inputs)
    for i in chosen:
        operands[i] = leaf_of(np.array(step.inputs[i]._array))
    names = names_of(step, known)

    def function(*tensors: Tensor) -> Tensor:
        made = step.again(tensors)
        return made[0] if len(made) == 1 else _joined(made)

    try:
        return verify(subject_of(function, operands, names, options), options)
    except (KaelError, ArithmeticError, ValueError, TypeError):
        return None


def _joined(outputs: Sequence[Tensor]) -> Tensor:
    flat = [output.reshape(-1) for output in outputs if output.dtype.kind == "f"]
    cat = lookup("cat")
    assert cat is not None
    made: Tensor = cat(flat)
    return made


def cuts(subject: TensorSubject, where: Where | None) -> list[Cut]:
    """Where the history of each input ends although what follows moves with it."""
    found: list[Cut] = []
    for which, name in enumerate(subject.names):
        cut = _cut(subject, which, name, where)
        if cut is not None:
            found.append(cut)
    return found


def _cut(subject: TensorSubject, which: int, name: str, where: Where | None) -> Cut | None:
    array = subject.originals[which]
    kept = array.copy()
    here = _recorded(subject, where)
    try:
        # So small that no mask turns over.
        array[...] = kept * (1 + 1e-7) + 1e-9
        there = _recorded(subject, where)
    finally:
        array[...] = kept
    if len(here) != len(there):
        return None
    made = {id(step.output) for step in here}
    leaves = {id(tensor) for tensor in subject.inputs}
    for before, after in zip(here, there, strict=True):
        if before.name != after.name:
            return None
        for position, (x, y) in enumerate(zip(before.inputs, after.inputs, strict=True)):
            if x.requires_grad or id(x) in leaves or x._array.dtype.kind != "f":
                continue
            if x.shape == y.shape and _moved(x._array, y._array):
                maker = next((step for step in here if step.output is x), None)
                if id(x) in made and maker is not None:
                    sentence = f"the history of {name} ends at {maker.called}"
                else:
                    operand = before.operands()[position]
                    sentence = (
                        f"the operand {operand} of {before.called} moves with {name} and has no "
                        "history: detach(), numpy() or no_grad cut it"
                    )
                return Cut(name, sentence)
    return None


def _recorded(subject: TensorSubject, where: Where | None) -> list[Step]:
    with enable_grad():
        return list(steps_of(lambda: subject.function(*subject.inputs), where))


def _moved(one: Floats, other: Floats) -> bool:
    with np.errstate(invalid="ignore"):
        off = np.abs(one - other)
    # A jump is no slope: what is rounded or compared does not move by a little.
    size = np.maximum(np.abs(one), 1.0)
    return bool(((off > 0) & (off < 1e-3 * size)).any())
