"""Arrays read the same on every run: six digits, no negative zero, big ones summarised."""

import numpy as np
import pytest

from kael_cli.numerals import shown


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array(0.90514825), "0.905148"),
        (np.array([0.271060123, -0.0]), "[0.27106, 0]"),
        (np.array([[1.0, 2.0], [3.0, 4.5]]), "[[1, 2], [3, 4.5]]"),
        (np.array([1e-12, 1e12, np.nan, -np.inf]), "[1e-12, 1e+12, nan, -inf]"),
        (np.array([True, False]), "[True, False]"),
        (np.array([3, -4]), "[3, -4]"),
        (np.zeros((0, 3)), "[]"),
        (np.array([1.5], dtype=np.float32), "[1.5]"),
    ],
)
def test_a_small_array_is_written_out(array, text):
    assert shown(array) == text


def test_a_wide_matrix_has_a_line_a_row():
    text = shown(np.full((3, 10), 1.234567), indent=4)
    assert len(text.splitlines()) == 3
    assert text.splitlines()[1].startswith("     [1.23457, ")


def test_a_big_array_is_summarised_and_says_what_is_not_finite():
    array = np.zeros(200)
    array[:3] = [np.nan, np.inf, -4.0]
    assert shown(array) == "norm=4 min=-4 max=0 mean=-0.020202 nan=1 inf=1"
    assert shown(array, full=True).count(",") == 199


def test_a_huge_norm_does_not_overflow():
    assert shown(np.full(400, 1e200)).startswith("norm=2e+201 ")
