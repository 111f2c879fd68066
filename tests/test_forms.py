"""Forms: one object for all operands of one shape, dtype and flag."""

import numpy as np

import kael
from kael import forms
from kael.forms import form_of


def test_equal_forms_are_one():
    form = form_of(np.ones((2, 3)))
    assert form is form_of(np.zeros((2, 3)))
    assert form is not form_of(np.ones((3, 2))) is not form_of(np.ones((2, 3), "float32"))
    assert (form.shape, form.dtype, form.entries, form.nbytes) == ((2, 3), kael.float64, 6, 48)
    assert form.floating
    assert not form_of(np.ones(2, int)).floating


def test_each_has_a_twin_that_requires_a_gradient():
    form = form_of(np.ones(3))
    assert form.plain is form is form.recorded.plain
    assert form.recorded is form.recorded.recorded
    assert form.recorded.requires_grad
    assert not form.requires_grad
    assert (repr(form), repr(form.recorded)) == ("<form float64[3]>", "<form float64[3] recorded>")


def test_a_tensor_has_the_form_of_its_flag():
    x = kael.tensor([1.0, 2.0])
    assert x.form is form_of(np.ones(2))
    x.requires_grad_()
    assert x.form is form_of(np.ones(2)).recorded
    y = x * 2
    assert y.form is x.form
    assert y.detach().form is form_of(np.ones(2))
    y.detach_()
    assert not y.requires_grad
    assert y.form is form_of(np.ones(2))
    with kael.no_grad():
        assert (x * 2).form is form_of(np.ones(2))


def test_only_so_many_are_kept(monkeypatch):
    monkeypatch.setattr(forms, "_KEPT", 8)
    monkeypatch.setattr(forms, "_plain", {})
    x = kael.tensor([1.0], requires_grad=True)
    for size in range(1, 40):
        wide = kael.ones(size) * x
        wide.sum().backward()
        assert len(forms._plain) <= 8
    assert x.grad.item() == sum(range(1, 40))
