"""The gradient is a constant times the right one.

## What was seen

Analytic divided by numeric is one number in all entries, under every upstream gradient and at
every point that was looked at. The sentence names it: 2, 1/2, the number of elements n, 1/n, or
the ratio itself.

## Why it happens

2 or 1/2: the derivative of a square without its 2, or of half a square with it. n or 1/n: a `mean`
differentiated as a `sum`, or the reverse; a loss averaged in the forward and not in the backward.
Other ratios: a forgotten inner derivative (`sin(3*x)`), `log2` or `log10` taken for `log`, `n - 1`
for `n` in a variance, a rounded constant (3.14 for `pi` is the ratio 0.999493).

## How to mend it

Multiply the gradient by the inverse of the ratio, where the derivative has it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis, told_apart

RANK = 320

_CONSTANTS = {
    "pi": math.pi,
    "2*pi": 2 * math.pi,
    "sqrt(2)": math.sqrt(2),
    "sqrt(pi)": math.sqrt(math.pi),
    "log(2)": math.log(2),
    "log(10)": math.log(10),
    "e": math.e,
}


def found(evidence: Evidence) -> Diagnosis | None:
    """Claimed is one number times right; or one term of right is that far off."""
    ratio = _ratio(evidence)
    if ratio is not None and evidence.fits(lambda view: ratio * view.right):
        told = f"is {named(ratio, evidence)} times the right one{evidence.among}"
        return evidence.tell("factor", told)
    return _of_a_term(evidence)


def _ratio(evidence: Evidence) -> float | None:
    for view in evidence.given:
        use = (np.abs(view.right) > 100 * view.slack(view.right)) & ~view.point.bent
        if use.any():
            ratio = float(np.median(view.claimed[use] / view.right[use]))
            usable = math.isfinite(ratio) and min(abs(ratio), abs(ratio - 1), abs(ratio + 1)) > 1e-9
            return ratio if usable else None
    return None


def _of_a_term(evidence: Evidence) -> Diagnosis | None:
    for text, term in evidence.terms():
        for view in evidence.given:
            part = term(view)
            use = (np.abs(part) > 100 * view.slack(part)) & ~view.point.bent
            if not use.any():
                continue
            ratio = 1 + float(np.median((view.claimed - view.right)[use] / part[use]))
            known = (0, 1, -1, 2)  # missing, right, turned over, counted twice: not a factor
            if not math.isfinite(ratio) or min(abs(ratio - other) for other in known) < 1e-6:
                break
            if evidence.fits(lambda view: view.right + (ratio - 1) * term(view)):  # noqa: B023
                told = f"has the term through {text} {named(ratio, evidence)} times too large"
                return evidence.tell("factor", told)
            break
    return None


def named(ratio: float, evidence: Evidence) -> str:
    """A ratio as people would say it: `2`, `1/2`, `1/n (n = 6)`, `pi`, or the number."""
    counts = {evidence.size, *evidence.shape}
    counts |= {int(np.prod(evidence.problem.output_shape)), *evidence.problem.output_shape}
    for n in sorted(count for count in counts if count > 2):
        for text, value in ((f"n (n = {n})", n), (f"1/n (n = {n})", 1 / n)):
            if _equal(abs(ratio), value):
                return ("-" if ratio < 0 else "") + text
        for text, value in (
            (f"(n-1)/n (n = {n})", (n - 1) / n),
            (f"n/(n-1) (n = {n})", n / (n - 1)),
        ):
            if n > 3 and _equal(ratio, value):
                return text
    fraction = Fraction(ratio).limit_denominator(16)
    if abs(fraction) != 1 and _equal(ratio, float(fraction)) and abs(fraction.numerator) <= 100:
        return str(fraction)
    for text, value in _CONSTANTS.items():
        if _equal(ratio, value):
            return text
        if _equal(ratio, 1 / value):
            return f"1/{text}" if text.isalpha() else f"1/({text})"
    return told_apart(ratio, 1.0)[0]


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= 2e-6 * abs(other)
