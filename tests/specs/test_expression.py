"""Values of expressions, their limits, and errors while evaluating."""

import contextlib
import math
import operator
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kael.engine.grad_mode import observing
from kael.specs.expression import Expression, current_span, parse
from kael.specs.place import Place, SpecError
from kael.tensors import Tensor


def tensor(*values: Any, dtype: str = "float64") -> Tensor:
    return Tensor(np.array(values if len(values) != 1 else values[0], dtype))


X = np.array([1.0, 2.0, 3.0])
W = np.array([0.5, -1.0, 2.0])
M = np.array([[1.0, 2.0], [3.0, 4.0]])
NAMES: dict[str, Any] = {
    "x": Tensor(X),
    "w": Tensor(W),
    "m": Tensor(M),
    "i": tensor(0, 2, dtype="int64"),
    "f": tensor(0, 1),
    "s": Tensor(np.array([1.0, 2.0], np.float32)),
}


def value(text: str, **names: Any) -> Any:
    found = parse(text, names=[*NAMES, *names]).value(NAMES | names)
    return found.numpy() if isinstance(found, Tensor) else found


VALUES = [
    ("tanh(x*w + x).sum()", np.tanh(X * W + X).sum()),
    ("x - w", X - W),
    ("x / w", X / W),
    ("x // 2", X // 2),
    ("x % 2", X % 2),
    ("x ** 2", X**2),
    ("2 ** x", 2**X),
    ("-x", -X),
    ("1 - x", 1 - X),
    ("m @ m", M @ M),
    ("m.T", M.T),
    ("m.mT @ m", M.T @ M),
    ("x > 1.5", X > 1.5),
    ("x == x", np.array([True, True, True])),
    ("(x > 1) & (w > 0)", (X > 1) & (W > 0)),
    ("(x > 2) | (w > 0)", (X > 2) | (W > 0)),
    ("~(x > 1)", X <= 1),
    ("x[0]", 1.0),
    ("x[-1]", 3.0),
    ("x[1:]", X[1:]),
    ("x[::2]", X[::2]),
    ("x[x.shape[0] - 1]", 3.0),
    ("x[i]", X[[0, 2]]),
    ("x[[2, 0]]", X[[2, 0]]),
    ("x[x > 1]", X[X > 1]),
    ("m[:, 1]", M[:, 1]),
    ("m[..., None]", M[..., None]),
    ("m[None, 0, 1:]", M[None, 0, 1:]),
    ("cat([x, w], dim=0)", np.concatenate([X, W])),
    ("x.sum(dim=0, keepdim=True)", X.sum(keepdims=True)),
    ("x.reshape(3, 1)", X.reshape(3, 1)),
    ("reshape(x, [3, 1])", X.reshape(3, 1)),
    ("where(x > 1, x, 0)", np.where(X > 1, X, 0)),
    ("max(x, w)", np.maximum(X, W)),
    ("x * pi + e", X * math.pi + math.e),
    ("sqrt(2*pi) * x", math.sqrt(2 * math.pi) * X),
    ("x * inf", X * math.inf),
    ("x.ndim * x.shape[0]", 3),
    ("0x10 + 1_000", 1016),
    ("1e-3", 0.001),
    ("2 + 3 * 4 - 6 / 3 % 5", 12.0),
    ("2 ** 3 ** 2", 512),
    ("-2 ** 2", -4),
    ("7 // 2", 3),
    ("True & False", False),
    ("~True", False),
    ("2 < 3", True),
    ("gelu(x, approximate='none') - gelu(x)", X * 0),
]


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=[row[0] for row in VALUES])
def test_value(text: str, expected: Any) -> None:
    np.testing.assert_allclose(value(text), expected, rtol=1e-14)


@pytest.mark.parametrize("text", ["sqrt(2*pi)", "exp(1)", "log(2.0)", "(2).sqrt()", "pow(2, -1)"])
def test_what_plain_numbers_give_is_a_plain_number(text: str) -> None:
    assert type(value(text)) is float


def test_plain_numbers_do_not_change_a_dtype() -> None:
    assert value("s * sqrt(2*pi) + 1").dtype == np.float32


def test_evaluate_gives_a_tensor_of_a_number() -> None:
    result = parse("2 + 3").evaluate({})
    assert (result.shape, result.dtype, result.item()) == ((), np.float64, 5.0)


def test_input_names_hide_constants() -> None:
    assert value("e * 2", e=tensor(3.0)) == 6.0
    assert value("pi", pi=tensor(3.0)) == 3.0


def test_a_name_in_call_position_is_the_operation() -> None:
    np.testing.assert_array_equal(value("sum(sum)", sum=tensor(1, 2)), 3.0)


