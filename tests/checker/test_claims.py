"""Claimed derivatives, functions outside of kael, batched perturbations."""

import math

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.checker import GradcheckOptions, batch, check, check_outside
from kael.checker.entries import probe_each
from kael.checker.subject import TensorSubject


def claimed(function, inputs, claims, names=("x", "w"), upstream=None, **options):
    found = check(
        function, inputs, names[: len(inputs)], GradcheckOptions(**options), claims, upstream
    )
    return {c.input: c for c in found.checks if c.kind == "derivative"}


def gate(x, w):
    return kael.tanh(x * w + x)


X, W = np.array([1.0, 2.0]), np.array([0.5, -1.0])
SLOPE = 1 - np.tanh(X * W + X) ** 2


@pytest.mark.parametrize("mode", ["projection", "full", "adaptive", "complex", "fast"])
def test_a_right_claim_passes(mode):
    claims = {"x": SLOPE * (W + 1), "w": SLOPE * X}
    found = claimed(lambda x, w: gate(x, w).sum(), [leaf(X), leaf(W)], claims, mode=mode)
    assert {name: c.status for name, c in found.items()} == {"x": "passed", "w": "passed"}


def test_a_claim_without_its_sign_fails_and_the_other_passes():
    claims = {"x": SLOPE * (W + 1), "w": -SLOPE * X}
    found = claimed(lambda x, w: gate(x, w).sum(), [leaf(X), leaf(W)], claims)
    assert {name: c.status for name, c in found.items()} == {"x": "passed", "w": "failed"}
    assert found["w"].wrong == 2


def test_a_rounded_constant_is_caught():
    found = claimed(lambda x: (math.pi * x).sum(), [leaf(X)], {"x": 3.14})
    assert found["x"].status == "failed"
    close = claimed(lambda x: (math.pi * x).sum(), [leaf(X)], {"x": 3.1416})
    assert close["x"].status == "failed"


def test_complex_mode_catches_a_claim_off_by_very_little():
    claims = {"x": SLOPE * (W + 1) * (1 + 1e-10), "w": SLOPE * X}
    found = claimed(lambda x, w: gate(x, w).sum(), [leaf(X), leaf(W)], claims, mode="complex")
    assert (found["x"].status, found["w"].status) == ("failed", "passed")


def test_claims_of_a_non_scalar_output_are_under_the_upstream_gradient():
    upstream = np.array([2.0, -3.0])
    claims = {"x": upstream * SLOPE * (W + 1)}
    assert claimed(gate, [leaf(X), leaf(W)], claims, upstream=upstream)["x"].status == "passed"
    ones = {"x": SLOPE * (W + 1)}
    assert claimed(gate, [leaf(X), leaf(W)], ones)["x"].status == "passed"
    assert claimed(gate, [leaf(X), leaf(W)], ones, upstream=upstream)["x"].status == "failed"


def test_any_value_between_the_slopes_is_a_right_claim_at_a_kink():
    function = lambda x: kael.relu(x).sum()
    for value, status in ((0.0, "passed"), (0.5, "passed"), (1.5, "failed")):
        assert claimed(function, [leaf([0.0])], {"x": value})["x"].status == status


def test_a_claim_broadcasts_or_is_an_error():
    assert claimed(lambda x: (2 * x).sum(), [leaf(X)], {"x": 2.0})["x"].status == "passed"
    with pytest.raises(kael.KaelValueError, match="does not broadcast"):
        claimed(lambda x: x.sum(), [leaf(X)], {"x": np.ones(3)})


def test_a_large_claim_is_checked_along_directions():
    x = np.random.default_rng(0).standard_normal(5_000)
    claim = 1 - np.tanh(x) ** 2
    function = lambda x: kael.tanh(x).sum()
    assert claimed(function, [leaf(x)], {"x": claim})["x"].status == "passed"
    claim[4_321] *= 1.001
    found = claimed(function, [leaf(x)], {"x": claim})["x"]
    assert [f.index for f in found.failures] == [(4_321,)]


def test_outside_code_with_a_gradient():
    function = lambda x, w: np.sum(np.tanh(x * w))

    def gradient(x, w):
        slope = 1 - np.tanh(x * w) ** 2
        return slope * w, slope * x

    assert check_outside(function, [X, W], grad=gradient).status == "passed"
    swapped = check_outside(function, [X, W], ["x", "w"], grad=lambda x, w: gradient(x, w)[::-1])
    assert swapped.status == "failed"
    assert {c.input for c in swapped.checks if c.kind == "numeric" and c.wrong} == {"x", "w"}


def test_outside_code_of_any_shape_with_a_vjp():
    right = check_outside(np.sin, [X], vjp=lambda g, x: g * np.cos(x))
    assert right.status == "passed"
    squared = check_outside(np.sin, [X], vjp=lambda g, x: g * g * np.cos(x))
    assert "linear" in {c.kind for c in squared.checks if c.status == "failed"}


def test_outside_code_with_one_gradient_for_one_of_two_inputs():
    found = check_outside(
        lambda x, n: (x**n).sum(),
        [X, np.array([2, 3])],
        ["x", "n"],
        grad=lambda x, n: n * x ** (n - 1),
    )
    assert found.status == "passed"


def test_outside_code_that_raises_outside_of_its_domain():
    found = check_outside(lambda x: math.log(x), [np.array(1e-7)], grad=lambda x: 1 / x)
    assert found.status == "passed"


