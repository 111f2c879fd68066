"""Special functions: values against known constants, ends of the domain, and what is imported."""

import math
import subprocess
import sys

import numpy as np
import pytest

from kael.engine.backward import backward
from kael.errors import KaelValueError
from kael.ops import REGISTRY
from kael.tensors import tensor

INF = math.inf
EULER = 0.5772156649015329


def slope(name, x, *before):
    leaf = tensor(np.asarray(x, float), requires_grad=True)
    backward(REGISTRY[name](*before, leaf), np.ones(leaf.shape))
    return leaf.grad.tolist()


@pytest.mark.parametrize(
    ("name", "x", "value"),
    [
        ("erf", 0.5, 0.5204998778130465),
        ("erfc", 5.0, 1.5374597944280349e-12),
        ("erfinv", 0.5, 0.4769362762044699),
        ("lgamma", 0.5, math.log(math.sqrt(math.pi))),
        ("digamma", 1.0, -EULER),
        ("erf", -INF, -1.0),
        ("erfinv", 1.0, INF),
        ("lgamma", -1.0, INF),
    ],
)
def test_values(name, x, value):
    assert REGISTRY[name](tensor(x)).item() == pytest.approx(value, rel=1e-14)


def test_polygamma_on_both_sides_of_0():
    polygamma = REGISTRY["polygamma"]
    assert polygamma(0, tensor(1.0)).item() == pytest.approx(-EULER)
    # pi**2 / 6 at 1, pi**2 / 2 at 1/2, and pi**2 / 2 + 4 at -1/2 by the recurrence.
    at = tensor([1.0, 0.5, -0.5])
    expected = [math.pi**2 / 6, math.pi**2 / 2, math.pi**2 / 2 + 4]
    assert polygamma(1, at).tolist() == pytest.approx(expected, rel=1e-14)
    assert polygamma(1, tensor([-1.0, 0.0])).tolist() == [INF, INF]
    assert slope("digamma", [-0.5]) == pytest.approx(expected[2:])
    with pytest.raises(KaelValueError, match="n must not be negative, got -1"):
        polygamma(-1, at)


def test_polygamma_keeps_its_digits_far_below_0():
    got = REGISTRY["polygamma"](1, tensor(-1e6 + 0.25)).item()
    sine = math.sin(math.pi * 0.25)
    assert got == pytest.approx((math.pi / sine) ** 2 - 1e-6, rel=1e-10)


def test_erfinv_at_the_ends():
    assert slope("erfinv", [1.0, -1.0]) == [INF, INF]
    assert math.isnan(REGISTRY["erfinv"](tensor(1.5)).item())


def test_xlogy_at_0():
    x = tensor([0.0, 0.0, 1.0, 0.0], requires_grad=True)
    other = tensor([0.0, 1.0, 0.0, math.nan], requires_grad=True)
    out = REGISTRY["xlogy"](x, other)
    backward(out, np.ones(4))
    assert out.tolist()[:3] == [0, 0, -INF]
    assert math.isnan(out.tolist()[3])
    assert x.grad.tolist()[:3] == [0, 0, -INF]
    assert other.grad.tolist() == [0, 0, INF, 0]


def test_erf_and_gelu_do_not_import_scipy():
    code = (
        "import sys, numpy as np, kael.ops\n"
        "from kael.ops import REGISTRY\n"
        "from kael.tensors import tensor\n"
        "x = tensor([0.5, 1.0], requires_grad=True)\n"
        "for name in ('erf', 'gelu'):\n"
        "    REGISTRY[name](x).backward(np.ones(2))\n"
        "assert 'scipy' not in sys.modules\n"
        "REGISTRY['erfc'](x)\n"
        "assert 'scipy' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_lgamma_at_the_ends_of_the_floats():
    ends = tensor([1e-320, -np.inf, np.inf, 0.0])
    tiny, *others = REGISTRY["lgamma"](ends).tolist()
    assert tiny == pytest.approx(math.lgamma(1e-320))
    assert others == [np.inf] * 3