FAILURES = [
    ("1 + x @ m", 5, "matmul: shapes [3] and [2, 2] do not match"),
    ("x*2 + (x + m)", 8, "add: shapes [3] and [2, 2] do not broadcast"),
    ("x.sum(dim=1)", 1, "sum: dim 1 is out of range"),
    ("w + x[5]", 5, "select: index 5 is out of range"),
    ("x[f]", 1, "an index tensor must hold integers or booleans, got float64"),
    ("x[0.5]", 1, "a number (0.5) is no index"),
    ("x[1.0:]", 3, "a slice takes integers"),
    ("x & w", 1, "& takes booleans"),
    ("~x", 1, "~ takes booleans"),
    ("2 & 3", 1, "& takes booleans"),
    ("x * None", 1, "* takes tensors and numbers, not None"),
    ("-(x > 1)", 1, "neg takes no booleans; use ~ or logical_not"),
    ("(x > 1) - (x > 2)", 1, "sub takes no booleans; use logical_xor"),
    ("-None", 1, "- takes tensors and numbers, not None"),
    ("x.shape + 1", 1, "+ takes tensors and numbers, not a tuple"),
    ("x.shape[5]", 1, "index 5 is out of range for a tuple of 1"),
    ("x.shape[True]", 1, "a tuple is indexed by one integer"),
    ("(2).T", 1, ".T is an attribute of a tensor, not of a number"),
    ("(2)[0]", 1, "a number cannot be indexed"),
    ("1 / 0", 1, "division by zero"),
    ("1 % 0", 1, "division by zero"),
    ("0 ** -1", 1, "division by zero"),
    ("2 @ 3", 1, "@ takes tensors, not numbers"),
    ("(-8) ** (1/3)", 1, "a negative number has no real power"),
    ("9 ** 9 ** 9", 1, "the result is beyond the range of a float"),
    ("10.0 ** 400", 1, "the result is beyond the range of a float"),
    ("2 ** 1023 * 4", 1, "an integer beyond the range of a float"),
]


@pytest.mark.parametrize(("text", "column", "message"), FAILURES, ids=[row[0] for row in FAILURES])
def test_failure_points_at_the_sub_expression(text: str, column: int, message: str) -> None:
    expression = parse(text, names=list(NAMES))
    with pytest.raises(SpecError) as caught:
        expression.evaluate(NAMES)
    assert str(caught.value).startswith(f"<expression>:1:{column}: {message}")


@pytest.mark.parametrize(
    ("place", "form"),
    [
        (Place(None, 1, 1, "<expression>"), "tensor([0, 2], dtype=int64)"),
        (Place("a.yaml", 1, 1), "{value: [0, 2], dtype: int64}"),
        (Place(None, 1, 1, "<stdin>"), "{value: [0, 2], dtype: int64}"),
        (Place("a.py", 1, 1), 'kael.Input([0, 2], dtype="int64")'),
    ],
    ids=str,
)
@pytest.mark.parametrize("text", ["x[f]", "cross_entropy(m, w[:2])", "index_select(x, 0, f)"])
def test_real_positions_are_told_how_integers_are_written(
    place: Place, form: str, text: str
) -> None:
    with pytest.raises(SpecError, match="must hold integers") as caught:
        parse(text, place).evaluate(NAMES)
    assert form in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["x.shape", "None"])
def test_output_that_is_no_tensor(text: str) -> None:
    with pytest.raises(SpecError, match="not a tensor"):
        parse(text).evaluate(NAMES)


def test_missing_value_of_a_name() -> None:
    with pytest.raises(SpecError, match="'q' has no value"):
        parse("x + q").evaluate(NAMES)


def test_powers_of_plain_integers_do_not_hang() -> None:
    started = time.perf_counter()
    for text in ("9**9**9", "9**9**9**9", "(2**1000)**1000", "1**9**9 + x.ndim*0", "0**(9**9)"):
        with contextlib.suppress(SpecError):
            value(text)
    assert time.perf_counter() - started < 2


# Limits


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" + "+x" * 20_000, 20_001 * X),
        ("x" + " - x + x" * 5_000, X),
        ("sum(x" + "+x" * 3_000 + ", dim=0) * 2", 3_001 * 6.0 * 2),
        ("1" + "*1" * 10_000 + " + 2" + "*1" * 10_000, 3),
        ("-" * 990 + "x", X),
        ("x" + ".T" * 990, X),
        ("x" + "**1" * 900, X),
        ("x" + ".abs()" * 490, X),
        ("(" * 150 + "x" + ")" * 150, X),
        ("é" + " + é" * 2_000, 2_001 * X),
        ("(x > 0)" + " & (x > 0)" * 4_000, X > 0),
    ],
    ids=lambda case: case[:12] if isinstance(case, str) else "",
)
def test_long_and_deep_expressions(text: str, expected: Any) -> None:
    np.testing.assert_allclose(value(text, é=NAMES["x"]), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-" * 1_001 + "x", "the expression nests over 1,000 levels"),
        ("-" * 50_000 + "x", "the expression nests over 1,000 levels"),
        ("x" + ".T" * 1_001, "the expression nests over 1,000 levels"),
        ("x" + ".T" * 40_000, "the expression nests over 1,000 levels"),
        ("x" + "**1" * 1_001, "the expression nests over 1,000 levels"),
        ("x" + "[0]" * 20_000, "the expression nests over 1,000 levels"),
        (
            "(" * 201 + "x" + ")" * 201,
            "too many nested parentheses: Python's parser reads at most 200",
        ),
        ("x" + " + x" * 30_000, "the expression has 120,001 characters; at most 100,000 are read"),
    ],
    ids=lambda case: case[:12],
)
def test_limits_state_themselves(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text, names=list(NAMES))
    assert caught.value.message == message


