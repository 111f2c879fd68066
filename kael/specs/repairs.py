"""What an author may have meant to claim: small changes of a claim that could make it hold."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kael.checker.mutate import Edit, edits
from kael.checker.problems import Repair
from kael.engine.grad_mode import no_grad
from kael.specs.expression import Expression, parse
from kael.specs.model import Instance
from kael.specs.place import SpecError
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

MOST_NAMES = 6
"""Inputs that are tried for one another."""

SENTENCES: dict[str, tuple[str, str]] = {
    "sign": ("sign-flipped", "has the wrong sign at `{part}`"),
    "term": ("extra-term", "has a term too many, `{part}`"),
    "factor": ("factor", "has a factor too many, `{part}`"),
    "power": ("mismatch", "has a wrong exponent at `{part}`"),
    "constant": ("mismatch", "has a wrong number, {part}"),
    "scale": ("factor", "lacks the factor {factor} at `{part}`"),
    "function": ("mismatch", "has `{part}` where `{replacement}` holds"),
    "name": ("swapped", "has `{part}` where `{replacement}` holds"),
}


def claim_at(
    instance: Instance, names: Sequence[str], leaves: dict[str, Tensor]
) -> Callable[[str, Sequence[Array]], Array]:
    """Return the function that evaluates a claim at other values of the differentiated inputs."""

    def claimed(name: str, arrays: Sequence[Array]) -> Array:
        moved = _moved(leaves, names, arrays)
        return np.asarray(instance.claim(name, moved), dtype=np.float64)

    return claimed


def repairs_of(
    instance: Instance, names: Sequence[str], leaves: dict[str, Tensor]
) -> Callable[[str], Iterator[Repair]]:
    """Return the function that gives the small changes of the claim for an input."""

    def repairs(name: str) -> Iterator[Repair]:
        claim = instance.spec.derivatives[name]
        if not isinstance(claim, Expression):
            return
        usable = [*leaves, *instance.spec.let]
        for edit in edits(claim.text, names[:MOST_NAMES]):
            try:
                changed = parse(edit.apply(claim.text), claim.place, usable)
            except SpecError:
                continue
            yield _repair(instance, claim, edit, changed, names, leaves)

    return repairs


def _repair(
    instance: Instance,
    claim: Expression,
    edit: Edit,
    changed: Expression,
    names: Sequence[str],
    leaves: dict[str, Tensor],
) -> Repair:
    def value(arrays: Sequence[Array]) -> Array:
        moved = _moved(leaves, names, arrays)
        with no_grad():
            lets = instance.evaluate(moved)[1] if instance.spec.let else {}
            return changed.evaluate({**moved, **lets}, instance.spec.max_elements).numpy()

    code, sentence = SENTENCES[edit.kind]
    if edit.kind == "constant" and edit.scales:
        code = "factor"
    fault = sentence.format(
        part=edit.part, replacement=edit.replacement, factor=edit.replacement.partition("*")[0]
    )
    place = claim.place_of(edit.start)
    return Repair(code, f"{fault} ({place})", f"`{changed.text}` would hold", value)


def _moved(
    leaves: dict[str, Tensor], names: Sequence[str], arrays: Sequence[Array]
) -> dict[str, Tensor]:
    moved = dict(leaves)
    for name, array in zip(names, arrays, strict=True):
        moved[name] = Tensor(np.asarray(array, dtype=np.float64))
    return moved
