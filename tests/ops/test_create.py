"""Tensors made from a shape or a range."""

import kael


def test_every_generator_gives_the_default_dtype():
    made = (kael.arange(3), kael.linspace(0, 1, 3), kael.zeros(2), kael.eye(2))
    assert [tensor.dtype for tensor in made] == [kael.float64] * 4
    assert kael.arange(3).requires_grad_().requires_grad


def test_arange_gives_integers_where_they_are_asked_for():
    assert kael.arange(1, 6, 2, dtype="int64").tolist() == [1, 3, 5]
    assert kael.arange(3, dtype="int64").dtype == kael.int64
