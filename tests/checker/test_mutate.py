"""The single changes of a formula's text."""

import pytest

from kael.checker.mutate import edits


def changed(text, kind, names=()):
    return [edit.apply(text) for edit in edits(text, names) if edit.kind == kind]


@pytest.mark.parametrize(
    ("text", "kind", "texts"),
    [
        ("a + b", "sign", ["-a + b", "a - b"]),
        ("a + b", "term", ["a", "b"]),
        ("a - b", "term", ["a", "(-b)"]),
        ("a * (b + c)", "factor", ["(b + c)", "a"]),
        ("a / b", "factor", ["(1/b)", "a"]),
        ("1 / b", "factor", ["1"]),
        ("-x * y", "sign", ["x * y", "-(-x * y)"]),
        ("x**3", "power", ["x", "x**2", "x**4"]),
        ("2*x", "constant", ["3*x", "1*x", "4*x", "0.5*x"]),
        ("sin(x)", "function", ["cos(x)"]),
        ("x > y", "sign", ["-(x > y)"]),
    ],
)
def test_each_kind_of_change(text, kind, texts):
    assert sorted(changed(text, kind)) == sorted(texts)


def test_names_stand_for_one_another_but_not_in_conditions():
    assert changed("where(x > 0, x, y)", "name", ["x", "y"]) == [
        "where(x > 0, y, y)",
        "where(x > 0, x, x)",
    ]


def test_offsets_are_characters_also_over_lines_and_beyond_ascii():
    assert changed("µ +\n b", "sign") == ["-µ +\n b", "µ -\n b"]


@pytest.mark.parametrize("text", ["", "a +", "x" * 3000, "(" * 500])
def test_what_cannot_be_read_has_no_changes(text):
    assert list(edits(text)) == []
