"""What an operand is before its values: shape, dtype, and whether it requires a gradient.

Equal forms are one object, so an operation finds what it has prepared for operands of some forms
by one look-up of identities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kael.dtypes import DType

Array = np.ndarray[Any, Any]

_KEPT = 4096
_plain: dict[tuple[tuple[int, ...], DType], Form] = {}


class Form:
    """The shape and dtype of an array, and whether its tensor requires a gradient.

    `plain` and `recorded` are the same without and with a gradient; each form has both.
    """

    __slots__ = (
        "dtype",
        "entries",
        "floating",
        "nbytes",
        "plain",
        "recorded",
        "requires_grad",
        "shape",
    )

    def __init__(self, shape: tuple[int, ...], dtype: DType, plain: Form | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.entries = math.prod(shape)
        self.nbytes = self.entries * dtype.itemsize
        self.floating = dtype.kind == "f"
        self.requires_grad = plain is not None
        self.plain: Form = plain or self
        self.recorded: Form = self if plain else Form(shape, dtype, self)

    def __repr__(self) -> str:
        return f"<form {self.dtype}{list(self.shape)}{' recorded' if self.requires_grad else ''}>"


def form_of(array: Array) -> Form:
    """Return the form of an array whose tensor requires no gradient."""
    key = (array.shape, array.dtype)
    form = _plain.get(key)
    if form is None:
        if len(_plain) >= _KEPT:  # forms that are in use live on; they only match no new ones
            _plain.clear()
        form = _plain.setdefault(key, Form(*key))
    return form
