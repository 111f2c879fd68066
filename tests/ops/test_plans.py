"""What calls of one form share, and what they must not."""

import threading

import numpy as np
import pytest

import kael
from kael import kernels
from kael.ops import declare
from kael.ops.registry import REGISTRY, lookup

PLAIN = {type(None), bool, int, str, tuple}
X = kael.tensor([[1.0, 2.0], [3.0, 4.0]])


def leaf(values, dtype=None):
    return kael.tensor(values, dtype=dtype, requires_grad=True)


def test_calls_of_one_form_share_a_plan():
    op = lookup("tanh")
    one, other = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    assert kael.tanh(one).grad_fn.plan is kael.tanh(other).grad_fn.plan
    assert kael.tanh(one).grad_fn.plan is not kael.tanh(leaf([1.0])).grad_fn.plan
    assert len(op.plans) <= declare._KEPT_PLANS


@pytest.mark.parametrize("dim", [1.0, True, np.float64(1)])
def test_an_equal_argument_of_another_class_is_another_argument(dim):
    assert kael.sum(X, dim=1).tolist() == [3, 7]  # known from here on
    with pytest.raises(kael.KaelTypeError, match="dim must be an integer"):
        kael.sum(X, dim=dim)
    with pytest.raises(kael.KaelTypeError, match="keepdim must be True or False, got 1"):
        kael.sum(X, 1, 1)


def test_numpy_integers_and_negative_dims_count_as_dims():
    for _ in range(2):
        for dim in (1, -1, np.int64(1), (1,), [1]):
            assert kael.sum(X, dim).tolist() == [3, 7]
        assert kael.sum(X, (0, 1)).tolist() == kael.sum(X, [0, 1]).tolist() == 10


def test_an_integer_limit_and_a_floating_one_differ():
    whole = kael.tensor([1, 5])
    for _ in range(2):
        for limit in (2, 2.0):
            assert kael.clamp(whole, max=limit).tolist() == [1, 2]
            assert kael.clamp(kael.tensor([1.0, 5.0]), max=limit).dtype == kael.float64


def test_tuples_of_other_numbers_are_other_arguments():
    whole = kael.tensor([1, 2])
    for _ in range(2):
        assert kael.addcmul(whole, whole, whole, (1, 1)).dtype == kael.int64
        assert kael.addcmul(whole, whole, whole, (1.0, 1.0)).dtype == kael.float64


@pytest.mark.parametrize(
    "slope",
    [
        lambda: ([0.5, 0.5],),
        lambda: (np.array([0.5, 0.5]),),
        lambda: [0.5, 0.5],
        lambda: [kael.tensor([0.5, 0.5])],
    ],
)
def test_arguments_that_no_plan_is_known_by(slope):
    x = kael.tensor([1.0, -2.0])
    for _ in range(3):
        assert kael.leaky_relu(x, slope()).numpy().ravel().tolist() == [1, -1]


def test_a_plan_keeps_no_array_of_a_call():
    items = np.arange(1000)[::-1].copy()
    found = kael.tensor(np.arange(1000.0))[items]
    assert found.tolist()[0] == 999
    plans = [plan for op in REGISTRY.values() for plan in op.plans.values()]
    assert all({type(a) for a in plan.arguments or ()} <= PLAIN for plan in plans)
    assert any(plan.arguments for plan in plans)
    tuples = [a for plan in plans for a in plan.arguments or () if isinstance(a, tuple)]
    assert {type(size) for sizes in tuples for size in sizes} <= {int}


def test_zeros_of_either_sign_are_not_mixed_up():
    x = kael.tensor([-2.0])
    for slope, sign in ((0.0, True), (-0.0, False), (0.0, True)):
        out = kael.leaky_relu(x, slope).numpy()
        assert np.signbit(out).tolist() == [sign]


def test_the_default_dtype_may_change_between_calls():
    whole = kael.tensor([1, 2])
    ways = (kael.exp, kael.sigmoid, lambda x: x / 2, lambda x: x * 0.5, lambda x: x.exp().sum())
    for _ in range(2):
        assert {way(whole).dtype for way in ways} == {kael.float64}
        kael.set_default_dtype("float32")
        try:
            for way in ways:
                out = way(whole)
                assert out.dtype == out.form.dtype == kael.float32
        finally:
            kael.set_default_dtype("float64")


def test_the_flag_decides_at_each_call():
    x = kael.tensor([1.0, 2.0])
    assert kael.tanh(x).grad_fn is None
    x.requires_grad_()
    assert kael.tanh(x).grad_fn is not None
    with kael.no_grad():
        assert kael.tanh(x).grad_fn is None
    assert kael.tanh(x).requires_grad
    x.requires_grad_(False)
    assert not kael.tanh(x).requires_grad


