"""Where the tests of an operation draw from: domains of elements, and whole sample calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Domain = Callable[["np.random.Generator", tuple[int, ...]], Array]

UNARY_SHAPES: Sequence[tuple[int, ...]] = ((), (3,), (2, 3), (1, 4), (0,), (2, 0, 3))
BINARY_SHAPES: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = (
    ((), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((), (2, 2)),
    ((4, 1, 2), (3, 1)),
    ((0,), (1,)),
)


@dataclass(frozen=True)
class Sample:
    """One call of an operation: its tensor operands in order, and its plain arguments by name."""

    inputs: tuple[Array, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw standard normal values."""
    return np.asarray(rng.standard_normal(shape))


def uniform(low: float, high: float) -> Domain:
    """Return a domain of uniform values between `low` and `high`."""
    return lambda rng, shape: np.asarray(rng.uniform(low, high, shape))


positive = uniform(0.5, 2.5)


def away_from(*points: float, margin: float = 0.2, spread: float = 2.0) -> Domain:
    """Return a domain that keeps every value at least `margin` away from the points."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        values = np.asarray(rng.uniform(-spread, spread, shape))
        for point in points:
            offset = values - point
            near = np.abs(offset) < margin
            values = np.where(near, point + np.where(offset < 0, -margin, margin) * 1.5, values)
        return np.asarray(values)

    return draw


def distinct(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw values no two of which are close: for extremes and sorting."""
    size = int(np.prod(shape))
    steps = rng.permutation(size).astype(float)
    return np.asarray(0.3 * steps - 0.15 * size + 0.05).reshape(shape)


def unary_samples(
    rng: np.random.Generator, domain: Domain, settings: Sequence[Mapping[str, Any]] = ({},)
) -> Iterator[Sample]:
    """Yield calls with one operand in several shapes, 0-d and empty among them."""
    for arguments in settings:
        for shape in UNARY_SHAPES:
            yield Sample((domain(rng, shape),), arguments)


def binary_samples(rng: np.random.Generator, first: Domain, second: Domain) -> Iterator[Sample]:
    """Yield calls with two operands that broadcast both ways."""
    for left, right in BINARY_SHAPES:
        yield Sample((first(rng, left), second(rng, right)))


def broadcast_samples(
    rng: np.random.Generator,
    *domains: Domain,
    settings: Sequence[Mapping[str, Any]] = ({},),
) -> Iterator[Sample]:
    """Yield calls with one operand a domain; each operand in turn is the one that is stretched."""
    for arguments in settings:
        for shape in ((), (3,), (2, 3), (0,)):
            yield Sample(tuple(domain(rng, shape) for domain in domains), arguments)
        for at in range(len(domains)):
            yield Sample(
                tuple(
                    domain(rng, (1, 2) if other == at else (3, 2))
                    for other, domain in enumerate(domains)
                ),
                arguments,
            )
