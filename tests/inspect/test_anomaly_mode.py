"""Anomaly mode in a Python program: its message, the user's line, and what it costs when off."""

import os
import subprocess
import sys
import threading

import pytest

import kael
from kael.engine.grad_mode import state


def trap():
    x = kael.tensor([0.0, 3.0], requires_grad=True)
    return kael.where(x > 2, kael.log(x), 2 * x).sum()


def test_the_message_stays_and_the_users_line_follows():
    with kael.debug.set_anomaly_detection(True):
        loss = trap()
        with pytest.raises(kael.KaelError) as raised:
            loss.backward()
    first, second = str(raised.value).splitlines()
    assert first == "Function LogBackward returned NaN in its gradient"
    assert second.startswith(f"recorded at {__file__}:")
    assert second.endswith(": return kael.where(x > 2, kael.log(x), 2 * x).sum()")


def test_without_the_mode_nothing_is_remembered():
    assert state.here.observer is None
    loss = trap()
    with kael.debug.set_anomaly_detection(True), pytest.raises(kael.KaelError) as raised:
        loss.backward()
    assert str(raised.value) == "Function LogBackward returned NaN in its gradient"
    assert state.here.observer is None


def test_infinities_are_looked_for_on_request():
    x = kael.tensor([0.0], requires_grad=True)
    with kael.debug.set_anomaly_detection(True):
        kael.sqrt(x).sum().backward()
    with (
        kael.debug.set_anomaly_detection(True, check_inf=True),
        pytest.raises(kael.KaelError, match=r"SqrtBackward returned Infinity in its gradient\n"),
    ):
        kael.sqrt(x).sum().backward()


def test_a_thread_that_starts_in_the_mode_remembers_too():
    messages = []

    def work():
        try:
            trap().backward()
        except kael.KaelError as error:
            messages.append(str(error))

    with kael.debug.set_anomaly_detection(True):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "recorded at" in messages[0]


def test_the_variable_switches_the_mode_on(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import kael\n"
        "x = kael.tensor([0.0], requires_grad=True)\n"
        "y = kael.where(x > 0, kael.log(x), x)\n"
        "y.sum().backward()\n"
    )
    run = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "KAEL_DETECT_ANOMALY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"recorded at {program}:3:23: y = kael.where(x > 0, kael.log(x), x)" in run.stderr


def test_an_overwritten_value_names_both_sides():
    x = kael.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = kael.exp(x)
    with kael.no_grad():
        y.add_(1)
    with pytest.raises(kael.KaelError) as raised:
        y.sum().backward()
    first, second = str(raised.value).splitlines()
    assert first == (
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: expected version 0, got 1"
    )
    assert "ExpBackward" in second
    assert "add_" in second
