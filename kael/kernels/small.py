"""Kernels for a few entries, each made for operands of one form.

A ufunc that broadcasts or reduces sets up NumPy's general iterator, which takes three times longer
than the arithmetic on a few entries and drives other code out of the processor's cache; `take` and
`dot` do without. What they need (where a spread entry comes from, ones to sum with) follows from
shapes alone, so it is made once. A function here takes forms and plain arguments and returns
kernels that take arrays, or None where NumPy's own way is as good.

Sums by `dot` round in another order than NumPy's; a broadcast gives the same bits. Results lie in
memory as NumPy's would: row by row here, so operands that lie otherwise are left to NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kael.forms import Form
from kael.kernels import reductions, rows
from kael.kernels.axes import Array
from kael.kernels.rows import check_index

ENTRIES = 512
"""An array of up to this many entries is small."""

Shape = tuple[int, ...]
Kernel = Callable[..., Any]
Summing = Callable[[Array], Any]
Made = tuple[Kernel, tuple[Kernel | None, ...]] | None
"""A forward kernel, and what computes the gradient of each operand."""


def is_small(form: Form) -> bool:
    """Tell whether an operand is floating, has a dim and an entry, and few of them."""
    return form.floating and bool(form.shape) and 0 < form.entries <= ENTRIES


def spreads(one: Form, other: Form) -> tuple[Array | None, Array | None]:
    """Where `take` finds the entries of each of two operands once they are broadcast together.

    None for one that needs no broadcasting, or is not small. Only an operand that extends along one
    dim at most is spread, since its own order in memory says nothing of the result's.
    """
    if one.shape == other.shape or not (is_small(one) and is_small(other)):
        return None, None
    try:
        shape = np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return None, None
    if math.prod(shape) > ENTRIES:
        return None, None
    spread = [form.shape for form in (one, other) if form.shape != shape]
    if any(len(own) - own.count(1) > 1 for own in spread):
        return None, None
    return (
        None if one.shape == shape else positions(one.shape, shape),
        None if other.shape == shape else positions(other.shape, shape),
    )


def summings(forms: Sequence[Form], needs: Sequence[bool]) -> tuple[Summing | None, ...]:
    """For each operand that needs a gradient, what sums it to the operand's shape."""
    dtype = forms[0].dtype
    try:
        shape = np.broadcast_shapes(*[form.shape for form in forms])
    except ValueError:
        return (None,) * len(forms)
    alike = all(form.dtype is dtype for form in forms)
    return tuple(
        summing(shape, form.shape, dtype) if needed and alike else None
        for form, needed in zip(forms, needs, strict=True)
    )


def summing(shape: Shape, target: Shape, dtype: np.dtype[Any]) -> Summing | None:
    """What sums a gradient of `shape` to `target`, from which it was broadcast.

    A gradient of another shape is handed back as it is.
    """
    count = math.prod(shape)
    if shape == target or dtype.kind != "f" or not 0 < count <= ENTRIES:
        return None
    if not target:
        every = np.ones(count, dtype)
        return lambda g: np.asarray(g.ravel().dot(every)) if g.shape == shape else g
    lead = len(shape) - len(target)
    if lead == 1 and len(shape) == 2 and shape[1:] == target:
        ones = np.ones(shape[0], dtype)
        return lambda g: ones.dot(g) if g.shape == shape else g
    if not lead and target[:-1] == shape[:-1]:
        ones = np.ones(shape[-1], dtype)
        return lambda g: g.dot(ones).reshape(target) if g.shape == shape else g
    return None


def matmul(x: Form, other: Form) -> Made:
    """The kernels of the product of two matrices."""
    if not len(x.shape) == len(other.shape) == 2 or x.shape[1] != other.shape[0]:
        return None
    if not (is_small(x) and is_small(other) and x.dtype is other.dtype):
        return None

    def left(g: Array, x_shape: Shape, other: Array) -> Any:
        return g.dot(other.T)

    def right(g: Array, x: Array, other_shape: Shape) -> Any:
        return x.T.dot(g)

    return np.ndarray.dot, (left, right)


def log_softmax(x: Form, dim: int) -> Made:
    """The kernels of log_softmax along the last of several dims."""
    if not is_small(x) or not 0 < dim == len(x.shape) - 1:
        return None
    spread, starts, ones = _row_helpers(x)
    subtract, add, multiply, exp, log = np.subtract, np.add, np.multiply, np.exp, np.log

    def forward(x: Array, dim: int) -> Any:
        if not x.flags.c_contiguous:
            return rows.log_softmax(x, dim)
        top = x.take(add(x.argmax(-1), starts))  # at the first NaN, if any
        out = subtract(x, top.take(spread))
        return subtract(out, log(exp(out).dot(ones)).take(spread), out)

    def backward(g: Array, out: Array, dim: int) -> Any:
        slope = exp(out)
        multiply(slope, g.dot(ones).take(spread), slope)
        return subtract(g, slope, slope)

    return forward, (backward,)


