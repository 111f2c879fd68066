"""Golden values and claims are held to a tolerance entry by entry, worst first."""

import numpy as np
import pytest

from kael.specs.comparison import compare

inf, nan = np.inf, np.nan


def check(got, wanted, atol=1e-6, rtol=1e-5):
    return compare("expect", "x", np.array(got), np.array(wanted), atol=atol, rtol=rtol)


@pytest.mark.parametrize(
    ("got", "wanted", "wrong"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0),
        ([1.0 + 1e-5], [1.0], 0),
        ([1.0 + 2e-5], [1.0], 1),
        ([1e-6], [0.0], 0),
        ([2e-6], [0.0], 1),
        ([inf, -inf, nan], [inf, -inf, nan], 0),
        ([inf], [-inf], 1),
        ([inf], [1.0], 1),
        ([1.0], [nan], 1),
        ([nan], [1.0], 1),
        ([1.0], [inf], 1),
    ],
)
def test_which_entries_agree(got, wanted, wrong):
    result = check(got, wanted)
    assert (result.wrong, result.compared) == (wrong, len(got))
    assert result.status == ("failed" if wrong else "passed")


def test_failures_come_worst_first_with_their_index():
    result = check([[0.0, 1.0], [5.0, nan]], [[0.0, 0.0], [0.0, 0.0]])
    assert [failure.index for failure in result.failures] == [(1, 1), (1, 0), (0, 1)]
    assert (result.failures[1].analytic, result.failures[1].numeric) == (5.0, 0.0)


def test_a_hundred_are_listed_and_all_counted():
    result = check(np.ones(300), np.zeros(300))
    assert (len(result.failures), result.wrong) == (100, 300)


def test_a_scalar_has_the_empty_index():
    assert check(2.0, 1.0).failures[0].index == ()


def test_nothing_compared_passes_nothing():
    assert check([], []).compared == 0
