"""Which operation has its kink at an entry, and how near: asked of the operations themselves.

An operation declares arrays that are zero at its kink and whose sign tells the side. The one
whose sign turns over when the entry moves is the kink that was met.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kael.checker.subject import TensorSubject
from kael.engine.grad_mode import no_grad, observing
from kael.tensors import Tensor

Locate = Callable[[], Any]
"""Gives the sub-expression that is being evaluated, or None; called at each operation."""


@dataclass(frozen=True)
class Met:
    """A kink that was met: the operation, the element of its operand, and how far away it is."""

    operation: str
    element: tuple[int, ...]
    distance: float
    place: Any = None

    def __str__(self) -> str:
        where = "" if self.place is None else f" ({getattr(self.place, 'text', self.place)})"
        near = "at it" if self.distance == 0 else f"{self.distance:.3g} away"
        return f"{self.operation}{where} at element {list(self.element)}, {near}"


def met_at(
    subject: TensorSubject, which: int, entry: int, step: float, locate: Locate | None
) -> Met | None:
    """The nearest kink that lies within a step of one entry, if an operation declares it."""
    flat = subject.flat(which)
    x = flat[entry]
    sides = []
    try:
        for moved in (x - step, x, x + step):
            flat[entry] = moved
            sides.append(_distances(subject, locate))
    finally:
        flat[entry] = x
    best: Met | None = None
    if len({len(side) for side in sides}) != 1:
        # Another branch was taken: the calls cannot be laid side by side.
        return None
    for below, at, above in zip(*sides, strict=True):
        for low, here, high in zip(below[2], at[2], above[2], strict=True):
            if not low.shape == here.shape == high.shape:
                continue
            turned = (np.sign(low) != np.sign(high)) | ((here == 0) & (low != high))
            turned |= (here == 0) & ((low != 0) | (high != 0))
            if not turned.any():
                continue
            near = np.where(turned, np.abs(here), math.inf)
            element = np.unravel_index(int(np.argmin(near)), near.shape)
            distance = float(near[element])
            if best is None or distance < best.distance:
                best = Met(at[0], tuple(int(i) for i in element), distance, at[1])
    return best


def _distances(subject: TensorSubject, locate: Locate | None) -> list[tuple[str, Any, list[Any]]]:
    found: list[tuple[str, Any, list[Any]]] = []

    def observe(
        op: Any,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        output: Tensor,
        node: Any,
    ) -> None:
        kink = getattr(op, "kink", None)
        if kink is None:
            return
        arrays: Any = [x._array for x in inputs]
        distances = kink(arrays, *arguments) if op.variadic else kink(*arrays, *arguments)
        if distances is not None:
            place = None if locate is None else locate()
            found.append((op.name, place, [np.array(d, dtype=np.float64) for d in distances]))

    with no_grad(), observing(observe):
        subject.evaluate()
    return found
