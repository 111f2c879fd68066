"""A tie between inputs, or within one, may be answered in parts that are right only singly."""

import numpy as np
import pytest

import kael
from kael.autograd import Function, gradcheck
from kael.checker import check

MODES = ["projection", "full", "fast", "adaptive"]


class BothSides(Function):
    """maximum(a, b) that gives the whole gradient to both where they are equal."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return kael.maximum(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * kael.where(a >= b, 1.0, 0.0), g * kael.where(b >= a, 1.0, 0.0)


class EachTied(Function):
    """max(a) that gives the whole gradient to each entry that has the value."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a.max()

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * kael.where(a == a.max(), 1.0, 0.0)


def leaf(values):
    return kael.tensor(values, dtype=kael.float64, requires_grad=True)


def pair(count, tied):
    a = np.random.default_rng(0).standard_normal(count)
    b = np.where(np.arange(count) < tied, a, a[::-1] + 3.0)
    return [leaf(a), leaf(b)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("count", "tied"), [(1, 1), (3, 2), (30, 30), (60, 20)])
def test_a_tie_between_inputs_counts_once(count, tied, mode):
    wrong = gradcheck(lambda a, b: BothSides.apply(a, b).sum(), pair(count, tied), mode=mode)
    right = gradcheck(lambda a, b: kael.maximum(a, b).sum(), pair(count, tied), mode=mode)
    assert (wrong.status, right.status) == ("failed", "passed")


@pytest.mark.parametrize("mode", MODES)
def test_a_tie_between_inputs_counts_once_in_each_output(mode):
    assert gradcheck(BothSides.apply, pair(3, 2), mode=mode).status == "failed"
    assert gradcheck(kael.maximum, pair(3, 2), mode=mode).status == "passed"


@pytest.mark.parametrize("mode", MODES)
def test_a_tie_within_an_input_counts_once(mode):
    values = [0.5, 5.0, 5.0, 5.0]
    assert gradcheck(EachTied.apply, [leaf(values)], mode=mode).status == "failed"
    assert gradcheck(lambda a: a.max(), [leaf(values)], mode=mode).status == "passed"


def test_the_two_inputs_are_named():
    report = check(BothSides.apply, pair(3, 2), ["a", "b"])
    notes = [finding.message for finding in report.findings]
    assert any("along [1, 1] of a and b the slopes are" in note for note in notes)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: kael.abs(a - b).sum(),
        lambda a, b: kael.minimum(a, b).sum() - kael.maximum(b, a).sum(),
        lambda a, b: (kael.relu(a - b) * b).sum(),
        lambda a, b: kael.hypot(a - b, 0 * a).sum(),
    ],
    ids=["abs", "both", "relu", "hypot"],
)
@pytest.mark.parametrize("mode", MODES)
def test_right_kinks_between_inputs_pass(function, mode):
    assert gradcheck(function, pair(4, 3), mode=mode).status == "passed"


def test_what_rounding_leaves_of_an_angle_is_within_it():
    inputs = [leaf([1.0, 2.0]), leaf([2.0, 4.0])]
    cosine = lambda a, b: (a * b).sum() / (kael.norm(a) * kael.norm(b))
    assert gradcheck(lambda a, b: kael.acos(cosine(a, b)), inputs).status == "passed"
