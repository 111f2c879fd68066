"""Numbers and arrays as text for people, and as JSON for programs; no terminal width matters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kael import shapes
from kael.kernels import trace_norm as norm

Array = np.ndarray[Any, Any]

MOST_ELEMENTS = 12
"""How many elements are written out; a larger array is shown as shape, norm, range and mean."""


def number(value: Any) -> str:
    """Write one number with six decimals, and without them where it has none.

    A number that six decimals hold exactly loses its zeros; any other keeps all six, so that one
    sees that it was rounded. Very large and very small ones are written with an exponent.

    >>> number(0.5), number(-1.0), number(0.27105997), number(3e-9), number(float("inf"))
    ('0.5', '-1', '0.271060', '3e-09', 'inf')
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(value)
    value = float(value)
    if value == 0:
        return "0"
    if not math.isfinite(value) or not 1e-3 <= abs(value) < 1e6:
        return f"{value:.6g}"
    text = f"{value:.6f}"
    return text.rstrip("0").rstrip(".") if float(text) == value else text


def array_text(array: Array, most: int = MOST_ELEMENTS) -> str:
    """Write an array in full while it is small, else its shape, norm, range and mean.

    >>> array_text(np.array([[0.5, 2.0], [0.0, -1.0]]))
    '[[0.5, 2], [0, -1]]'
    >>> array_text(np.arange(100.0))
    'shape=[100] norm=573.018 min=0 max=99 mean=49.5'
    """
    if array.size > most:
        return summary(array)
    return (
        nested(array.tolist()) if array.size else f"no elements, shape={shapes.text(array.shape)}"
    )


def nested(value: Any) -> str:
    """Write a number or nested lists of numbers."""
    if isinstance(value, list):
        return f"[{', '.join(map(nested, value))}]"
    return number(value)


def summary(array: Array) -> str:
    """Write shape, norm, range and mean, and how many elements are not finite."""
    text = f"shape={shapes.text(array.shape)}"
    if array.dtype.kind == "b":
        return f"{text} true={int(array.sum())} false={int(array.size - array.sum())}"
    values = array.astype(np.float64, copy=False)
    finite = values[np.isfinite(values)]
    if finite.size:
        text += f" norm={norm(finite):g} min={finite.min():g} max={finite.max():g}"
        text += f" mean={finite.mean():g}"
    nans = int(np.isnan(values).sum())
    infinities = values.size - finite.size - nans
    text += f" nan={nans}" if nans else ""
    return text + (f" inf={infinities}" if infinities else "")


def as_json(value: Any) -> Any:
    """Return a number, an array or nested lists with NaN and infinities as strings.

    >>> as_json(np.array([1.0, np.nan, -np.inf]))
    [1.0, 'NaN', '-Infinity']
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
