"""erf, the exact and the tanh gelu, and their slopes, in NumPy and without scipy.

The rational approximations are those of fdlibm's s_erf.c (Sun Microsystems, 1993), within 1 ulp
in float64; float32 is computed in float64 and rounded once.
The compiled versions are in `compiled_gaussian.py`; `tiers.py` decides which runs.
"""

from __future__ import annotations

import math

import numpy as np

from kael.kernels.axes import Array

# Numerators and denominators by interval of abs(x), highest power first (fdlibm's s_erf.c).
SMALL_P = (-2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02,
           -3.25042107247001499370e-01, 1.28379167095512558561e-01)  # fmt: skip
SMALL_Q = (-3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03,
           6.50222499887672944485e-02, 3.97917223959155352819e-01, 1.0)  # fmt: skip
MIDDLE_P = (-2.16637559486879084300e-03, 3.54783043256182359371e-02, -1.10894694282396677476e-01,
            3.18346619901161753674e-01, -3.72207876035701323847e-01, 4.14856118683748331666e-01,
            -2.36211856075265944077e-03)  # fmt: skip
MIDDLE_Q = (1.19844998467991074170e-02, 1.36370839120290507362e-02, 1.26171219808761642112e-01,
            7.18286544141962662868e-02, 5.40397917702171048937e-01, 1.06420880400844228286e-01,
            1.0)  # fmt: skip
LARGE_P = (-9.81432934416914548592e+00, -8.12874355063065934246e+01, -1.84605092906711035994e+02,
           -1.62396669462573470355e+02, -6.23753324503260060396e+01, -1.05586262253232909814e+01,
           -6.93858572707181764372e-01, -9.86494403484714822705e-03)  # fmt: skip
LARGE_Q = (-6.04244152148580987438e-02, 6.57024977031928170135e+00, 1.08635005541779435134e+02,
           4.29008140027567833386e+02, 6.45387271733267880336e+02, 4.34565877475229228821e+02,
           1.37657754143519042600e+02, 1.96512716674392571292e+01, 1.0)  # fmt: skip
HUGE_P = (-4.83519191608651397019e+02, -1.02509513161107724954e+03, -6.37566443368389627722e+02,
          -1.60636384855821916062e+02, -1.77579549177547519889e+01, -7.99283237680523006574e-01,
          -9.86494292470009928597e-03)  # fmt: skip
HUGE_Q = (-2.24409524465858183362e+01, 4.74528541206955367215e+02, 2.55305040643316442583e+03,
          3.19985821950859553908e+03, 1.53672958608443695994e+03, 3.25792512996573918826e+02,
          3.03380607434824582924e+01, 1.0)  # fmt: skip
ERX = 8.45062911510467529297e-01  # erf(1), cut to 24 bits
SMALL_TO, MIDDLE_TO, LARGE_TO = 0.84375, 1.25, 1 / 0.35

SQRT_HALF = math.sqrt(0.5)
INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBIC = 0.044715
# Where tanh is 1 to the last bit; keeps x**3 from overflowing and 0 * inf out of the slope.
TANH_FLAT = 30.0


def erf(x: Array) -> Array:
    """2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
    wide = np.asarray(x, np.float64)
    out = np.where(np.isnan(wide), np.nan, np.sign(wide))
    size = np.abs(wide)
    small, middle = size < SMALL_TO, (size >= SMALL_TO) & (size < MIDDLE_TO)
    tail = (size >= MIDDLE_TO) & (size < 6)
    out[small] = _small(wide[small])
    out[middle] *= _middle(size[middle])
    out[tail] *= 1 - _tail(size[tail])
    return out.astype(x.dtype, copy=False)


def erf_backward(g: Array, x: Array) -> Array:
    """g * 2 / sqrt(pi) * exp(-x*x)."""
    return np.asarray(g * (2 / math.sqrt(math.pi) * np.exp(-(x * x))))


def gelu(x: Array, approximate: bool = False) -> Array:
    """x times the normal distribution function at x, exact or by the tanh approximation."""
    if approximate:
        return np.asarray(0.5 * x * (1 + _tanh_part(x)))
    return (x * _normal_cdf(x)).astype(x.dtype, copy=False)


def gelu_backward(g: Array, x: Array, approximate: bool = False) -> Array:
    """g times the slope: cdf(x) + x * density(x), or the slope of the tanh approximation."""
    if approximate:
        t = _tanh_part(x)
        near = np.clip(x, -TANH_FLAT, TANH_FLAT)
        inner = TANH_SCALE * (1 + 3 * TANH_CUBIC * near * near)
        return np.asarray(g * (0.5 * (1 + t) + 0.5 * near * (1 - t * t) * inner))
    near = np.clip(np.asarray(x, np.float64), -40, 40)
    slope = _normal_cdf(x) + near * (INV_SQRT_2PI * np.exp(-0.5 * near * near))
    return np.asarray(g * slope.astype(x.dtype, copy=False))


def _tanh_part(x: Array) -> Array:
    near = np.clip(x, -TANH_FLAT, TANH_FLAT)
    return np.asarray(np.tanh(TANH_SCALE * (near + TANH_CUBIC * near * near * near)))


def _normal_cdf(x: Array) -> Array:
    """(1 + erf(x / sqrt(2))) / 2, from the tail where it would cancel; always float64."""
    scaled = np.asarray(np.asarray(x, np.float64) * SQRT_HALF)
    out = np.asarray(0.5 + 0.5 * erf(scaled))
    below = (scaled <= -MIDDLE_TO) & (scaled > -28)
    out[below] = 0.5 * _tail(-scaled[below])
    out[scaled <= -28] = 0
    return out


def _small(x: Array) -> Array:
    z = x * x
    return np.asarray(x + x * (_polynomial(SMALL_P, z) / _polynomial(SMALL_Q, z)))


def _middle(size: Array) -> Array:
    s = size - 1
    return np.asarray(ERX + _polynomial(MIDDLE_P, s) / _polynomial(MIDDLE_Q, s))


def _tail(size: Array) -> Array:
    """1 - erf for size in [1.25, 28)."""
    s = 1 / (size * size)
    ratio = np.where(
        size < LARGE_TO,
        _polynomial(LARGE_P, s) / _polynomial(LARGE_Q, s),
        _polynomial(HUGE_P, s) / _polynomial(HUGE_Q, s),
    )
    # exp(-x*x) loses digits for large x; a head of 24 bits squares without rounding.
    head = size.astype(np.float32).astype(np.float64)
    return np.asarray(
        np.exp(-head * head - 0.5625) * np.exp((head - size) * (head + size) + ratio) / size
    )


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total *= x
        total += c
    return total