def test_results_whose_shape_values_decide():
    for values in ([1.0, -1.0, 2.0], [1.0, 2.0, 3.0], [-1.0, -1.0, -1.0]):
        x = leaf(values)
        picked = kael.masked_select(x, x > 0)
        assert picked.form.shape == picked.shape == (sum(v > 0 for v in values),)
        picked.sum().backward()
        assert x.grad.tolist() == [float(v > 0) for v in values]


def test_views_and_steps_of_one_form():
    base = leaf(np.arange(24.0).reshape(4, 6))
    for view in (base[:2, :3], base[::2, ::2], base.T[:2, :3], base[1:3, 3:]):
        expected = view.numpy().copy()
        np.testing.assert_allclose(
            (view @ X[:, :1].expand(2, 2)[:1].T.expand(2, 2)[:, :1].sum().expand(3, 1)).numpy()[
                :, 0
            ],
            expected.sum(1) * 2,
        )
        np.testing.assert_array_equal((view + kael.ones(3)).numpy(), expected + 1)
        np.testing.assert_allclose(view.sum(0).numpy(), expected.sum(0))
        np.testing.assert_allclose(
            kael.softmax(view, 1).numpy(),
            np.exp(expected) / np.exp(expected).sum(1, keepdims=True),
        )


@pytest.mark.parametrize("rows", [3, 300])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + kael.ones(x.shape[1]),
        lambda x: kael.ones(x.shape[1]) * x,
        lambda x: x > kael.zeros(x.shape[0], 1),
        lambda x: kael.softmax(x, 1),
        lambda x: kael.log_softmax(x, 1),
    ],
)
def test_results_lie_in_memory_as_their_operands_do(function, rows):
    x = kael.tensor(np.arange(4.0 * rows).reshape(4, rows)).T  # column by column, at any size
    assert not function(x).is_contiguous()
    assert function(kael.tensor(x.numpy().copy("C"))).is_contiguous()


def test_a_forced_tier_makes_new_plans():
    x = leaf([[0.5, -0.5], [1.0, 2.0]])
    before = kael.log_softmax(x, 1)
    with kernels.only("numpy"):
        inside = kael.log_softmax(x, 1)
        assert inside.grad_fn.plan is not before.grad_fn.plan
    after = kael.log_softmax(x, 1)
    assert after.grad_fn.plan is not inside.grad_fn.plan
    for out in (before, inside, after):
        np.testing.assert_allclose(out.numpy(), before.numpy(), rtol=1e-15)


def test_only_so_many_plans_are_kept(monkeypatch):
    monkeypatch.setattr(declare, "_KEPT_PLANS", 4)
    x = leaf([2.0])
    for size in range(1, 20):
        (kael.ones(size) * x).sum().backward()
        assert len(lookup("mul").plans) <= 4
        assert len(lookup("sum").plans) <= 4
    assert x.grad.item() == sum(range(1, 20))


def test_threads_that_meet_new_forms_at_once():
    for op in REGISTRY.values():
        op.plans.clear()
    found, start = [], threading.Barrier(8)

    def work(seed):
        start.wait()
        for size in range(1, 30):
            x = leaf(np.full((size, 3), 0.5))
            (kael.log_softmax(x * kael.ones(3) + x.mean(), 1) * seed).sum().backward()
            found.append((seed, x.grad.shape == (size, 3), abs(x.grad.numpy()).max() < 1e-12))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 * 29
    assert all(shaped and zero for _, shaped, zero in found)


def test_operations_may_be_loaded_while_plans_are_forgotten():
    class Loading:
        plans = property(lambda self: self)

        def clear(self):
            REGISTRY.setdefault("loaded meanwhile", self)

    REGISTRY["loading"] = Loading()
    try:
        with kernels.only("numpy"):
            pass
        assert "loaded meanwhile" in REGISTRY
    finally:
        for name in ("loading", "loaded meanwhile"):
            REGISTRY.pop(name, None)


def test_a_formula_of_the_wrong_shape_is_refused_however_often_it_runs():
    op = declare.Operation(
        "wrong_plan(x)", np.exp, vjp={"x": lambda g: g[:1]}, text={"x": "g"}, batch="elementwise",
        family="math",
    )  # fmt: skip
    try:
        for _ in range(3):
            with pytest.raises(kael.KaelError, match=r"got \[1\] but expected shape \[2\]"):
                op(leaf([1.0, 2.0])).sum().backward()
    finally:
        del REGISTRY["wrong_plan"]


def test_operators_decline_what_no_operation_takes():
    class Left:
        def __radd__(self, other):
            return "mine"

        __rmatmul__ = __rmul__ = __rand__ = __radd__

    assert X + Left() == X * Left() == X @ Left() == (X > 0) & Left() == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        X + {}
