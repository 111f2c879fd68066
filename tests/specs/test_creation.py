"""Constants that an expression makes from a shape."""

from typing import Any

import numpy as np
import pytest

import kael
from kael.checker import check
from kael.specs.creation import CREATORS
from kael.specs.expression import parse
from kael.specs.language import callable_names
from kael.specs.place import SpecError

X = kael.tensor([1.0, 2.0, 3.0], requires_grad=True)
M = kael.tensor(np.array([[1, 2], [3, 4]], np.float32))
NAMES = {"x": X, "m": M}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eye(2)", np.eye(2)),
        ("eye(2, 3)", np.eye(2, 3)),
        ("eye(n=2, m=3)", np.eye(2, 3)),
        ("eye(x.shape[0])", np.eye(3)),
        ("zeros(2, 3)", np.zeros((2, 3))),
        ("zeros([2, 3])", np.zeros((2, 3))),
        ("zeros(size=x.shape)", np.zeros(3)),
        ("ones(2, 3, dtype=int64)", np.ones((2, 3), np.int64)),
        ("ones(2, dtype='float32')", np.ones(2, np.float32)),
        ("full([2], 3)", np.full(2, 3.0)),
        ("full(2, fill_value=-inf)", np.full(2, -np.inf)),
        ("arange(3)", np.arange(3.0)),
        ("arange(1, 5, 2)", np.array([1.0, 3.0])),
        ("arange(0, 1, step=0.5)", np.array([0.0, 0.5])),
        ("arange(3, dtype=int64)", np.arange(3)),
        ("linspace(0, 1, steps=3)", np.array([0.0, 0.5, 1.0])),
        ("zeros_like(x)", np.zeros(3)),
        ("ones_like(m)", np.ones((2, 2), np.float32)),
        ("ones_like(x=m, dtype=float64)", np.ones((2, 2))),
        ("full_like(m, 2)", np.full((2, 2), 2, np.float32)),
    ],
)
def test_value(text: str, expected: Any) -> None:
    found = parse(text, names=list(NAMES)).evaluate(NAMES)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found.numpy(), expected)
    assert not found.requires_grad


def test_the_default_dtype_is_that_of_the_run() -> None:
    kael.set_default_dtype("float32")
    try:
        assert parse("eye(2)").evaluate({}).dtype == np.float32
    finally:
        kael.set_default_dtype("float64")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("full([2], x[0])", "full makes a constant, from numbers and not from a tensor"),
        ("linspace(0, x[0], 3)", "linspace makes a constant, from numbers and not from a tensor"),
        ("zeros([x[0]])", "zeros makes a constant, from numbers and not from a tensor"),
        ("full_like(x, x)", "full_like makes a constant, from numbers and not from a tensor"),
        ("zeros_like(3)", "zeros_like takes a tensor, got int"),
        ("zeros(-1)", "zeros: sizes must not be negative, got [-1]"),
        ("zeros(2.5)", "zeros: size must be an integer, got float"),
        ("arange(0, 1, 0)", "arange: a step of 0 never leads from 0 to 1"),
        ("arange(0, inf)", "arange: end must be a finite number, got inf"),
        ("ones(2, dtype=flaot32)", "unknown dtype 'flaot32'"),
    ],
)
def test_what_no_constant_is_made_of(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text, names=list(NAMES)).evaluate(NAMES)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        *("zeros(11)", "ones(3, 4)", "full([11], 1)", "eye(4)", "arange(11)"),
        *("arange(0, 1, 0.01)", "linspace(0, 1, 11)", "zeros(2**40, 2**40)", "arange(1e15)"),
    ],
)
def test_a_constant_over_the_limit_is_not_made(text: str) -> None:
    with pytest.raises(SpecError, match="more than the limit of 10; --max-elements raises it"):
        parse(text).evaluate({}, max_elements=10)


@pytest.mark.parametrize("name", ["rand", "randn", "rand_like", "randn_like", "uniform"])
def test_what_is_drawn_is_an_input(name: str) -> None:
    with pytest.raises(SpecError, match="draws no random numbers; make it an input"):
        parse(f"{name}(3)")


def test_suggestions_know_the_names() -> None:
    assert callable_names() >= CREATORS.keys()


@pytest.mark.parametrize(
    "text",
    [
        "solve(x.outer(x) + 2*eye(3), ones(3)).sum()",
        "(x[None] * ones(4, 1) + arange(4)[:, None]).tanh()",
        "where(tril(ones(3, 3)) > 0, x.outer(x), full([3, 3], -inf)).softmax(dim=-1)",
        "x[arange(2, dtype=int64)] * ones_like(x[:2])",
    ],
)
def test_gradients_of_formulas_with_constants(text: str) -> None:
    formula = parse(text, names=["x"])
    report = check(lambda x: formula.evaluate({"x": x}), [X], ["x"])
    assert report.status == "passed"
    assert any(one.kind == "numeric" and one.compared == 3 for one in report.checks)
