"""Sizes told before memory is taken."""

from typing import Any

import numpy as np
import pytest

import kael
from kael.specs.growth import operation_shape
from kael.tensors import Tensor


def zeros(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape))


EQUATIONS: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("i,j->ij", ((3,), (4,))),
    ("ij,jk", ((2, 3), (3, 4))),
    ("ii->i", ((3, 3),)),
    ("...i->...i", ((2, 3, 5, 2),)),
    ("...i,...j->...ij", ((2, 1, 4), (3, 5))),
    ("i...,i->...", ((2, 3, 4), (2,))),
    ("...i,...i", ((2, 3), (2, 3))),
]


@pytest.mark.parametrize(("equation", "given"), EQUATIONS)
def test_einsum_is_told_as_it_comes_out(equation: str, given: tuple[tuple[int, ...], ...]) -> None:
    tensors = [zeros(*shape) for shape in given]
    told = operation_shape("einsum", [equation, *tensors])
    assert told is not None
    assert sorted(told) == sorted(kael.einsum(equation, *tensors).shape)


@pytest.mark.parametrize("values", [("i->j", zeros(2)), ("i->i->", zeros(2)), (3, zeros(2))])
def test_what_is_not_understood_is_left_to_the_operation(values: Any) -> None:
    assert operation_shape("einsum", list(values)) is None
