"""Arrays as text for people: full while they are small, summarised when they are not."""

import sys
from typing import Any

import numpy as np

LARGEST = 100
"""How many elements are written out; more are summarised."""


def shown(array: np.ndarray[Any, Any], *, indent: int = 0, full: bool = False) -> str:
    """Return an array as nested lists with six digits, or its norm, range and mean.

    >>> shown(np.array([[0.271060123, -0.0], [1e-12, 3.0]]))
    '[[0.27106, 0], [1e-12, 3]]'
    >>> shown(np.arange(1000.0))
    'norm=18243.7 min=0 max=999 mean=499.5'
    """
    if array.size > LARGEST and not full:
        return summary(array)
    if array.ndim < 2 or array.shape[0] < 2:
        return np.array2string(array, **_style(10**6))
    flat = np.array2string(array, **_style(10**6)).replace("\n", " ")
    flat = " ".join(flat.split())
    if len(flat) <= 72:
        return flat
    return np.array2string(array, prefix=" " * indent, **_style(100))


def summary(array: np.ndarray[Any, Any]) -> str:
    """Return the norm, range and mean of an array, with how many entries are not finite."""
    if array.dtype.kind == "b":
        return f"true={int(array.sum())} false={int(array.size - array.sum())}"
    values = array.astype(np.float64, copy=False)
    finite = values[np.isfinite(values)]
    text = f"norm={number(_norm(finite))}"
    if finite.size:
        text += f" min={number(finite.min())} max={number(finite.max())}"
        text += f" mean={number(finite.mean())}"
    if finite.size < values.size:
        nans = int(np.isnan(values).sum())
        text += f" nan={nans} inf={values.size - finite.size - nans}"
    return text


def number(value: Any) -> str:
    """A number in six digits, zero without a sign."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    return f"{value:g}" if value else "0"


def _norm(values: np.ndarray[Any, Any]) -> float:
    largest = float(np.abs(values).max()) if values.size else 0.0
    return largest * float(np.linalg.norm(values / largest)) if largest else 0.0


def _style(width: int) -> dict[str, Any]:
    return {
        "max_line_width": width,
        "separator": ", ",
        "threshold": sys.maxsize,
        "formatter": {"all": number},
    }
