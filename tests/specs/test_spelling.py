"""Suggestions for misspelt names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kael.specs.spelling import did_you_mean, distance, suggest

words = st.text("abcde_", max_size=8)


@pytest.mark.parametrize(
    ("word", "candidates", "expected"),
    [
        ("tahn", ["tan", "tanh", "atan", "than"], "tanh"),
        ("tahn", ["tan", "tanh"], "tanh"),  # both are one edit away: equal length wins
        ("logsumxp", ["logsumexp", "log"], "logsumexp"),
        ("ouptut", ["output", "inputs"], "output"),
        ("TANH", ["tanh"], "tanh"),
        ("q", ["x", "y"], None),
        ("zebra", ["tanh", "sum"], None),
        ("", ["x"], None),
        ("ab", ["ba"], "ba"),
    ],
)
def test_suggestion(word: str, candidates: list[str], expected: str | None) -> None:
    assert suggest(word, candidates) == expected


def test_ties_of_equal_length_do_not_depend_on_order() -> None:
    assert suggest("aab", ["aac", "aad"]) == suggest("aab", ["aad", "aac"]) == "aac"


def test_sentence() -> None:
    assert did_you_mean("tahn", ["tanh"]) == "; did you mean 'tanh'?"
    assert did_you_mean("zebra", ["tanh"]) == ""


@given(words, words)
def test_distance_is_symmetric_and_zero_only_for_equal_words(first: str, second: str) -> None:
    assert distance(first, second) == distance(second, first)
    assert (distance(first, second) == 0) == (first == second)


@given(words, st.integers(0, 6))
def test_a_transposition_is_one_edit(word: str, at: int) -> None:
    if at + 1 < len(word) and word[at] != word[at + 1]:
        swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        assert distance(word, swapped) == 1
