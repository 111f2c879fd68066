"""`kael ops` is made from the declarations, so every operation is in it."""

import json

import pytest

from kael.ops import lookup
from kael.ops.declare import COMPOSITES, REGISTRY


def test_one_operation_in_full(kael):
    assert kael("ops", "tanh") == (
        0,
        "tanh(x)  TanhBackward\n"
        "  Return the hyperbolic tangent.\n"
        "  gradient of x: g * (1 - out**2)   (saves out)\n",
        "",
    )


def test_a_kink_and_its_convention_are_told(kael):
    assert "  at a kink: half to each side of a tie\n" in kael("ops", "maximum").out


def test_an_alias_finds_its_operation(kael):
    assert kael("ops", "absolute").out == kael("ops", "abs").out


def test_every_operation_is_listed_in_every_format(kael):
    rows = json.loads(kael("ops", "--format", "json").out)["results"]
    # the listing has imported every family, so the registry is whole now
    assert {row["name"] for row in rows} == {*REGISTRY, *COMPOSITES}
    text = kael("ops").out.splitlines()
    markdown = kael("ops", "--format", "markdown").out
    for row in rows:
        heading = row["signature"] + (f"  {row['node']}" if row["node"] else "")
        assert heading in text
        assert row["signature"] in markdown


@pytest.mark.parametrize("name", ["add", "log", "sum", "where", "cross_entropy_losses"])
def test_what_is_said_is_what_is_declared(kael, name):
    (row,) = json.loads(kael("ops", name, "--format", "json").out)["results"]
    op = lookup(name)
    assert row["node"] == op.node_name
    assert row["derivatives"] == dict(zip(op.inputs, op.vjp_text, strict=True))
    assert list(row["saves"].values()) == [list(saved) for saved in op.saves]


def test_an_operation_without_a_gradient_says_so(kael):
    assert "gradient: none" in kael("ops", "argmax").out
