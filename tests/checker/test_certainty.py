"""What is right is never called wrong, however it is composed; what is wrong is seen or said."""

import numpy as np
import pytest
from composed import composed, planted
from tests_checker_functions import leaf, made

import kael
from kael.checker import GradcheckOptions, check

SEEDS = range(300)


def looked_at(one, **options):
    given = GradcheckOptions(**options)
    names = ["x", "y"][: len(one.values)]
    return check(one.function, one.leaves(), names, given, diagnosed=False)


def gradients(one):
    """The gradients of the sum; None where the value or a gradient is not finite."""
    leaves = one.leaves()
    output = one.function(*leaves)
    if not output.requires_grad or not np.isfinite(output.numpy()).all():
        return None
    output.sum().backward()
    found = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]
    return found if all(np.isfinite(g).all() for g in found) else None


POINTS = [(seed, one) for seed in SEEDS if gradients(one := composed(seed)) is not None]


def test_most_functions_have_a_gradient():
    assert len(POINTS) > 0.9 * len(SEEDS)


def test_right_gradients_are_never_called_wrong():
    found = {seed: looked_at(one).status for seed, one in POINTS}
    assert [seed for seed, status in found.items() if status == "failed"] == []
    undecided = [seed for seed, status in found.items() if status == "inconclusive"]
    assert len(undecided) < 0.05 * len(POINTS)


@pytest.mark.parametrize("mode", ["full", "adaptive"])
def test_nor_in_the_modes_that_look_at_every_entry(mode):
    some = POINTS[::4]
    assert [seed for seed, one in some if looked_at(one, mode=mode).status == "failed"] == []


def test_one_wrong_entry_is_caught_or_said_not_to_be_verified():
    caught, silent, total = 0, [], 0
    for seed, one in POINTS:
        rng = np.random.default_rng([seed, 6])
        which = int(rng.integers(len(one.values)))
        entry = int(rng.integers(one.values[which].size))
        if gradients(one)[which][entry] == 0:
            continue
        total += 1
        wrong = planted(one, which, entry, float(rng.choice([1.1, 2, -1, 0, 1.01])))
        report = looked_at(wrong)
        caught += report.status == "failed"
        if report.status == "passed" and not report.notes:
            silent.append(seed)
    assert silent == []
    assert caught > 0.9 * total


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: -47 * x - 63 * kael.cos(3.479e9 * x), 297.268),
        (lambda x: kael.exp(kael.sin(x**3)), -1530685.5),
        (lambda x: kael.cos(46 * x * x), 2363.196),
        (lambda x: -3.2 * kael.log(kael.abs(4.9e-8 * x) + 0.1), -4e-7),
        (lambda x: kael.stack([1e8 * x, 1e-8 * kael.sin(x)]), 0.7),
    ],
    ids=["fast under slow", "rounded argument", "fast", "kink within the step", "scales"],
)
def test_hard_ones_are_not_called_wrong(function, x):
    assert check(function, [leaf(x)], ["x"]).status in ("passed", "inconclusive")


def test_rounding_of_outputs_that_do_not_move_counts_before_a_reduction():
    x = leaf([1.42, 0.07, -0.47])
    assert check(lambda x: kael.softmax(50 * x, 0).sum(), [x]).status == "passed"


def test_a_gradient_that_cancels_in_backward_is_not_called_wrong():
    def function(x):
        slope = kael.softplus(x)
        return (23 * kael.expm1(x) * (slope - slope.max())).sum()

    assert check(function, [leaf([634.7, -868.9, -751.9])]).status != "failed"


def test_a_fault_at_one_point_alone_stands():
    wrong = made(lambda x: x * x, lambda x, g: g * kael.where(x == 3.0, 5.0, 2 * x))
    assert check(lambda x: wrong(x).sum(), [leaf([3.0, 1.0])]).status == "failed"


@pytest.mark.parametrize("mode", ["projection", "full", "adaptive", "complex", "fast"])
@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: ((x - 1) ** 2).sum(), [1.0, 1.0]),
        (lambda x: (x**-12 - 2 * x**-6).sum(), [1.0, 1.0]),
        (lambda x: kael.softmax(x, 0), [0.0, 100.0, -40.0]),
        (lambda x: kael.tanh(x).sum(), [50.0, -72.0]),
        (lambda x: kael.softmax(x, 0).sum(), [1.0, 2.0, 3.0]),
        (lambda x: kael.log(1 + kael.exp(x)).sum(), [-36.0, 30.0]),
    ],
    ids=["minimum", "two terms cancel", "softmax", "tanh", "a sum of 1", "softplus"],
)
def test_minima_and_saturation_pass_in_every_mode(function, x, mode):
    assert check(function, [leaf(x)], ["x"], GradcheckOptions(mode=mode)).status == "passed"


def test_curvature_that_jumps_passes_in_the_fine_mode():
    huber = lambda x: kael.where(kael.abs(x) <= 1, x * x / 2, kael.abs(x) - 0.5).sum()
    options = GradcheckOptions(mode="adaptive")
    assert check(huber, [leaf([1.0, -1.0])], options=options).status == "passed"


# What it costs.


def test_the_cost_is_told_before_it_is_spent():
    told, calls = [], []

    def function(x):
        calls.append(1)
        return kael.tanh(x)

    options = GradcheckOptions(mode="adaptive")
    tell = lambda count, seconds: told.append((count, seconds, len(calls)))
    report = check(function, [leaf(np.linspace(0, 1, 50))], options=options, forecast=tell)
    ((count, seconds, before),) = told
    assert report.evaluations / 3 < count < 3 * report.evaluations
    assert seconds > 0
    assert before < 6


@pytest.mark.parametrize("mode", ["projection", "full", "adaptive", "complex", "fast"])
@pytest.mark.parametrize("bound", [20, 100])
def test_a_bound_on_the_evaluations_holds_but_for_one_close_look(mode, bound):
    options = GradcheckOptions(mode=mode, max_evaluations=bound)
    right = check(lambda x: kael.tanh(x), [leaf(np.linspace(0.1, 1, 40))], options=options)
    assert right.status == "passed"
    assert right.evaluations <= bound + 10
    scaled = made(lambda x: kael.tanh(x), lambda x, g: g * 1.3 * (1 - kael.tanh(x) ** 2))
    wrong = check(scaled, [leaf(np.linspace(0.1, 1, 40))], options=options, diagnosed=False)
    assert wrong.status == "failed"
    assert wrong.evaluations <= bound + 150
