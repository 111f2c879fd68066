"""What the cases of a spec cover: the branches they visit, and the slips they would notice.

Both look at all instances of one spec together. A slip is a small change of a claim or a formula
(`kael.checker.mutate`); it is noticed where a claim or an expectation of some case does not hold
any more, or nothing can be evaluated at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kael.checker.branches import Branch, Visits
from kael.checker.model import Diagnosis
from kael.checker.mutate import SLIPS, Edit, edits
from kael.engine.grad_mode import observing
from kael.errors import KaelError
from kael.specs.expression import Expression, current_span, parse
from kael.specs.inputs import generator
from kael.specs.model import Golden, Instance, Spec
from kael.specs.place import SpecError
from kael.specs.runner import Evaluated, claims_of
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

MOST_SLIPS = 300

CLAIM_ATOL, CLAIM_RTOL = 1e-8, 1e-6

_WORDS = {
    "sign": "the sign of `{part}` turned over",
    "term": "the term `{part}` left out",
    "factor": "the factor `{part}` left out",
}


@dataclass(frozen=True)
class Slip:
    """A mutant that no case notices: where, what was changed, and the changed text."""

    place: str
    change: str
    text: str

    @property
    def sentence(self) -> str:
        """The change, for people."""
        return f"{self.place}: no case notices {self.change}: `{self.text}`"


@dataclass
class Slips:
    """All changes of one spec that were tried, and those that nothing noticed."""

    tried: int = 0
    unnoticed: list[Slip] = field(default_factory=list)
    held: bool = True
    """Whether the spec itself holds; nothing is tried where it does not."""


def branches(instances: Sequence[Instance], seed: int) -> list[Branch]:
    """The branches of a spec, with what its instances visit of each."""
    visits = Visits(current_span)
    for instance in instances:
        if instance.spec.outside or instance.spec.skip is not None:
            continue
        try:
            leaves = instance.leaves(seed)
            with observing(visits):
                instance.evaluate(leaves)
        except KaelError:
            continue
    return visits.branches


def unvisited(branches: Sequence[Branch]) -> list[Diagnosis]:
    """A diagnosis for each branch of which some side is never visited."""
    from kael.checker.faults import unvisited_branch

    return [
        unvisited_branch.diagnosis(branch, branch.unvisited)
        for branch in branches
        if branch.unvisited
    ]


def slips(instances: Sequence[Instance], seed: int) -> Slips:
    """Try the slips in the claims and the formula of a spec on all its instances.

    A change that is only another way to write the same is none. Where the spec does not hold as it
    is, nothing is tried: everything would count as noticed.
    """
    found = Slips()
    if not instances or instances[0].spec.skip is not None:
        return found
    if any(_noticed(one, seed) for one in instances):
        found.held = False
        return found
    for expression, edit, changed in list(_changed(instances[0].spec))[:MOST_SLIPS]:
        if any(_noticed(Instance(changed, one.case), seed) for one in instances):
            found.tried += 1
        elif not _same(instances[0], Instance(changed, instances[0].case), seed):
            found.tried += 1
            place = str(expression.place_of(edit.start))
            text = edit.apply(expression.text)
            change = _WORDS[edit.kind].format(part=edit.part)
            found.unnoticed.append(Slip(place, change, " ".join(text.split())))
    return found


def _changed(spec: Spec) -> Iterator[tuple[Expression, Edit, Spec]]:
    """Each single slip: the expression, the change, and the spec with it."""
    for name, claim in spec.derivatives.items():
        if isinstance(claim, Expression):
            for edit, expression in _parsed(claim):
                yield claim, edit, replace(spec, derivatives={**spec.derivatives, name: expression})
    if not isinstance(spec.output, Expression):
        return
    for edit, expression in _parsed(spec.output):
        yield spec.output, edit, replace(spec, output=expression)
    for name, let in spec.let.items():
        for edit, expression in _parsed(let):
            yield let, edit, replace(spec, let={**spec.let, name: expression})


def _parsed(expression: Expression) -> Iterator[tuple[Edit, Expression]]:
    seen = set()
    for edit in edits(expression.text):
        text = edit.apply(expression.text)
        if edit.kind not in SLIPS or text in seen:
            continue
        seen.add(text)
        try:
            yield edit, parse(text, expression.place)
        except SpecError:
            continue


def _noticed(instance: Instance, seed: int) -> bool:
    """Whether a claim or an expectation of an instance does not hold, or nothing can be told."""
    try:
        value, gradients, claims = _evaluated(instance, instance.leaves(seed), seed)
    except (KaelError, ArithmeticError, ValueError):
        return True
    for name, claim in claims.items():
        if not _close(claim, gradients[name], CLAIM_ATOL, CLAIM_RTOL):
            return True
    expect = instance.expect
    if expect is None:
        return False
    stated: list[tuple[Golden | None, Array]] = [(expect.value, value)]
    stated += [(golden, gradients[name]) for name, golden in expect.grad.items()]
    return any(
        golden is not None and not _close(golden.array, found, expect.atol, expect.rtol)
        for golden, found in stated
    )


def _evaluated(
    instance: Instance, leaves: dict[str, Tensor], seed: int
) -> tuple[Array, dict[str, Array], Mapping[str, Array]]:
    """The value, the gradients and the claims of an instance at some leaves."""
    evaluated = Evaluated(instance, seed, leaves=leaves)
    if evaluated.output.requires_grad or instance.spec.outside:
        evaluated.backward(ones=True)
    gradients = {
        name: np.zeros(leaf.shape) if leaf.grad is None else np.array(leaf.grad.numpy())
        for name, leaf in leaves.items()
    }
    return evaluated.output.numpy(), gradients, claims_of(evaluated)


def _same(one: Instance, other: Instance, seed: int) -> bool:
    """Whether two forms of a spec say the same at points beside the given one as well."""
    for number in range(3):
        found = []
        for instance in (one, other):
            leaves = instance.leaves(seed)
            for name, leaf in leaves.items():
                if leaf.requires_grad:
                    stream = generator(seed, instance.spec.name, name, "slip", number)
                    leaf._array[...] = leaf._array * stream.uniform(0.7, 1.3, leaf.shape)
                    leaf._array[...] += np.where(leaf._array == 0, stream.random(leaf.shape), 0)
            try:
                found.append(_evaluated(instance, leaves, seed))
            except (KaelError, ArithmeticError, ValueError):
                return False
        (value, gradients, claims), (value2, gradients2, claims2) = found
        pairs = [(value2, value), *((gradients2[name], gradients[name]) for name in gradients)]
        pairs += [(claims2[name], claims[name]) for name in claims]
        if not all(_close(a, b, 1e-9, 1e-9) for a, b in pairs):
            return False
    return True


def _close(stated: Array, found: Array, atol: float, rtol: float) -> bool:
    try:
        stated = np.broadcast_to(stated, found.shape)
    except ValueError:
        return False
    with np.errstate(all="ignore"):
        close = np.abs(stated - found) <= atol + rtol * np.abs(found)
        return bool((close | (stated == found) | (np.isnan(stated) & np.isnan(found))).all())
