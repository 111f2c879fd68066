"""The exponential that compiled kernels use: within 1 ulp, and right at the ends."""

from __future__ import annotations

import mpmath
import numba
import numpy as np

from kael.kernels.compiled.scalar import exp


@numba.njit(error_model="numpy")
def exp_each(x, out):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        out[i] = exp(x[i])


def test_within_an_ulp() -> None:
    rng = np.random.default_rng(0)
    edges = (np.arange(-1000, 1000) + 0.5) * np.log(2)  # where the reduction is at its limit
    x = np.concatenate(
        [rng.uniform(-708, 709, 6000), rng.uniform(-2, 2, 6000), edges[np.abs(edges) < 708]]
    )
    out = np.empty_like(x)
    exp_each(x, out)
    with mpmath.workdps(30):
        for value, near in zip(x, out, strict=True):
            want = mpmath.exp(float(value))
            assert abs(mpmath.mpf(float(near)) - want) <= mpmath.mpf(float(np.spacing(float(want))))


def test_ends() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 710.0, -746.0, -745.0, -720.0])
    out = np.empty_like(x)
    exp_each(x, out)
    np.testing.assert_array_equal(out[:7], [np.inf, 0, np.nan, 1, 1, np.inf, 0])
    np.testing.assert_allclose(out[7:], np.exp(x[7:]), atol=1e-323)
