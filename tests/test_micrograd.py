"""The scalar engine."""

import subprocess
import sys

import pytest

from kael.micrograd import CHECKS, Value


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_checks(check):
    assert check()


def test_neuron_numbers():
    w1, x1, w2, x2, b = (Value(v) for v in (0.5, 2.0, -1.5, 0.5, 0.25))
    y = (w1 * x1 + w2 * x2 + b).tanh()
    y.backward()
    assert y.data == pytest.approx(0.462117, abs=1e-6)
    found = [w1.grad, x1.grad, w2.grad, x2.grad, b.grad]
    assert found == pytest.approx([1.572895, 0.393224, 0.393224, -1.179672, 0.786448], abs=1e-6)


def test_module_prints_the_verdict():
    done = subprocess.run(
        [sys.executable, "-m", "kael.micrograd"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "micrograd: gradients match\n")


def test_operators_mix_with_numbers():
    x = Value(2.0)
    y = (1 + x) * 3 - 4 / x + (5 - x) / 2 + x**3 + -x + x.relu() + (0 * x - 1).relu()
    y.backward()
    assert y.data == pytest.approx(9 - 2 + 1.5 + 8 - 2 + 2)
    assert x.grad == pytest.approx(3 + 1 - 0.5 + 12 - 1 + 1)


def test_gradients_accumulate_across_backwards():
    x = Value(3.0)
    y = x * 2
    y.backward()
    y.backward()
    assert x.grad == 4.0


def test_long_chain_needs_no_recursion():
    x = Value(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad == 1.0


def test_exponent_must_be_a_number():
    with pytest.raises(TypeError, match="plain number"):
        Value(2.0) ** Value(3.0)


def test_a_failing_check_is_reported(monkeypatch, capsys):
    import kael.micrograd as module

    def broken():
        return False

    monkeypatch.setattr(module, "CHECKS", (broken,))
    assert module.main() == 1
    assert "broken failed" in capsys.readouterr().out