def test_grad_is_for_scalars_and_shapes_must_fit():
    with pytest.raises(kael.KaelValueError, match="give vjp="):
        check_outside(np.sin, [X], grad=lambda x: np.cos(x))
    wrong = check_outside(lambda x: x.sum(), [X], ["x"], grad=lambda x: np.ones(3))
    assert wrong.status == "failed"
    assert "has shape [3] but expected shape [2]" in wrong.findings[0].message


def test_float32_follows_float32():
    x = kael.tensor(X, dtype=kael.float32, requires_grad=True)
    assert check(lambda x: kael.exp(x).sum(), [x]).status == "passed"
    wrong = made(kael.exp, lambda x, g: g * kael.exp(x) * 1.01)
    assert check(lambda x: wrong(x).sum(), [x]).status == "failed"


half_of_a_square = made(lambda x: x * x, lambda x, g: g * x)


@pytest.mark.parametrize("count", [3, 100])
@pytest.mark.parametrize(("factor", "status"), [(2.0, "passed"), (1.0, "failed"), (2.01, "failed")])
def test_a_right_claim_holds_where_the_backward_is_wrong(count, factor, status):
    x = np.linspace(0.3, 2.0, count)
    report = check(lambda x: half_of_a_square(x).sum(), [leaf(x)], ["x"], None, {"x": factor * x})
    assert {c.kind: c.status for c in report.checks if c.kind in ("numeric", "derivative")} == {
        "numeric": "failed",
        "derivative": status,
    }


@pytest.mark.parametrize(("claim", "status"), [(3e-8, "failed"), (2e-8, "passed")])
def test_a_small_claim_is_compared_on_its_own_scale(claim, status):
    function = lambda x: 1 + 1e-8 * x * x
    assert claimed(function, [leaf(1.0)], {"x": claim})["x"].status == status
    assert claimed(function, [leaf(1.0)], {"x": claim}, atol=1e-7)["x"].status == "passed"


def test_a_small_claim_beside_a_large_one_is_compared_too():
    x = np.array([1e-8, 1e8])
    function = lambda x: (x**2).sum()
    assert claimed(function, [leaf(x)], {"x": 2 * x})["x"].status == "passed"
    assert claimed(function, [leaf(x)], {"x": np.array([3.0, 2.0]) * x})["x"].status == "failed"


def test_what_cancellation_leaves_of_a_claim_is_no_difference():
    x = np.array([20.0, 12.0])
    found = claimed(lambda x: kael.tanh(x).sum(), [leaf(x)], {"x": 1 - np.tanh(x) ** 2})
    assert found["x"].status == "passed"


BATCHED = {
    "elementwise with lower ranks": (lambda x, w: kael.tanh(x * w + x), [(3, 4), (4,)]),
    "reductions": (lambda x, w: (x.sum(dim=1) * w).mean(), [(3, 4), (3,)]),
    "softmax": (lambda x, w: kael.softmax(x, 1) @ w, [(3, 4), (4, 2)]),
    "matrix and vector": (lambda x, w: x @ w, [(3, 4), (4,)]),
    "views": (lambda x, w: x.T.reshape(6, 2) * w, [(3, 4), (2,)]),
    "slices": (lambda x, w: x[:, 1:3] * w[0], [(3, 4), (2,)]),
    "a list": (lambda x, w: kael.cat([x, w], dim=0), [(3, 4), (1, 4)]),
    "a branch": (lambda x, w: kael.where(x > 0, x * w, kael.exp(x)), [(3, 4), (4,)]),
    "a 0-d operand": (lambda x, w: x * w, [(3, 4), ()]),
}


@pytest.mark.parametrize("name", BATCHED)
def test_rows_give_what_single_evaluations_give(name):
    function, shapes = BATCHED[name]
    rng = np.random.default_rng(0)
    inputs = [leaf(rng.standard_normal(shape)) for shape in shapes]
    subject = TensorSubject(function, inputs, ["x", "w"], [0, 1])
    subject.record()
    replay, _ = batch.record_calls(subject)
    single = probe_each(subject)
    rows = batch.probe_rows(subject, replay, single) if replay.batchable else None
    if rows is None:
        # Evaluated one by one: not wrong, only slower.
        assert name in ("matrix and vector", "a list", "a branch")
        return
    for which, shape in enumerate(shapes):
        entries = np.arange(int(np.prod(shape)))
        steps = np.full(len(entries), 1e-3)
        for together, apart in zip(
            rows(which, entries, steps), single(which, entries, steps), strict=True
        ):
            np.testing.assert_allclose(together, apart, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", ["projection", "full", "adaptive"])
@pytest.mark.parametrize("scale", [1.0, 1.01])
def test_the_verdict_is_the_same_with_rows(mode, scale):
    claims = {"w": scale * (np.ones(20) * 2)}
    reports = []
    for replayable in (True, False):
        options = GradcheckOptions(mode=mode, replayable=replayable)
        inputs = [leaf(np.linspace(1, 3, 20)), leaf(np.linspace(0.1, 0.3, 20))]
        reports.append(
            check(lambda x, w: (kael.sin(x) + 2 * w).sum(), inputs, ["x", "w"], options, claims)
        )
    first, second = ([(c.kind, c.input, c.status, c.wrong) for c in r.checks] for r in reports)
    assert first == second
    assert reports[0].status == ("passed" if scale == 1 else "failed")


def test_a_replay_that_is_not_the_function_is_not_used():
    function = lambda x: kael.tensor(x.tolist()) * x
    x = leaf(np.linspace(1, 2, 20))
    found = check(function, [x], ["x"], GradcheckOptions(replayable=True))
    assert found.status == "failed"
