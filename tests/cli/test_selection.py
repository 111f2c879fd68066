"""`-k` selects as pytest does."""

import pytest

from kael_cli.exits import CommandError
from kael_cli.selection import matcher, tagged

NAMES = ("focal loss", "Large")


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("loss", True),
        ("LOSS", True),
        ("large", True),
        ("gate", False),
        ("not gate", True),
        ("not loss", False),
        ("not not loss", True),
        ("loss and large", True),
        ("loss and not large", False),
        ("gate or large", True),
        ("gate or large and nothing", False),
        ("(gate or large) and loss", True),
        ("not (gate or large)", False),
        ("gate or (loss and (large or x))", True),
        ("", True),
    ],
)
def test_an_expression_selects(text, selected):
    assert matcher(text)(NAMES) is selected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("and", "-k:1:1: expected a name"),
        ("loss and", "-k:1:9: expected a name"),
        ("loss large", "-k:1:6: expected 'and', 'or' or the end"),
        ("(loss", "-k:1:6: expected ')'"),
        ("loss)", "-k:1:5: expected 'and', 'or' or the end"),
        ("(" * 5000, "more than 100 levels"),
        ("not " * 5000 + "x", "more than 100 levels"),
    ],
)
def test_a_malformed_expression_is_refused_where_it_goes_wrong(text, problem):
    with pytest.raises(CommandError) as caught:
        matcher(text)
    assert problem in str(caught.value)


def test_one_of_the_wanted_tags_is_enough():
    wanted = tagged(["loss", "slow"])
    assert wanted(["loss", "fast"])
    assert not wanted(["losses"])
    assert not wanted([])
