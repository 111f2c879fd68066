"""Where the characters of a scalar's value are in the file."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kael.specs.place import SpecError
from kael.specs.yaml_text import Source, align


def mapped(text: str) -> tuple[str, str, list[int]]:
    source = Source(text, "f.yaml")
    (root,) = source.documents()
    node = root.value[0][1]
    return text, node.value, align(text, node)


@pytest.mark.parametrize(
    "text",
    [
        "a: plain text # comment\n",
        "a: plain\n   over lines\n",
        "a: 'it''s quoted'\n",
        'a: "tab\\tnew\\nhex\\x41uni\\u00e9 end"\n',
        'a: "folded\n   over\n\n   lines"\n',
        'a: "escaped \\\n    break"\n',
        "a: |\n  literal\n    block\n\n  end\n",
        "a: |2\n    indented\n  less\n",
        "a: >-\n  folded\n  block\n\n  end\n",
        "a: | # comment\n  x\n",
        "a: |\r\n  x\r\n  y\r\n",
        "a: é ü\n",
    ],
)
def test_visible_characters_are_found(text: str) -> None:
    text, value, places = mapped(text)
    assert len(places) == len(value) + 1
    for char, at in zip(value, places, strict=False):
        # An escape stands where its backslash is.
        if not char.isspace() and text[at] != "\\":
            assert text[at] == char
    visible = [at for char, at in zip(value, places, strict=False) if not char.isspace()]
    assert visible == sorted(set(visible))


words = st.lists(st.text("abc+*'", min_size=1, max_size=4), min_size=1, max_size=6)


@settings(deadline=None)
@given(words, st.sampled_from(["|", ">", "|-", ">+"]), st.integers(1, 6))
def test_blocks(parts: list[str], style: str, indent: int) -> None:
    text = f"a: {style}\n" + "".join(" " * indent + part + "\n" for part in parts)
    text, value, places = mapped(text)
    assert [
        text[at] for char, at in zip(value, places, strict=False) if not char.isspace()
    ] == list("".join(parts))


@settings(deadline=None)
@given(words)
def test_single_quotes(parts: list[str]) -> None:
    text, value, places = mapped("a: '" + " ".join(parts).replace("'", "''") + "'\n")
    assert value == " ".join(parts)
    assert [text[at] for at in places[:-1]] == list(value)


@settings(deadline=None, max_examples=200)
@given(st.text("a:b- []{}&*!|>'\"#%@`,?\n\t 1.é\x85\u2028", max_size=40))
def test_no_text_gives_anything_but_nodes_or_an_error(text: str) -> None:
    found = []
    with contextlib.suppress(SpecError):
        found = Source(text, "f.yaml").documents()
    assert all(node.start_mark.line >= 0 for node in found)
