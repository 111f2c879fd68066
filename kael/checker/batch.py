"""Many perturbations at once: the recorded operations run again with a leading axis.

The forward pass is recorded once, as the list of operations with their operands. Replayed, each
row of the leading axis is the formula at another point; an operand that no perturbation reaches
stays as it is. A kernel is called on plain arrays, blocks are small enough for the cache, and one
row is compared with an evaluation of the formula itself, which is what a replay must not differ
from.

Only operations with a batch rule can be replayed with an axis; a formula that has others, or
that may take another branch elsewhere, is evaluated one point at a time by `entries`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kael.checker.entries import Probe
from kael.checker.model import Array, Floats
from kael.checker.subject import TensorSubject
from kael.engine.grad_mode import enable_grad, observing
from kael.errors import KaelError
from kael.tensors import Tensor

CACHE_BYTES = 1 << 19
MOST_ROWS = 1024


class NotBatchableError(KaelError):
    """A recorded call has no batch rule for the operands at hand."""


@dataclass(slots=True)
class Call:
    """One recorded operation; operands are slots of earlier results, or fixed arrays."""

    op: Any
    operands: tuple[int | Array, ...]
    shapes: tuple[tuple[int, ...], ...]
    arguments: tuple[Any, ...]
    slot: int


class Recording:
    """Sees every operation of one forward pass."""

    def __init__(self, leaves: Sequence[Tensor]) -> None:
        self.calls: list[Call] = []
        self.slots: dict[int, int] = {id(leaf): slot for slot, leaf in enumerate(leaves)}
        # Held, so that no id is given out twice while the recording grows.
        self.kept: list[Any] = list(leaves)
        self.size = max([1, *(leaf._array.size for leaf in leaves)])
        self.observed: list[tuple[Any, tuple[Tensor, ...], tuple[Any, ...], Tensor]] = []

    def __call__(
        self,
        op: Any,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        output: Tensor,
        node: Any,
    ) -> None:
        self.observed.append((op, inputs, arguments, output))
        self.kept.append((inputs, output))
        operands = tuple(self.slots.get(id(x), x._array) for x in inputs)
        if not any(isinstance(operand, int) for operand in operands):
            return
        slot = len(self.slots)
        self.slots[id(output)] = slot
        self.size = max(self.size, output._array.size)
        shapes = tuple(x._array.shape for x in inputs)
        self.calls.append(Call(op, operands, shapes, arguments, slot))


class Replay:
    """A recorded formula that can be run again on other arrays."""

    def __init__(self, recording: Recording, output: Tensor, count: int) -> None:
        self.calls = recording.calls
        self.size = recording.size
        self.count = count
        self.output = recording.slots.get(id(output))
        self.output_size = output._array.size

    @property
    def batchable(self) -> bool:
        """Whether every operation says how it takes a leading axis."""
        return self.output is not None and all(
            getattr(call.op, "batch", None) is not None for call in self.calls
        )

    def run_rows(self, leaves: Sequence[Array], rows: Sequence[bool]) -> Array:
        """Run with a leading axis on the leaves that `rows` marks; one output row each."""
        held: list[Any] = list(leaves)
        batched = list(rows)
        for call in self.calls:
            array, with_rows = _run_call(call, held, batched)
            held.append(array)
            batched.append(with_rows)
        assert self.output is not None
        result = np.asarray(held[self.output], dtype=np.float64)
        return result if batched[self.output] else result[None]


def _run_call(call: Call, held: list[Any], batched: list[bool]) -> tuple[Array, bool]:
    arrays = [held[x] if isinstance(x, int) else x for x in call.operands]
    with_rows = [isinstance(x, int) and batched[x] for x in call.operands]
    if not any(with_rows):
        return call.op.compute(arrays, call.arguments), False
    count = next(len(a) for a, own in zip(arrays, with_rows, strict=True) if own)
    if call.op.batch == "elementwise":
        rank = max(len(shape) for shape in call.shapes)
        aligned = [
            _aligned(array, rank) if own else array
            for array, own in zip(arrays, with_rows, strict=True)
        ]
        return call.op.compute(aligned, call.arguments), True
    arguments = call.op.batch(call.arguments, call.shapes)
    if arguments is None:
        raise NotBatchableError(f"{call.op.name} has no batch rule for this call")
    spread = []
    for number, (array, own) in enumerate(zip(arrays, with_rows, strict=True)):
        if own:
            if not _has_formula(call.op, number):
                raise NotBatchableError(f"an operand of {call.op.name} moves that has no gradient")
            spread.append(array)
        elif _has_formula(call.op, number):
            spread.append(np.broadcast_to(array, (count, *array.shape)))
        else:
            spread.append(array)
    return call.op.compute(spread, arguments), True


def _has_formula(op: Any, number: int) -> bool:
    if op.variadic or op.joint is not None:
        return True
    return op.vjps[number] is not None


def _aligned(array: Array, rank: int) -> Array:
    """Put the operand's own dims at the end, as broadcasting without the leading axis would."""
    missing = rank - (array.ndim - 1)
    if missing == 0:
        return array
    return array.reshape(len(array), *(1,) * missing, *array.shape[1:])


