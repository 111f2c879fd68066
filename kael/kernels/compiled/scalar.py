"""Parts of compiled kernels: exp within 1 ulp; sums, dots, maxima and moments of a row.

The loops are written so that LLVM makes vector code of them without fastmath: exp has no branch
and no call, and each reduction keeps eight partial results.
"""

from __future__ import annotations

import math
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.extending import intrinsic

from kael.kernels.compiled.jit import inlined

LOG2_E = 1.4426950408889634
# log(2) in two parts; the first has enough trailing zeros that n times it is exact.
LOG2_HIGH = 6.93147180369123816490e-01
LOG2_LOW = 1.90821492927058770002e-10
# Adding it rounds to an integer, and leaves that integer in the last bits.
ROUND = 6755399441055744.0
ROUND_BITS = 0x4338000000000000
# (exp(r) - 1 - r) / r**2 on [-log(2)/2, log(2)/2], near-minimax (Chebyshev), highest power first.
E9, E8, E7 = 2.5100424157005067e-08, 2.7620138719733994e-07, 2.7557268378684192e-06
E6, E5, E4 = 2.480152119021773e-05, 0.00019841269863105968, 0.0013888888917281794
E3, E2, E1 = 0.008333333333330051, 0.04166666666662399, 0.16666666666666669
E0 = 0.5000000000000001

_HAS_FMA = bool(llvmlite.binding.get_host_cpu_features().get("fma", True))


def _multiply_add(_context: Any, _a: Any, _b: Any, _c: Any) -> Any:
    """a * b + c, rounded once where the CPU can (and not by a slow library call elsewhere)."""

    def generate(_compiler: Any, builder: Any, _signature: Any, values: Any) -> Any:
        x, y, z = values
        return builder.fma(x, y, z) if _HAS_FMA else builder.fadd(builder.fmul(x, y), z)

    double = numba.float64
    return double(double, double, double), generate


multiply_add: Any = intrinsic(_multiply_add)


@inlined
def exp(x: Any) -> Any:
    """exp(x) within 1 ulp, subnormal results and NaN included."""
    near = min(max(x, -746.0), 710.0)
    shifted = multiply_add(near, LOG2_E, ROUND)
    n = shifted - ROUND
    high = multiply_add(-n, LOG2_HIGH, near)
    r = high - n * LOG2_LOW
    low = (high - r) - n * LOG2_LOW
    p = multiply_add(E9, r, E8)
    p = multiply_add(p, r, E7)
    p = multiply_add(p, r, E6)
    p = multiply_add(p, r, E5)
    p = multiply_add(p, r, E4)
    p = multiply_add(p, r, E3)
    p = multiply_add(p, r, E2)
    p = multiply_add(p, r, E1)
    p = multiply_add(p, r, E0)
    value = 1.0 + (r + multiply_add(r * r, p, low))
    # Two steps to 2**n, since n reaches beyond the exponents of normal numbers.
    power = np.float64(shifted).view(np.int64) - np.int64(ROUND_BITS)
    first = power >> 1
    second = power - first
    value *= np.int64((first + 1023) << 52).view(np.float64)
    value *= np.int64((second + 1023) << 52).view(np.float64)
    return value if x == x else x


@inlined
def row_max(a: Any) -> Any:
    """The largest entry that is not NaN, -inf if there is none."""
    m0 = m1 = m2 = m3 = m4 = m5 = m6 = m7 = -np.inf
    even = a.size - a.size % 8
    for i in range(0, even, 8):
        m0 = a[i] if a[i] > m0 else m0
        m1 = a[i + 1] if a[i + 1] > m1 else m1
        m2 = a[i + 2] if a[i + 2] > m2 else m2
        m3 = a[i + 3] if a[i + 3] > m3 else m3
        m4 = a[i + 4] if a[i + 4] > m4 else m4
        m5 = a[i + 5] if a[i + 5] > m5 else m5
        m6 = a[i + 6] if a[i + 6] > m6 else m6
        m7 = a[i + 7] if a[i + 7] > m7 else m7
    top = max(max(max(m0, m1), max(m2, m3)), max(max(m4, m5), max(m6, m7)))
    for i in range(even, a.size):
        top = a[i] if a[i] > top else top
    return top


@inlined
def row_sum(a: Any) -> Any:
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    even = a.size - a.size % 8
    for i in range(0, even, 8):
        s0 += a[i]
        s1 += a[i + 1]
        s2 += a[i + 2]
        s3 += a[i + 3]
        s4 += a[i + 4]
        s5 += a[i + 5]
        s6 += a[i + 6]
        s7 += a[i + 7]
    for i in range(even, a.size):
        s0 += a[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@inlined
def row_dot(a: Any, b: Any) -> Any:
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    even = a.size - a.size % 8
    for i in range(0, even, 8):
        s0 += np.float64(a[i]) * b[i]
        s1 += np.float64(a[i + 1]) * b[i + 1]
        s2 += np.float64(a[i + 2]) * b[i + 2]
        s3 += np.float64(a[i + 3]) * b[i + 3]
        s4 += np.float64(a[i + 4]) * b[i + 4]
        s5 += np.float64(a[i + 5]) * b[i + 5]
        s6 += np.float64(a[i + 6]) * b[i + 6]
        s7 += np.float64(a[i + 7]) * b[i + 7]
    for i in range(even, a.size):
        s0 += np.float64(a[i]) * b[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@inlined
def row_squares(a: Any, centre: Any) -> Any:
    """The sum of (a - centre)**2."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    even = a.size - a.size % 8
    for i in range(0, even, 8):
        d0, d1, d2, d3 = a[i] - centre, a[i + 1] - centre, a[i + 2] - centre, a[i + 3] - centre
        d4, d5, d6, d7 = a[i + 4] - centre, a[i + 5] - centre, a[i + 6] - centre, a[i + 7] - centre
        s0 += d0 * d0
        s1 += d1 * d1
        s2 += d2 * d2
        s3 += d3 * d3
        s4 += d4 * d4
        s5 += d5 * d5
        s6 += d6 * d6
        s7 += d7 * d7
    for i in range(even, a.size):
        s0 += (a[i] - centre) ** 2
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@inlined
def row_unit(a: Any, eps: Any) -> Any:
    """A power of two as large as the row, so that squares fit in it; 1 if there is none."""
    top = math.sqrt(eps)
    for i in range(a.size):
        top = max(top, abs(np.float64(a[i])))
    return math.ldexp(1.0, math.frexp(top)[1] - 1) if 0 < top < np.inf else 1.0


@inlined
def row_moments(a: Any, unit: Any, eps: Any) -> Any:
    """The mean and sqrt(var + eps) of the row, measured in `unit`."""
    mean = np.float64(0)
    for i in range(a.size):
        mean += a[i] / unit
    mean /= a.size
    total = np.float64(0)
    for i in range(a.size):
        total += (a[i] / unit - mean) ** 2
    return mean, math.sqrt(total / a.size + eps / unit / unit)


@inlined
def exp_sum(a: Any, shift: Any, scratch: Any) -> Any:
    """The sum of exp(a - shift), by blocks of `scratch`, which stays in cache."""
    total = 0.0
    for start in range(0, a.size, scratch.size):
        # A slice: the test for a negative start + i would keep the loop from being vectorised.
        part = a[start : start + scratch.size]
        for i in range(part.size):
            scratch[i] = exp(np.float64(part[i]) - shift)
        total += row_sum(scratch[: part.size])
    return total
