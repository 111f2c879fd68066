"""Where a formula without a finite value at the given point first went wrong."""

from __future__ import annotations

import numpy as np

from kael.checker import batch
from kael.checker.model import Floats
from kael.checker.subject import Subject, TensorSubject
from kael.engine.grad_mode import no_grad, observing


def sentence(subject: Subject, value: Floats) -> str:
    """What is not finite, at which element, and the operation that made it so."""
    kind = "NaN" if np.isnan(value).any() else "infinite"
    message = f"the output is {kind} at the given point"
    if subject.output_shape:
        at = int(np.flatnonzero(~np.isfinite(value))[0])
        index = np.unravel_index(at, subject.output_shape)
        message += f", at element {[int(i) for i in index]}"
    origin = _first_not_finite(subject)
    return f"{message} ({origin})" if origin else message


def _first_not_finite(subject: Subject) -> str | None:
    """The operation that first made a value that is not finite out of finite ones."""
    if not isinstance(subject, TensorSubject):
        return None
    for name, array in zip(subject.names, subject.originals, strict=True):
        if not np.isfinite(array).all():
            return f"input {name} is not finite"
    recording = batch.Recording(())
    with no_grad(), observing(recording):
        subject.function(*subject.inputs)
    for op, operands, _, output in recording.observed:
        finite = all(np.isfinite(x._array).all() for x in operands if x._array.dtype.kind == "f")
        if finite and output._array.dtype.kind == "f" and not np.isfinite(output._array).all():
            at = int(np.flatnonzero(~np.isfinite(output._array))[0])
            given = [f"{x._array.reshape(-1)[at]:.6g}" for x in operands if x.shape == output.shape]
            name = getattr(op, "name", getattr(op, "__name__", "?"))
            return f"{name}({', '.join(given)})" if given else str(name)
    return None
