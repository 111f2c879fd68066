"""Trace and anomaly detection: by call, by context manager, by environment."""

import io

import numpy as np
import pytest

import kael
from kael import KaelError
from kael.debug import set_anomaly_detection, set_backward_trace

FIRST = "backward MulBackward shape=[1] norm=1\n"


def product():
    x = kael.tensor([2.0], requires_grad=True)
    return x * 3


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.delenv("KAEL_TRACE_BACKWARD", raising=False)
    monkeypatch.delenv("KAEL_DETECT_ANOMALY", raising=False)
    yield
    set_backward_trace(None)
    set_anomaly_detection(False)


def test_TraceGoesToTheStream():
    stream = io.StringIO()
    set_backward_trace(stream)
    product().backward()
    set_backward_trace(None)
    product().backward()
    assert stream.getvalue() == FIRST + "backward AccumulateGrad shape=[1] norm=3\n"


def test_TraceAsContextManagerRestores():
    outer, inner = io.StringIO(), io.StringIO()
    with set_backward_trace(outer):
        with set_backward_trace(inner):
            product().backward()
        assert outer.getvalue() == ""
        product().backward()
    product().backward()
    assert inner.getvalue() == outer.getvalue() != ""


@pytest.mark.parametrize(
    ("value", "shown"), [("1", True), ("yes", True), ("0", False), ("", False)]
)
def test_TraceByEnvironmentIsReadAtEachBackward(monkeypatch, capsys, value, shown):
    product().backward()
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("KAEL_TRACE_BACKWARD", value)
    product().backward()
    assert (FIRST in capsys.readouterr().err) is shown


def test_StreamTakesPrecedenceOverTheEnvironment(monkeypatch, capsys):
    monkeypatch.setenv("KAEL_TRACE_BACKWARD", "1")
    stream = io.StringIO()
    with set_backward_trace(stream):
        product().backward()
    assert capsys.readouterr().err == ""
    assert stream.getvalue().startswith(FIRST)
    product().backward()
    assert capsys.readouterr().err.startswith(FIRST)


def nan_gradient():
    x = kael.tensor([0.0, 1.0], requires_grad=True)
    return x, kael.where(kael.tensor([False, True]), kael.log(x), x).sum()


def test_AnomalyRaisesTheFirstNan():
    x, loss = nan_gradient()
    with set_anomaly_detection(True), pytest.raises(KaelError) as caught:
        loss.backward()
    assert str(caught.value).startswith("Function LogBackward returned NaN in its gradient")
    x, loss = nan_gradient()
    loss.backward()
    assert np.isnan(x.grad.numpy()[0])


def test_AnomalyIgnoresInfinityUnlessAsked():
    x = kael.tensor([0.0], requires_grad=True)
    with set_anomaly_detection(True):
        kael.sqrt(x).backward()
    assert x.grad.tolist() == [np.inf]
    with (
        set_anomaly_detection(True, check_inf=True),
        pytest.raises(KaelError, match="Function SqrtBackward returned Infinity in its gradient"),
    ):
        kael.sqrt(x).backward()


def test_AnomalyByEnvironment(monkeypatch):
    _, loss = nan_gradient()
    monkeypatch.setenv("KAEL_DETECT_ANOMALY", "1")
    with pytest.raises(KaelError, match="returned NaN in its gradient"):
        loss.backward()
    monkeypatch.setenv("KAEL_DETECT_ANOMALY", "0")
    nan_gradient()[1].backward()


@pytest.mark.parametrize("size", [2, 2000])
def test_a_sum_that_is_not_finite_is_the_fault_of_who_sums(size):
    x = kael.tensor([1.0, -1.0] * (size // 2))
    w = kael.tensor([1.0], requires_grad=True).exp()
    with set_anomaly_detection(True), pytest.raises(KaelError, match="MulBackward returned NaN"):
        (x * w).backward(kael.tensor([np.inf] * size))
