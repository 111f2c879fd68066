"""Places, and how an error points at its line."""

import pytest

from kael.errors import KaelError
from kael.specs.place import Place, SpecError, point_at


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("a.yaml", 7, 12), "a.yaml:7:12"),
        (Place("a.yaml", 7), "a.yaml:7"),
        (Place("a.yaml"), "a.yaml"),
        (Place(None, 1, 5, "<expression>"), "<expression>:1:5"),
        (Place(None, 1, 3, "-i x"), "-i x:1:3"),
        (Place(), ""),
    ],
)
def test_text_of_a_place(place: Place, text: str) -> None:
    assert str(place) == text


def test_places_compare_without_their_source() -> None:
    assert Place("a", 1, 2, source="x") == Place("a", 1, 2, source="y")
    assert hash(Place("a", 1, 2)) == hash(Place("a", 1, 2, source="y"))
    assert Place("a", 1, 2) != Place("a", 1, 3)


def test_error_shows_line_caret_detail_and_hint_in_this_order() -> None:
    place = Place("a.yaml", 2, 4, source="one\nx + z\n")
    error = SpecError("unknown name 'z'", place, detail="more", hint="do this")
    assert str(error) == "a.yaml:2:4: unknown name 'z'\n  x + z\n     ^\n  more\n  do this"
    assert isinstance(error, KaelError)
    assert error.message == "unknown name 'z'"


def test_error_without_a_place_is_its_message() -> None:
    assert str(SpecError("bad")) == "bad"


def test_line_without_a_column_has_no_caret() -> None:
    assert str(SpecError("bad", Place("a", 1, None, source="text"))) == "a:1: bad\n  text"


def test_columns_are_characters() -> None:
    assert point_at("é + z", 5) == ["é + z", "    ^"]


def test_tabs_keep_the_caret_aligned() -> None:
    assert point_at("\tx z", 4) == ["\tx z", "\t  ^"]


def test_long_line_is_cut_around_the_caret() -> None:
    line, caret = point_at("a" * 500 + "Z" + "b" * 500, 501)
    assert line.startswith("…")
    assert line.endswith("…")
    assert line[caret.index("^")] == "Z"
    assert len(line) < 120


def test_escape_codes_of_a_hostile_file_are_not_shown() -> None:
    assert "\x1b" not in "".join(point_at("\x1b[31mred", 1))


def test_a_caret_may_stand_behind_the_end() -> None:
    assert point_at("x +", 4) == ["x +", "   ^"]


def test_an_error_writes_no_escape_codes() -> None:
    error = SpecError(
        "unknown key '\x1b[31m'", Place("f.yaml", 1, 1), hint="a\x07\nb", detail="c\x9bd"
    )
    assert str(error) == "f.yaml:1:1: unknown key '�[31m'\n  c�d\n  a�\n  b"
    assert error.message == "unknown key '\x1b[31m'"
