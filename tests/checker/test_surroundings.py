"""What a check must leave alone, and what around a function must not mislead it."""

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael import KaelError
from kael.autograd import gradcheck
from kael.checker.checks import check, check_outside
from kael.checker.model import GradcheckOptions


@pytest.mark.parametrize("mode", ["projection", "full", "fast", "adaptive"])
@pytest.mark.parametrize("count", [2, 60])
def test_gradients_of_captured_parameters_are_left_alone(count, mode):
    w, x = leaf(np.linspace(1, 2, count)), leaf(np.linspace(-1, 1, count))
    (w * w).sum().backward()
    before = w.grad.tolist()
    assert gradcheck(lambda x: (x.sin() * w).sum(), [x], mode=mode).status == "passed"
    assert gradcheck(lambda x: 2 * x.detach().sum() + (x * w).sum(), [x]).status == "failed"
    assert w.grad.tolist() == before
    assert x.grad is None


def test_inputs_left_out_of_a_check_are_left_alone():
    x, w = leaf([1.0, 1.0]), leaf(1.0)
    options = GradcheckOptions(inputs=("x",))
    report = check(lambda x, w: (x * x).sum() + 5 * w, [x, w], ["x", "w"], options)
    assert report.status == "passed"
    assert w.grad is None


def test_inputs_whose_elements_share_memory_are_refused():
    base = kael.tensor([[1.0, 2.0], [3.0, 4.0]])
    x = base.detach().requires_grad_(True)
    y = base.T.detach().requires_grad_(True)
    with pytest.raises(KaelError, match="inputs 0 and 1 share memory"):
        gradcheck(lambda a, b: (a @ b).sum(), [x, y])
    assert gradcheck(lambda a, b: (a @ b).sum(), [x, x]).status == "passed"
    wide = kael.tensor([1.0]).expand(3).detach().requires_grad_(True)
    slid = kael.tensor([1.0, 2.0, 3.0]).unfold(0, 2, 1).detach().requires_grad_(True)
    for view in (wide, slid):
        with pytest.raises(KaelError, match=r"input 0 is an expanded.* share memory: clone\(\) it"):
            gradcheck(lambda a: a.sum(), [view])


@pytest.mark.parametrize("other", [(4,), (1, 2), ()])
def test_an_output_whose_shape_depends_on_values_is_an_error(other):
    def function(x):
        same = x[0].item() == 1
        return x * x if same else kael.cat([x * x, x * x]).sum() + kael.zeros(*other)

    with pytest.raises(KaelError, match=r"the output's shape is \[2\] at the given point"):
        gradcheck(function, [leaf([1.0, 2.0])])


def test_an_output_that_is_kept_and_handed_out_again():
    kept = {}

    wrong = made(lambda x: x * x, lambda x, g: g * x)

    def memoised(apply):
        def function(x):
            key = (tuple(x.tolist()), kael.is_grad_enabled(), apply)
            if key not in kept:
                kept[key] = apply(x).sum()
            return kept[key]

        return function

    x = leaf([1.5, -0.7])
    assert gradcheck(memoised(wrong), [x]).status == "failed"
    assert gradcheck(memoised(lambda x: x * x), [x]).status == "passed"


def test_a_complex_claim_is_refused():
    report = check_outside(
        lambda x: (x * x).sum(), [np.array([1.0])], ["x"], grad=lambda x: 2 * x + 1j
    )
    assert report.status == "failed"
    assert report.findings[0].message == "the claimed gradient of x must be real, got complex"


@pytest.mark.parametrize("count", [15, 16, 60])
def test_a_mask_made_of_an_input_is_made_anew(count):
    values = np.linspace(1, 2, count)
    values[0] = 0.7
    found = gradcheck(lambda x: x[x >= 0.7].sum(), [leaf(values)], replayable=True, mode="full")
    assert found.status == "inconclusive"
    assert any("jumps" in note for note in found.notes)