def test_place_in_a_long_chain() -> None:
    text = "x" + " + x" * 2_000 + " + tahn(x)"
    with pytest.raises(SpecError) as caught:
        parse(text, names=["x"])
    assert caught.value.place.column == text.index("tahn") + 1


@pytest.mark.parametrize(
    "text",
    [
        "x[:, None] + x[None, :]",
        "x[:, None] @ x[None, :]",
        "cat([x, x, x], dim=0)",
        "where(x[:, None] > 0, x, 0)",
        "x[z]",
        "outer(x, x)",
        "x.expand(3, 1000)",
        "x.repeat(3)",
        "tile(x, [3])",
        "stack([x, x, x])",
        "one_hot(z[0], 100)",
        "pad(x, [0, 1001])",
        "einsum('i,j->ij', x, x)",
        "einsum('i,j', x, x)",
        "tensordot(x, x, 0)",
        "matmul(x[:, None], x[None])",
        "unfold(x, 0, 500, 1)",
        "index_select(x[:, None], 0, z.reshape(-1))",
        "mse_loss(x[:, None], x, reduction='none')",
        "conv1d(x[None, None], x[None, None, :3], padding=1000)",
    ],
)
def test_results_over_the_limit_are_refused(text: str) -> None:
    names = {"x": Tensor(np.ones(1000)), "z": Tensor(np.zeros((50, 60), np.int64))}
    expression = parse(text, names=list(names))
    with pytest.raises(SpecError, match="more than the limit of 2,000"):
        expression.evaluate(names, max_elements=2_000)


def test_the_limit_is_met_before_memory_is_taken() -> None:
    row = Tensor(np.broadcast_to(np.zeros(1), (10**7,)))
    started = time.perf_counter()
    with pytest.raises(SpecError, match="100,000,000,000,000 elements"):
        parse("x[:, None] * x[None, :]").evaluate({"x": row})
    assert time.perf_counter() - started < 5


# Spans


def test_current_span_while_operations_run() -> None:
    seen: list[tuple[str, str]] = []

    def watch(op: Any, *rest: Any) -> None:
        span = current_span()
        assert span is not None
        seen.append((op.name, span.text))

    place = Place("f.yaml", 3, 10)
    expression = parse("tanh(x*w + x).sum()", place)
    with observing(watch):
        expression.evaluate(NAMES)
    assert seen == [
        ("mul", "x*w"),
        ("add", "x*w + x"),
        ("tanh", "tanh(x*w + x)"),
        ("sum", "tanh(x*w + x).sum()"),
    ]
    assert current_span() is None


def test_span_place_counts_from_the_texts_own_place() -> None:
    seen: list[str] = []
    expression = parse("1 + tanh(x)", Place("f.yaml", 3, 10))
    with observing(lambda op, *rest: seen.append(str(current_span().place))):  # type: ignore[union-attr]
        expression.evaluate(NAMES)
    assert seen == ["f.yaml:3:14", "f.yaml:3:10"]


# Properties

literals = st.integers(1, 9).map(str) | st.sampled_from(["x", "w", "0.5"])
formulas = st.recursive(
    literals,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        )
        | inner.map(lambda t: f"-{t}")
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(formulas)
def test_arithmetic_agrees_with_pythons_own(text: str) -> None:
    expected = eval(text, {"x": X, "w": W})
    np.testing.assert_allclose(value(text), expected, rtol=1e-12)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["+", "-"]), min_size=1, max_size=1500))
def test_long_chains_keep_their_order(symbols: list[str]) -> None:
    text = "x" + "".join(f" {symbol} {n % 7}" for n, symbol in enumerate(symbols))
    expected = X
    for n, symbol in enumerate(symbols):
        expected = (operator.add if symbol == "+" else operator.sub)(expected, n % 7)
    np.testing.assert_allclose(value(text), expected)


@settings(deadline=None, max_examples=200)
@given(st.text("x w+-*/().,[]:'\"=#\n\té_1e@&|~<>!{}%^", max_size=40))
def test_no_text_gives_anything_but_an_expression_or_an_error(text: str) -> None:
    found: Any = None
    with contextlib.suppress(SpecError):
        found = parse(text, names=["x", "w"])
    assert found is None or isinstance(found, Expression)
