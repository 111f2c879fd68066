"""Scans: running sums and products, at zeros and infinities."""

import math

import numpy as np
import pytest

import kael


def gradient(out, x, upstream=None):
    out.backward(np.ones(out.shape) if upstream is None else upstream)
    return x.grad.tolist()


def test_cumsum_runs_backward_from_the_end():
    x = kael.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    out = x.cumsum(0)
    assert out.tolist() == [1, 3, 6, 10]
    assert gradient(out, x, [1.0, 10.0, 100.0, 1000.0]) == [1111, 1110, 1100, 1000]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 3.0, 4.0], [1 + 3 + 12, 2 + 8, 6]),
        ([2.0, 0.0, 4.0], [1 + 0 + 0, 2 + 8, 0]),
        ([0.0, 0.0, 4.0], [1, 0, 0]),
        ([0.0, 3.0, 4.0], [1 + 3 + 12, 0, 0]),
    ],
)
def test_cumprod_needs_no_division(values, expected):
    x = kael.tensor(values, requires_grad=True)
    out = x.cumprod(0)
    assert out.tolist() == np.cumprod(values).tolist()
    assert gradient(out, x) == expected


def test_logcumsumexp_of_log_zeros():
    x = kael.tensor([-math.inf, -math.inf, 1.0, 1.0], requires_grad=True)
    out = x.logcumsumexp(0)
    assert out.tolist() == pytest.approx([-math.inf, -math.inf, 1, 1 + math.log(2)])
    assert gradient(out, x) == pytest.approx([0, 0, 1.5, 0.5])


def test_logcumsumexp_does_not_overflow():
    x = kael.tensor([1e3, -1e3, 1e3], requires_grad=True)
    assert gradient(x.logcumsumexp(0), x) == pytest.approx([2.5, 0, 0.5])


def test_diff_is_made_of_slices():
    x = kael.tensor([1.0, 4.0, 9.0, 16.0], requires_grad=True)
    assert x.diff().tolist() == [3, 5, 7]
    assert gradient(x.diff(n=2), x, [1.0, 10.0]) == [1, 8, -19, 10]
    assert kael.tensor([True, True, False]).diff().tolist() == [False, True]
    with pytest.raises(kael.KaelValueError, match="diff: n must be 0 or more"):
        x.diff(n=-1)


def test_a_0_d_tensor_is_its_own_scan():
    x = kael.tensor(3.0, requires_grad=True)
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        x.zero_grad()
        out = getattr(x, name)(0)
        assert out.item() == 3
        assert gradient(out, x) == 1
