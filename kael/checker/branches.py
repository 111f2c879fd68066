"""Which side of each branch of a formula its points visited.

A branch is an operation whose declared kink parts its operand into sides with a derivative each
(relu, abs, clamp, maximum), or a `where`. A point on one side says nothing of the other: a wrong
slope there goes unseen until a case visits it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kael.checker.model import Array
from kael.checker.problems import Where, called, told
from kael.tensors import Tensor

SIDES: dict[int, tuple[str, ...]] = {
    1: ("below", "above"),
    2: ("below", "between", "above"),
}
"""What the sides of an operation with so many kinks are called, from the lowest up."""

COMPARED = ("operand below the other", "operand above the other")
CHOSEN = ("false", "true")

_TWO_OPERANDS = ("maximum", "minimum")
# Their kinks are a point or a seam, or parts without slopes of their own.
_NO_SIDES = ("hypot", "atan2", "remainder", "fmod")


@dataclass
class Branch:
    """One branch of a formula, and how many entries went to each of its sides."""

    operation: str
    text: str
    place: str
    sides: dict[str, int] = field(default_factory=dict)

    @property
    def unvisited(self) -> list[str]:
        """The sides that no entry went to."""
        return [side for side, count in self.sides.items() if not count]

    @property
    def sentence(self) -> str:
        """The branch and its sides, for people."""
        counts = [
            f"{side} never" if not count else f"{side} {count}x"
            for side, count in self.sides.items()
        ]
        return f"{called(self.operation, self.text, self.place)}: {', '.join(counts)}"


class Visits:
    """An observer of operations that counts, over any number of evaluations."""

    def __init__(self, where: Where | None = None) -> None:
        self._where = where
        self._branches: dict[tuple[str, str, str], Branch] = {}

    @property
    def branches(self) -> list[Branch]:
        """The branches that were met, in the order of their first visit."""
        return list(self._branches.values())

    def __call__(
        self,
        op: Any,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        output: Tensor,
        node: Any,
    ) -> None:
        """Count one operation; the engine's observer slot calls this."""
        del output, node
        counted = sides_of(op, [x._array for x in inputs], arguments)
        if counted is None:
            return
        text, place = told(None if self._where is None else self._where())
        key = (op.name, text, place)
        branch = self._branches.setdefault(key, Branch(*key, dict.fromkeys(counted, 0)))
        for side, count in counted.items():
            branch.sides[side] = branch.sides.get(side, 0) + count


def sides_of(op: Any, arrays: list[Array], arguments: tuple[Any, ...]) -> dict[str, int] | None:
    """How many entries are on each side of an operation; None where it has no sides."""
    name = getattr(op, "name", "")
    if name == "where":
        mask = np.asarray(arrays[0], dtype=bool)
        return dict(zip(CHOSEN, (int((~mask).sum()), int(mask.sum())), strict=True))
    elementwise = getattr(op, "batch", None) == "elementwise"
    if getattr(op, "kink", None) is None or not elementwise or name in _NO_SIDES:
        return None
    if not op.differentiable:
        return None
    distances = op.kink(*arrays, *arguments)
    if distances is None or len(distances) not in SIDES:
        return None
    names = COMPARED if name in _TWO_OPERANDS else SIDES[len(distances)]
    parts = np.broadcast_arrays(*distances)
    off = np.logical_and.reduce([part != 0 for part in parts])
    above = np.sum([part > 0 for part in parts], axis=0)
    return {side: int((off & (above == level)).sum()) for level, side in enumerate(names)}
