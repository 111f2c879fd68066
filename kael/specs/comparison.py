"""Two arrays that should be equal, as a check: golden values, and claims against kael's gradient.

Differences against numbers that carry an error of their own are the checker's, not this module's.
"""

from typing import Any

import numpy as np

from kael.checker.model import MOST_FAILURES, Check, Failure, Kind

Array = np.ndarray[Any, Any]

# A float32 has seven digits; a formula of some length leaves about four of them.
FLOAT32_ATOL, FLOAT32_RTOL = 1e-5, 1e-4


def compare(
    kind: Kind, name: str | None, got: Array, wanted: Array, *, atol: float, rtol: float
) -> Check:
    """Return the check that `|got - wanted| <= atol + rtol * |wanted|` in every entry.

    What was computed in float32 is not held to more than float32 can say.
    Equal infinities agree, and NaN agrees with NaN, since here NaN was asked for. The arrays have
    one shape. Failures are listed worst first.

    >>> compare("expect", "x", np.array([1.0, 2.0]), np.array([1.0, 2.5]), atol=0, rtol=0.1).wrong
    1
    """
    if got.dtype == np.float32:
        atol, rtol = max(atol, FLOAT32_ATOL), max(rtol, FLOAT32_RTOL)
    left, right = got.astype(np.float64).ravel(), wanted.astype(np.float64).ravel()
    with np.errstate(all="ignore"):
        error = np.abs(left - right)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        error[same] = 0.0
        right_size = np.abs(right)
        wrong = ~(same | (np.isfinite(error) & (error <= atol + rtol * right_size)))
        # a difference that is not finite is worse than any that is
        error[np.isnan(error)] = np.inf
        relative = error / np.maximum(np.abs(left), right_size)
    relative[np.isnan(relative)] = 0.0
    at = np.flatnonzero(wrong)
    worst = at[np.argsort(-error[at], kind="stable")][:MOST_FAILURES]
    return Check(
        kind=kind,
        input=name,
        status="failed" if at.size else "passed",
        compared=left.size,
        wrong=at.size,
        max_abs_error=float(error.max(initial=0.0)),
        max_rel_error=float(relative.max(initial=0.0)),
        failures=[
            Failure(
                tuple(int(i) for i in np.unravel_index(entry, got.shape)),
                float(left[entry]),
                float(right[entry]),
                0.0,
            )
            for entry in worst
        ],
    )
