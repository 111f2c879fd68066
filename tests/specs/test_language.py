"""What the expression language refuses, with the exact place and sentence."""

import pytest

from kael.specs.expression import parse
from kael.specs.place import Place, SpecError

NAMES = ("x", "w", "m")


def refusal(text: str, names: tuple[str, ...] | None = NAMES) -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse(text, names=names)
    return caught.value


REFUSED = [
    # unknown and misused names
    ("tahn(x)", 1, "unknown operation 'tahn'; did you mean 'tanh'?"),
    ("1 + x.tahn()", 7, "unknown operation 'tahn'; did you mean 'tanh'?"),
    ("x + z", 5, "unknown name 'z'"),
    ("tanh", 1, "'tanh' is an operation; call it: tanh(…)"),
    ("x.tanh + 1", 3, "'tanh' is an operation; call it: .tanh()"),
    ("x(1)", 1, "'x' is a tensor and cannot be called"),
    ("x.T()", 3, "'.T' is an attribute; write it without ()"),
    ("x.grad", 3, "unknown attribute 'grad'"),
    ("x.shap", 3, "unknown attribute 'shap'; did you mean 'shape'?"),
    ("cat([x]).cat()", 10, "'cat' is not a method; call it as a function: cat(…)"),
    # calls
    ("tanh()", 1, "tanh: argument 'x' is missing"),
    ("tanh(x, w)", 9, "tanh takes at most 1 argument, got 2"),
    ("sum(x, dimm=0)", 8, "sum: unknown argument 'dimm'; did you mean 'dim'?"),
    ("sum(x, axis=0)", 8, "sum: unknown argument 'axis'; did you mean 'dim'?"),
    ("x.sum(keepdims=True)", 7, "sum: unknown argument 'keepdims'; did you mean 'keepdim'?"),
    ("torch.tanh(x)", 1, "'torch' is not an input"),
    ("1 + torch.nn.functional.relu(x)", 5, "'torch' is not an input"),
    ("x * math.pi", 5, "'math' is not an input"),
    ("eye() @ x", 1, "eye: argument 'n' is missing"),
    ("eye(2, 3, 4)", 11, "eye takes at most 2 arguments, got 3"),
    ("eye(3, q=1)", 8, "eye: unknown argument 'q'"),
    ("zeros(2, 3, size=[2])", 13, "zeros: argument 'size' is given twice"),
    ("zeross(3)", 1, "unknown operation 'zeross'; did you mean 'zeros'?"),
    ("x.zeros_like()", 3, "'zeros_like' is not a method; call it as a function"),
    ("torch.eye(3)", 1, "'torch' is not an input"),
    ("eye + x", 1, "'eye' is an operation; call it: eye(…)"),
    ("zeros('a')", 7, "a string may stand only where an operation takes one"),
    ("randn(3) + x", 1, "unknown operation 'randn'"),
    ("tensor([1]) + x", 1, "unknown operation 'tensor'"),
    ("sum(x, dim=0, dim=1)", 15, "sum: argument 'dim' is given twice"),
    ("sum(x, 0, dim=1)", 11, "sum: argument 'dim' is given twice"),
    ("tanh(*x)", 6, "* before an argument is not allowed"),
    ("tanh(**x)", 6, "** before an argument is not allowed"),
    ("(x)(w)", 2, "'x' is a tensor and cannot be called"),
    ("x[0](w)", 1, "only an operation can be called"),
    ("tanh(x)(w)", 1, "only an operation can be called"),
    # syntax
    ("x +", 4, "the expression ends too early"),
    ("(x", 1, "'(' was never closed"),
    ("x @@ w", 4, "invalid syntax"),
    ("x = 3", 3, "invalid syntax"),
    ("x; w", 2, "invalid syntax"),
    ("import os", 1, "invalid syntax"),
    ("", 1, "the expression is empty"),
    ("   ", 1, "the expression is empty"),
    # operators and comparisons
    ("x ^ 2", 3, "the operator ^ is not allowed"),
    ("x << 2", 3, "the operator << is not allowed"),
    ("+x", 1, "a + in front of an operand is not allowed"),
    ("not x", 1, "'not' is not allowed"),
    ("x and w", 1, "'and' and 'or' are not allowed"),
    ("x or w", 1, "'and' and 'or' are not allowed"),
    ("x if w else m", 1, "'if … else' is not allowed"),
    ("1 < x < 3", 1, "a chained comparison is not allowed"),
    ("x is w", 1, "'is' is not allowed"),
    ("x is not w", 1, "'is' is not allowed"),
    ("x in w", 1, "'in' is not allowed"),
    ("x not in w", 1, "'in' is not allowed"),
    # literals
    ("3j * x", 1, "a complex number is not allowed"),
    ("b'a'", 1, "a bytes literal is not allowed"),
    ("'text'", 1, "a string may stand only where an operation takes one"),
    ("x + 'text'", 5, "a string may stand only where an operation takes one"),
    ("where(x > 1, 'a', x)", 14, "a string may stand only where an operation takes one"),
    ("...", 1, "... may stand only in an index"),
    ("[x, w]", 1, "a list may stand only in an argument or an index"),
    ("x, w", 1, "a tuple may stand only in an argument or an index"),
    ("x + " + "9" * 400, 5, "an integer beyond the range of a float"),
    # Python that must never run
    ("__import__('os')", 1, "unknown operation '__import__'"),
    ("x.__class__", 3, "unknown attribute '__class__'"),
    ("x.__class__.__mro__", 13, "unknown attribute '__mro__'"),
    ("().__class__", 4, "unknown attribute '__class__'"),
    ("x.numpy()", 3, "unknown operation 'numpy'"),
    ("x.backward()", 3, "unknown operation 'backward'"),
    ("x.add_(1)", 3, "unknown operation 'add_'; did you mean 'add'?"),
    ("eval('1')", 1, "unknown operation 'eval'"),
    ("open('f')", 1, "unknown operation 'open'"),
    ("lambda: x", 1, "a lambda is not allowed"),
    ("(y := x)", 2, ":= is not allowed"),
    ("[a for a in x]", 1, "a comprehension is not allowed"),
    ("{a for a in x}", 1, "a comprehension is not allowed"),
    ("{a: 1 for a in x}", 1, "a comprehension is not allowed"),
    ("sum(a for a in x)", 4, "a generator expression is not allowed"),
    ("{'a': 1}", 1, "a dictionary is not allowed"),
    ("{1, 2}", 1, "a set is not allowed"),
    ("f'{x}'", 1, "an f-string is not allowed"),
    ("x[*w]", 3, "* before an argument is not allowed"),
    ("(yield)", 2, "yield is not allowed"),
    ("(await x)", 2, "await is not allowed"),
]


