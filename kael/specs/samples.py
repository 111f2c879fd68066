"""Checks an instance at more points than its own, and tells the smallest inputs that fail.

Which points there are is the checker's to say (`kael.checker.sampling`); here they become leaves,
and what was found there becomes part of the instance's result.
"""

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kael.checker.model import Report
from kael.checker.sampling import Sampled, Source, points, shrink, written
from kael.specs.expression import Expression
from kael.specs.inputs import generator
from kael.specs.model import Instance
from kael.specs.place import SpecError
from kael.specs.results import Result
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]
Verify = Callable[[dict[str, Tensor], bool], Report]
"""Checks the formula at some leaves; the flag asks for a diagnosis of what does not hold."""

NOT_LOOKED_AT = "the evaluations allowed are used up"
"""The coverage of a report on a point that was not looked at."""

MOST_WRITTEN = 256
"""Numbers that a command still holds; larger inputs are told by their sample alone."""


def look(
    instance: Instance, seed: int, count: int, verify: Verify, result: Result
) -> dict[str, Array] | None:
    """Check at `count` drawn points and at those of special values; fill the result.

    Returns the smallest inputs that fail, where any do.
    """
    sources = sources_of(instance, seed)
    if not count or not sources:
        return None
    tried = skipped = unseen = 0
    failing: list[tuple[Sampled, Report]] = []
    for point in points(sources, count, partial(stream, instance, seed)):
        tried += 1
        report = _report(instance, seed, point.arrays, verify, False)
        if report is not None and report.coverage == NOT_LOOKED_AT:
            unseen += 1
        elif report is None or report.status in ("error", "skipped"):
            skipped += 1
        elif report.status == "failed":
            failing.append((point, report))
        elif report.status == "inconclusive" and not point.edge:
            _add(report, result, point.label)
        else:
            _add(report, result, None)
    seen = f"also checked at {tried - skipped - unseen} of {tried} sampled points"
    outside = f"; at {skipped if unseen else 'the others'} the formula has no value"
    bounded = f"; at {unseen} not, as {NOT_LOOKED_AT}"
    result.notes.append(seen + (outside if skipped else "") + (bounded if unseen else ""))
    return _smallest(instance, seed, sources, failing, verify, result) if failing else None


def sources_of(instance: Instance, seed: int) -> list[Source]:
    """The inputs that move, and how they are drawn."""
    sources = []
    for name, leaf in instance.leaves(seed).items():
        if not leaf.requires_grad or not leaf.numel():
            continue
        given = instance.inputs[name]
        values = np.array(leaf.numpy())
        low, high = given.bounds if given.init == "uniform" else (None, None)
        sources.append(
            Source(name, values, partial(_draw, given.init, values, low, high), low, high)
        )
    return sources


def stream(instance: Instance, seed: int, name: str, number: Any) -> "np.random.Generator":
    """The random numbers of an input at a point: of the spec's own content, not of any order."""
    output = instance.spec.output
    text = output.text if isinstance(output, Expression) else instance.spec.name
    return generator(seed, instance.title, text, name, "sample", number)


def _draw(
    init: str | None,
    values: Array,
    low: float | None,
    high: float | None,
    rng: "np.random.Generator",
) -> Array:
    """New values: generators draw anew, given values move by up to a half.

    A given value is multiplied entry by entry, so that it keeps its sign and stays in a domain
    such as the positive numbers.
    """
    drawn: Any
    if init == "normal":
        drawn = rng.standard_normal(values.shape)
    elif low is not None and high is not None:
        drawn = np.clip(low + (high - low) * rng.random(values.shape), low, high)
    else:
        drawn = values * rng.uniform(0.5, 1.5, values.shape)
    return np.asarray(drawn, values.dtype)


def _report(
    instance: Instance, seed: int, arrays: dict[str, Array], verify: Verify, diagnosed: bool
) -> Report | None:
    leaves = instance.leaves(seed)
    for name, array in arrays.items():
        leaves[name]._array[...] = array
    try:
        return verify(leaves, diagnosed)
    except SpecError:
        return None


def _add(report: Report, result: Result, label: str | None) -> None:
    """Count what held into the checks of the given point; keep what did not beside them."""
    held = {(check.kind, check.input): check for check in result.checks}
    for extra in report.checks:
        known = held.get((extra.kind, extra.input))
        if label is not None and extra.status != "passed":
            extra.note = label + (f": {extra.note}" if extra.note else "")
            result.checks.append(extra)
        elif known is not None and extra.status == "passed":
            known.compared += extra.compared
            known.max_abs_error = max(known.max_abs_error, extra.max_abs_error)
            known.max_rel_error = max(known.max_rel_error, extra.max_rel_error)
    if label is not None:
        result.diagnosis += [one for one in report.diagnosis if one not in result.diagnosis]


def _smallest(
    instance: Instance,
    seed: int,
    sources: list[Source],
    failing: list[tuple[Sampled, Report]],
    verify: Verify,
    result: Result,
) -> dict[str, Array]:
    """Shrink the first failing point and report it in full."""
    point, report = failing[0]
    wanted = _failures(report)

    def fails(arrays: dict[str, Array]) -> bool:
        found = _report(instance, seed, arrays, verify, False)
        return found is not None and found.status == "failed" and bool(wanted & _failures(found))

    arrays = shrink(sources, point.arrays, fails)
    final = _report(instance, seed, arrays, verify, True)
    if final is not None and final.status == "failed":
        _add(final, result, f"{point.label}, shrunk")
    else:  # no evaluations are left to look at it again
        _add(report, result, point.label)
    others = f", {len(failing)} points in all" if len(failing) > 1 else ""
    result.notes.append(
        f"fails at sampled inputs ({point.label}{others}); the smallest found: {told(arrays)}"
    )
    return arrays


def _failures(report: Report) -> set[tuple[str, str | None]]:
    return {(check.kind, check.input) for check in report.checks if check.status == "failed"}


def told(arrays: dict[str, Array]) -> str:
    """The inputs as `x=[0, 1]`, short ones in full."""
    return ", ".join(
        f"{name}={literal(array)}" if array.size <= 16 else f"{name} of shape {list(array.shape)}"
        for name, array in arrays.items()
    )


def values_of(arrays: dict[str, Array]) -> list[tuple[str, str]] | None:
    """The options that give these inputs on the command line; None where they are too long."""
    if sum(array.size for array in arrays.values()) > MOST_WRITTEN:
        return None
    return [("-i", f"{name}={literal(array)}") for name, array in arrays.items()]


def literal(array: Array) -> str:
    """An array as the command line reads it; whole numbers without a point.

    >>> literal(np.array([0.0, -1.5, 1e-08]))
    '[0,-1.5,1e-08]'
    """

    def short(value: Any) -> Any:
        if isinstance(value, list):
            return [short(one) for one in value]
        return int(value) if math.isfinite(value) and value == int(value) else value

    return json.dumps(short(written(array)), separators=(",", ":"))
