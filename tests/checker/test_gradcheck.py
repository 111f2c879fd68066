"""`kael.autograd.gradcheck`: its requirements, its report, and what it leaves behind."""

import numpy as np
import pytest
from tests_checker_functions import leaf, made

import kael
from kael.autograd import GradcheckOptions, gradcheck


def test_a_right_gradient_is_true():
    result = gradcheck(lambda x, w: kael.tanh(x * w + x).sum(), [leaf([1, 2]), leaf([0.5, -1])])
    assert result
    assert (result.passed, result.status, result.report, result.findings) == (
        True,
        "passed",
        "",
        (),
    )


def test_a_wrong_gradient_is_false_and_names_the_entry():
    result = gradcheck(lambda x: x * 2 if kael.is_grad_enabled() else x * 3, [leaf([1.0])])
    assert not result
    assert "input 0 element [0]: analytic 2 != numeric 3" in result.report.splitlines()


def test_the_value_must_not_depend_on_recording():
    result = gradcheck(lambda x: x * 2 if kael.is_grad_enabled() else x * 3, [leaf([1.0])])
    assert {"value", "numeric"} <= {finding.kind for finding in result.findings}


def test_an_entry_of_a_matrix_is_named_by_its_index():
    def backward(x, g):
        broken = (2 * x * g).numpy().copy()
        broken[1, 2] *= 1.5
        return kael.tensor(broken)

    function = made(lambda x: x * x, backward)
    result = gradcheck(lambda x: function(x).sum(), [leaf(np.arange(6.0).reshape(2, 3) + 1)])
    assert result.report == "input 0 element [1, 2]: analytic 18 != numeric 12"


def test_numbers_are_told_apart_with_the_digits_it_takes():
    function = made(lambda x: kael.exp(x), lambda x, g: g * kael.exp(x) * (1 + 1e-7))
    report = gradcheck(function, [leaf(0.0)], mode="adaptive").report
    assert report == "input 0 element []: analytic 1.0000001 != numeric 1"


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (lambda: kael.tensor([1.0], dtype=kael.float32, requires_grad=True), "must be F64"),
        (lambda: kael.tensor([1.0]), "must require grad"),
        (lambda: leaf([1.0]) * 2, "must be leaves"),
    ],
)
def test_what_an_input_must_be(tensor, message):
    with pytest.raises(kael.KaelError, match=message):
        gradcheck(lambda x: x.sum(), [tensor()])


def test_float32_is_checked_when_dtype_says_so():
    x = kael.tensor([0.3, 0.7], dtype=kael.float32, requires_grad=True)
    result = gradcheck(lambda x: kael.tanh(x), [x], dtype=kael.float32)
    assert result
    assert any("float32" in note for note in result.notes)
    wrong = made(kael.tanh, lambda x, g: g * (1 - kael.tanh(x) ** 2) * 1.01)
    assert not gradcheck(wrong, [x], dtype=kael.float32)


def test_float64_inputs_can_be_checked_in_float32():
    seen = []
    function = lambda x: seen.append(x.dtype) or kael.sin(x)
    assert gradcheck(function, [leaf([0.3, 0.7])], dtype=kael.float32)
    assert kael.float32 in seen
    assert kael.float64 in seen


def test_inputs_and_their_gradients_are_left_as_they_were():
    x = leaf([0.1, 0.2, 0.3])
    (x * 5).sum().backward()
    before, version = x.numpy().copy(), x.version
    assert gradcheck(lambda x: (x * x).sum(), [x])
    assert np.array_equal(x.numpy(), before)
    assert x.version == version
    assert x.grad.tolist() == [5, 5, 5]


def test_inputs_are_put_back_when_the_check_is_interrupted():
    x = leaf([0.1, 0.2])
    calls = []

    def function(x):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return (x * x).sum()

    with pytest.raises(KeyboardInterrupt):
        gradcheck(function, [x])
    assert x.tolist() == [0.1, 0.2]


def test_an_input_read_through_a_closure_is_moved_too():
    x = leaf([0.5, 1.5])
    assert gradcheck(lambda _: kael.tanh(x).sum(), [x])
    wrong = made(kael.tanh, lambda x, g: g)
    assert not gradcheck(lambda _: wrong(x).sum(), [x])


def test_a_stale_gradient_does_not_count():
    x = leaf([1.0])
    x.grad = kael.tensor([100.0])
    assert gradcheck(lambda x: x * 3, [x])


def test_a_severed_graph_fails_and_an_unused_input_passes_with_a_note():
    assert not gradcheck(lambda x: kael.tensor(x.tolist()) * 2, [leaf([1.0, 2.0])])
    result = gradcheck(lambda x, y: x * 2, [leaf([1.0]), leaf([2.0])])
    assert result
    assert any("does not depend on input 1" in note for note in result.notes)


def test_an_array_is_no_result():
    with pytest.raises(kael.KaelTypeError, match="NumPy array"):
        gradcheck(lambda x: x.numpy() * 2, [leaf([1.0])])


def test_global_grad_mode_does_not_matter():
    with kael.no_grad():
        assert gradcheck(lambda x: kael.exp(x), [leaf([1.0])])
        assert not kael.is_grad_enabled()


def test_integer_inputs_ride_along():
    index = kael.tensor([2, 0, 2])
    assert gradcheck(lambda x, i: kael.index_select(x, 0, i), [leaf([1, 2, 3]), index])


def test_fields_override_options():
    loose = GradcheckOptions(rtol=0.5)
    function = made(lambda x: x * 1.0, lambda x, g: g * 1.2)
    assert gradcheck(function, [leaf([1.0])], loose)
    assert not gradcheck(function, [leaf([1.0])], loose, rtol=1e-3)
    with pytest.raises(kael.KaelTypeError, match="no option 'tolerance'"):
        gradcheck(function, [leaf([1.0])], tolerance=1)


@pytest.mark.parametrize("fields", [{"mode": "quick"}, {"eps": 0}, {"atol": -1}, {"rtol": np.nan}])
def test_options_are_refused_by_name(fields):
    with pytest.raises(kael.KaelValueError, match=next(iter(fields))):
        GradcheckOptions(**fields)


def test_a_wrong_shape_from_backward_is_a_finding():
    result = gradcheck(made(lambda x: x * 2, lambda x, g: g.sum()), [leaf([1.0, 2.0])])
    assert result.status == "failed"
    assert "expected shape [2]" in result.report


def test_the_budget_is_kept_and_what_it_left_out_is_said():
    calls = []
    function = lambda x: calls.append(1) or kael.tanh(x)
    x = leaf(np.linspace(-1, 1, 40))
    result = gradcheck(function, [x], mode="full", max_evaluations=30)
    assert len(calls) <= 30
    assert any("of 40 entries" in note for note in result.notes)


def test_one_tensor_stands_for_a_list_of_one():
    assert gradcheck(lambda x: kael.exp(x), leaf([1.0]))