@pytest.mark.parametrize(
    ("text", "column", "message"), REFUSED, ids=[row[0][:30] for row in REFUSED]
)
def test_refusal_names_place_and_fault(text: str, column: int, message: str) -> None:
    error = refusal(text)
    assert error.message.startswith(message)
    assert str(error).startswith(f"<expression>:1:{column}: {message}")


@pytest.mark.parametrize("text", ["torch.tanh(x)", "F.softmax(x, dim=0)", "x * np.pi"])
def test_a_module_is_no_input_of_an_inline_expression(text: str) -> None:
    with pytest.raises(SpecError, match=r"is not an input\n.*\n.*\n  .* stand without a module: "):
        parse(text, Place(None, 1, 1, "<expression>", text))


@pytest.mark.parametrize("text", ["F.sum(dim=0)", "F.tanh()", "F.T", "np.reshape(2)"])
def test_an_input_may_have_the_name_of_a_module(text: str) -> None:
    assert parse(text).names == (text.partition(".")[0],)
    assert parse(text, names=["F", "np"]).names == parse(text).names


def test_a_bracket_that_the_comma_of_a_yaml_mapping_leaves_open() -> None:
    line = "derivatives: {x: where(x > 0, 1, 0)}"
    flow = Place("gate.yaml", 1, 18, source=line)
    with pytest.raises(SpecError, match="put the expression in quotes"):
        parse("where(x > 0", flow, NAMES)
    plain = Place("gate.yaml", 1, 9, source="output: where(x > 0\n")
    with pytest.raises(SpecError) as caught:
        parse("where(x > 0", plain, NAMES)
    assert "quotes" not in str(caught.value)


def test_refusals_say_what_is_allowed() -> None:
    assert "comparisons, & | ~" in str(refusal("lambda: x"))


def test_error_in_a_yaml_like_place_counts_from_the_start_of_the_text() -> None:
    place = Place("gate.yaml", 7, 9, source="\n" * 6 + "output: x + tahn(x)\n")
    with pytest.raises(SpecError) as caught:
        parse("x + tahn(x)", place, NAMES)
    assert str(caught.value) == (
        "gate.yaml:7:13: unknown operation 'tahn'; did you mean 'tanh'?\n"
        "  output: x + tahn(x)\n"
        "              ^"
    )


def test_columns_are_characters_not_bytes() -> None:
    assert str(refusal("α + β*z", ("α", "β"))).startswith("<expression>:1:7: unknown name 'z'")


def test_lines_of_a_text_with_line_breaks() -> None:
    assert str(refusal("x +\n  tahn(x)")).startswith("<expression>:2:3: unknown operation")


def test_line_breaks_and_comments_need_no_parentheses() -> None:
    assert parse("x  # the input\n  + w\n  # done").names == ("x", "w")


def test_a_comment_sign_in_a_string_is_no_comment() -> None:
    assert "einsum" not in str(refusal("gelu(x, approximate='#')(w)"))


def test_names_are_normalised() -> None:
    assert parse("ﬁ * 2", names=["fi"]).names == ("fi",)


def test_a_wrapped_parenthesis_does_not_close_what_was_not_opened() -> None:
    assert refusal("x) + (w").message == "unmatched ')'"


def test_null_characters_and_lone_surrogates_are_refused() -> None:
    assert str(refusal("x + \0")).startswith("<expression>:1:5: the expression holds a null")
    assert "cannot be read" in refusal("x + \ud800").message


def test_any_name_is_allowed_where_names_are_not_given() -> None:
    assert parse("a*b + a + pi").names == ("a", "b")


def test_operation_names_may_be_inputs() -> None:
    assert parse("sum(sum * 2)", names=["sum"]).names == ("sum",)


def test_suggestion_among_the_names() -> None:
    assert "did you mean 'weight'?" in refusal("x * wieght", ("x", "weight")).message


def test_hint_lists_the_names() -> None:
    assert "the names here are m, w, x" in str(refusal("q"))