def softmax(x: Form, dim: int) -> Made:
    """The kernels of softmax along the last of several dims."""
    if not is_small(x) or not 0 < dim == len(x.shape) - 1:
        return None
    spread, starts, ones = _row_helpers(x)
    subtract, add, multiply, exp = np.subtract, np.add, np.multiply, np.exp

    def forward(x: Array, dim: int) -> Any:
        if not x.flags.c_contiguous:
            return rows.softmax(x, dim)
        top = x.take(add(x.argmax(-1), starts))
        out = subtract(x, top.take(spread))
        exp(out, out)
        return np.divide(out, out.dot(ones).take(spread), out)

    def backward(g: Array, out: Array, dim: int) -> Any:
        weighted = multiply(g, out)
        return subtract(weighted, multiply(out, weighted.dot(ones).take(spread)), weighted)

    return forward, (backward,)


def sum(x: Form, dim: Shape, keepdim: bool) -> Made:
    """The kernels of a sum over all dims, the last or, of a matrix, the first."""
    return _reduction(x, dim, keepdim, None, reductions.sum)


def mean(x: Form, dim: Shape, keepdim: bool) -> Made:
    """The kernels of a mean over all dims, the last or, of a matrix, the first."""
    return _reduction(x, dim, keepdim, math.prod([x.shape[d] for d in dim]), reductions.mean)


def _reduction(x: Form, dim: Shape, keepdim: bool, divisor: int | None, general: Kernel) -> Made:
    if not is_small(x):
        return None
    shape, ndim, dtype = x.shape, len(x.shape), x.dtype
    kept = tuple([1 if d in dim else n for d, n in enumerate(shape)])
    asarray, empty, divide = np.asarray, np.empty, np.divide
    by = None if divisor is None else np.array(divisor, dtype)
    if len(dim) == ndim:
        every = np.ones(math.prod(shape), dtype)

        def whole(x: Array, dim: Shape, keepdim: bool) -> Any:
            total = x.ravel().dot(every)  # a NumPy scalar, which divides sooner than an array
            total = asarray(total if by is None else total / divisor)
            return total.reshape(kept) if keepdim else total

        def fill(g: Array, x_shape: Shape, dim: Shape, keepdim: bool) -> Any:
            out = empty(shape, dtype)
            out.fill(g.item() if by is None else g.item() / divisor)
            return out

        return whole, (fill,)
    if dim == (ndim - 1,):
        ones, last = np.ones(shape[-1], dtype), True
    elif dim == (0,) and ndim == 2:
        ones, last = np.ones(shape[0], dtype), False
    else:
        return None
    spread = positions(kept, shape)

    def along(x: Array, dim: Shape, keepdim: bool) -> Any:
        if ndim > 2 and not x.flags.c_contiguous:
            return general(x, dim, keepdim)
        total = x.dot(ones) if last else ones.dot(x)
        if by is not None:
            divide(total, by, total)
        return total.reshape(kept) if keepdim else total

    def back(g: Array, x_shape: Shape, dim: Shape, keepdim: bool) -> Any:
        return (g if by is None else divide(g, by)).take(spread)

    return along, (back,)


def gather(x: Form, index: Form, dim: int) -> Made:
    """The kernels of gather, by an index that reads no entry twice in the backward's sums."""
    if not is_small(x) or index.dtype.kind not in "iu" or not 0 < index.entries <= ENTRIES:
        return None
    if len(index.shape) != len(x.shape) or index.shape[dim] != 1:
        return None  # or the gradients of repeated entries would have to be summed
    shape, dtype, size = x.shape, x.dtype, x.shape[dim]
    steps = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    starts = np.zeros(index.shape, np.intp)
    for d, at in enumerate(np.indices(index.shape, sparse=True)):
        if d != dim:
            starts += at * steps[d]
    step = steps[dim]
    add, zeros = np.add, np.zeros

    def places(index: Array) -> Any:
        if step != 1:
            index = index.astype(np.intp) * step  # beyond what a narrow integer holds
        return add(index, starts)

    def forward(x: Array, index: Array, dim: int) -> Any:
        check_index("gather", index, size, "index", dim)
        return x.take(places(index))

    def backward(g: Array, x_shape: Shape, dim: int, index: Array) -> Any:
        out = zeros(shape, dtype)
        out.put(places(index), g)
        return out

    return forward, (backward, None)


def positions(shape: Shape, target: Shape) -> Array:
    """Where each entry of `target` stands in a row-major array of `shape` that broadcasts to it.

    >>> positions((2, 1), (2, 3))
    array([[0, 0, 0],
           [1, 1, 1]])
    """
    at = np.arange(math.prod(shape)).reshape(shape)
    return np.array(np.broadcast_to(at, target), order="C")


def _row_helpers(x: Form) -> tuple[Array, Array, Array]:
    """Where a number a row spreads to, where each row begins, and ones to sum a row with."""
    shape = x.shape
    starts = np.arange(0, math.prod(shape), shape[-1]).reshape(shape[:-1])
    return positions((*shape[:-1], 1), shape), starts, np.ones(shape[-1], x.dtype)