def record_calls(subject: TensorSubject) -> tuple[Replay, Recording]:
    """Record one evaluation of the formula at its float64 inputs, in the order it happens."""
    leaves = [subject.moved[i] for i in subject.positions]
    recording = Recording(leaves)
    with enable_grad(), observing(recording):
        output = subject.function(*subject.moved)
    subject.evaluations += 1
    return Replay(recording, output, len(leaves)), recording


def probe_rows(subject: TensorSubject, replay: Replay, single: Probe) -> Probe | None:
    """A probe that moves many entries of one input at once; None if a row would differ.

    The check is made on the spot: two perturbed entries of each input, replayed and evaluated.
    """
    rows = int(np.clip(CACHE_BYTES // (8 * replay.size), 4, MOST_ROWS))

    def probe(which: int, entries: Array, steps: Floats) -> tuple[Floats, Floats]:
        array = subject.arrays[which]
        flat = np.array(array, dtype=np.float64).reshape(-1)
        taken = np.empty(len(entries))
        outputs = np.empty((len(entries), replay.output_size))
        marks = [number == which for number in range(len(subject.arrays))]
        for start in range(0, len(entries), rows):
            block = slice(start, start + rows)
            at = entries[block]
            moved = np.repeat(flat[None], len(at), axis=0)
            line = np.arange(len(at))
            moved[line, at] += steps[block]
            taken[block] = moved[line, at] - flat[at]
            leaves = list(subject.arrays)
            leaves[which] = moved.reshape(len(at), *array.shape)
            try:
                rows_there = replay.run_rows(leaves, marks)
            except Exception:
                # One row in which an operation raises must not take the others with it.
                _, rows_there = single(which, at, steps[block])
            outputs[block] = rows_there.reshape(-1, replay.output_size)
        subject.evaluations += len(entries)
        return taken, outputs

    try:
        for which, array in enumerate(subject.arrays):
            if array.size and not _same(which, array, probe, single):
                return None
    except Exception:
        # A rule that does not fit this call must not decide a verdict; one by one always works.
        return None
    return probe


def _same(which: int, array: Array, probe: Probe, single: Probe) -> bool:
    entries = np.unique([0, array.size - 1])
    steps = 1e-3 * np.maximum(1.0, np.abs(array.reshape(-1)[entries]))
    _, together = probe(which, entries, steps)
    _, apart = single(which, entries[:1], steps[:1])
    scale = np.abs(apart).max(initial=1.0)
    return bool(np.allclose(together[:1], apart, rtol=1e-12, atol=1e-13 * scale, equal_nan=True))
