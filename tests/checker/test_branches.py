"""Which sides of branches are counted, and which operations have none."""

import numpy as np
import pytest
from tests_checker_functions import leaf

import kael
from kael.checker.branches import Branch, Visits, sides_of
from kael.engine.grad_mode import observing


def sides(function, *values):
    visits = Visits(lambda: "here")
    with observing(visits):
        for value in values:
            function(leaf(value))
    return {branch.operation: branch.sides for branch in visits.branches}


@pytest.mark.parametrize(
    ("function", "values", "found"),
    [
        (kael.relu, [1, 2, -3], {"relu": {"below": 1, "above": 2}}),
        (kael.abs, [0.0, 2], {"abs": {"below": 0, "above": 1}}),
        (
            lambda x: kael.clamp(x, 0, 1),
            [-1, 0.5, 2, 3],
            {"clamp": {"below": 1, "between": 1, "above": 2}},
        ),
        (lambda x: kael.clamp(x, min=0), [-1, 2], {"clamp": {"below": 1, "above": 1}}),
        (lambda x: kael.where(x > 0, x, 2 * x), [1, 2, -1], {"where": {"false": 1, "true": 2}}),
        (
            lambda x: kael.maximum(x, 1.0),
            [3, 2],
            {"maximum": {"operand below the other": 0, "operand above the other": 2}},
        ),
        (lambda x: kael.tanh(x) * x.max(), [1, 2], {}),
        (lambda x: kael.hypot(x, x), [1, 2], {}),
        (lambda x: kael.floor(x), [1.5], {}),
    ],
)
def test_sides_are_counted(function, values, found):
    assert sides(function, values) == found


def test_visits_of_several_evaluations_add_up():
    assert sides(kael.relu, [1.0], [-1.0, -2.0]) == {"relu": {"below": 2, "above": 1}}


def test_two_branches_of_one_operation_are_told_apart_by_their_place():
    texts = iter(["relu(x)", "relu(-x)"])
    visits = Visits(lambda: next(texts))
    with observing(visits):
        kael.relu(leaf([1.0]))
        kael.relu(leaf([-1.0]))
    assert [(b.text, b.unvisited) for b in visits.branches] == [
        ("relu(x)", ["below"]),
        ("relu(-x)", ["above"]),
    ]


def test_the_sentence_says_what_was_never_visited():
    branch = Branch("relu", "relu(x)", "a.yaml:3:9", {"below": 0, "above": 2})
    assert branch.sentence == "`relu(x)` (a.yaml:3:9): below never, above 2x"


def test_operations_without_sides_give_none():
    assert sides_of(kael.ops.REGISTRY["tanh"], [np.ones(2)], ()) is None
    assert sides_of(kael.ops.REGISTRY["max"], [np.ones(2)], (None, False)) is None
