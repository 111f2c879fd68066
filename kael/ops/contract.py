"""Sums of products over named indices: einsum, and tensordot, which is spelled with it."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from kael import shapes
from kael.engine.node import sum_to_shape
from kael.errors import KaelIndexError, KaelTypeError, KaelValueError
from kael.ops.arguments import Arguments, Shapes
from kael.ops.declare import Operation, composite
from kael.ops.samples import Sample, normal
from kael.tensors import Tensor, as_array

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


def _prepare_einsum(inputs: tuple[Tensor, ...], arguments: Arguments) -> Arguments:
    """Return the equation written out: no spaces, no ellipsis, and with its result."""
    equation = arguments[0]
    if not isinstance(equation, str):
        raise KaelTypeError(
            f"einsum: the equation comes first, as a string, got {type(equation).__name__}"
        )
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(inputs):
        raise KaelValueError(
            f"einsum: the equation {equation!r} has {len(terms)} operands, got {len(inputs)}"
        )
    if not arrow:
        right = ("..." if "..." in left else "") + "".join(
            letter for letter in sorted(set(left) - {",", "."}) if left.count(letter) == 1
        )
    spare = [letter for letter in ascii_letters if letter not in equation]
    extra = [t.ndim - len(term.replace("...", "")) for t, term in zip(inputs, terms, strict=True)]
    hidden = max((n for n, term in zip(extra, terms, strict=True) if "..." in term), default=0)
    dots = "".join(spare[:hidden])
    full = [
        term.replace("...", dots[hidden - n :] if n > 0 else "")
        for n, term in zip(extra, terms, strict=True)
    ]
    _check_equation(equation, full, right.replace("...", dots), inputs)
    return (f"{','.join(full)}->{right.replace('...', dots)}",)


def _check_equation(
    equation: str, terms: Sequence[str], result: str, inputs: tuple[Tensor, ...]
) -> None:
    sizes: dict[str, int] = {}
    for position, (term, tensor) in enumerate(zip(terms, inputs, strict=True)):
        if len(term) != tensor.ndim or not (term.isascii() and (term.isalpha() or not term)):
            raise KaelValueError(
                f"einsum: operand {position} of {equation!r} names {len(term)} dims, and shape "
                f"{shapes.text(tensor.shape)} has {tensor.ndim}"
            )
        for letter, size in zip(term, tensor.shape, strict=True):
            known = sizes.setdefault(letter, size)
            if known != size and 1 not in (known, size):
                raise KaelValueError(
                    f"einsum: {letter!r} of {equation!r} stands for sizes {known} and {size} in "
                    f"shapes {' and '.join(shapes.text(t.shape) for t in inputs)}"
                )
            sizes[letter] = max(known, size) if 0 not in (known, size) else 0
    for letter in result:
        if letter not in sizes or result.count(letter) > 1:
            raise KaelValueError(
                f"einsum: {letter!r} in the result of {equation!r} must stand in an operand, and "
                "once in the result"
            )


def _einsum(arrays: Sequence[Array], equation: str) -> Array:
    out = np.asarray(np.einsum(equation, *arrays, optimize=len(arrays) > 1))
    # Of one operand NumPy gives a view where nothing has to be summed.
    return out.copy() if len(arrays) == 1 and np.may_share_memory(out, arrays[0]) else out


def _einsum_backward(
    g: Array, operands: Sequence[Array], operands_dtype: Sequence[Any], equation: str,
    needs: Sequence[bool],
) -> tuple[Array | None, ...]:  # fmt: skip
    return tuple(
        _gradient_of(position, g, operands, equation).astype(dtype, copy=False) if needed else None
        for position, (dtype, needed) in enumerate(zip(operands_dtype, needs, strict=True))
    )


def _gradient_of(position: int, g: Array, operands: Sequence[Array], equation: str) -> Array:
    """Contract g with the other operands to the operand's own indices.

    An index that the operand alone has was summed, so its gradient is the same all along it; one
    it names twice was a diagonal, so the gradient goes there.
    """
    left, _, result = equation.partition("->")
    terms = left.split(",")
    own, shape = terms[position], operands[position].shape
    others = [(t, a) for i, (t, a) in enumerate(zip(terms, operands, strict=True)) if i != position]
    met = result + "".join(term for term, _ in others)
    sizes = _sizes(terms, operands)
    letters = "".join(dict.fromkeys(own))
    reached = "".join(letter for letter in letters if letter in met)
    given = ",".join([result, *(term for term, _ in others)])
    inner = _einsum([g, *(array for _, array in others)], f"{given}->{reached}")
    spread = inner.reshape([sizes[n] if n in reached else 1 for n in letters])
    spread = np.broadcast_to(spread, [sizes[n] for n in letters])
    # Sizes of 1 that met larger ones were broadcast.
    kept = [shape[own.index(letter)] for letter in letters]
    spread = sum_to_shape(spread, tuple(kept))
    if letters == own:
        return spread
    out = np.zeros(shape, spread.dtype)
    places = np.ix_(*(np.arange(n) for n in kept))
    out[tuple(places[letters.index(letter)] for letter in own)] = spread
    return out


def _sizes(terms: Sequence[str], operands: Sequence[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, array in zip(terms, operands, strict=True):
        for letter, size in zip(term, array.shape, strict=True):
            sizes[letter] = size if sizes.get(letter, 1) == 1 else sizes[letter]
    return sizes


def _einsum_batch(arguments: Arguments, _: Shapes) -> Arguments | None:
    left, _, result = arguments[0].partition("->")
    free = next((letter for letter in ascii_letters if letter not in arguments[0]), None)
    if free is None:
        return None
    return (f"{','.join(free + term for term in left.split(','))}->{free}{result}",)


einsum = Operation(
    "einsum(equation, *operands[])", _einsum,
    joint=_einsum_backward, joint_inputs=("operands",),
    text={"operands": "g contracted with the other operands to the operand's own indices"},
    prose=True, prepare=_prepare_einsum, promotes=("operands",), strings=("equation",),
    batch=_einsum_batch, analytic=True, method=False,
    samples=lambda rng: [
        Sample(tuple(normal(rng, shape) for shape in given), {"equation": equation})
        for equation, given in (
            ("ij,jk->ik", ((2, 3), (3, 4))), ("ij->ji", ((2, 3),)), ("ij->", ((2, 3),)),
            ("ii->i", ((3, 3),)), ("ii", ((3, 3),)), ("i,j->ij", ((2,), (3,))),
            ("...ij,...jk->...ik", ((2, 2, 3), (3, 2))), ("ij,jk,kl", ((2, 3), (3, 2), (2, 2))),
            ("ij,ij->i", ((2, 3), (1, 3))), ("ijk->j", ((2, 3, 2),)), ("iij->j", ((2, 2, 3),)),
        )
    ],
    family="linalg",
    doc="Return the sum of products that an equation over named indices states.",
)  # fmt: skip


@composite(
    "tensordot(x, other, dims=2)", family="linalg",
    doc="Return the product summed over the last dims of x and the first of other, or over lists.",
)  # fmt: skip
def tensordot(x: Any, other: Any, dims: Any = 2) -> Tensor:
    left = x if isinstance(x, Tensor) else Tensor(as_array(x))
    right = other if isinstance(other, Tensor) else Tensor(as_array(other))
    ours, theirs = _contracted(left, right, dims)
    names = ascii_letters[: left.ndim + right.ndim]
    first, second = list(names[: left.ndim]), list(names[left.ndim :])
    for a, b in zip(ours, theirs, strict=True):
        if left.shape[a] != right.shape[b]:
            raise KaelValueError(
                f"tensordot: shapes {shapes.text(left.shape)} and {shapes.text(right.shape)} do "
                f"not match: sizes {left.shape[a]} and {right.shape[b]} are summed together"
            )
        second[b] = first[a]
    kept = [n for n in first if n not in second] + [n for n in second if n not in first]
    return einsum(f"{''.join(first)},{''.join(second)}->{''.join(kept)}", left, right)


def _contracted(left: Tensor, right: Tensor, dims: Any) -> tuple[Dims, Dims]:
    if isinstance(dims, (list, tuple)):
        if len(dims) == 2 and 0 in (left.ndim, right.ndim) and list(dims) != [[], []]:
            raise KaelIndexError("tensordot: a 0-d tensor has no dim to sum over")
        if len(dims) != 2:
            raise KaelValueError("tensordot: dims is a number, or a list of dims for each operand")
        ours, theirs = (
            tuple(shapes.wrap_dim(d, t.ndim, "tensordot") for d in shapes.as_sizes(of, "tensordot"))
            for of, t in zip(dims, (left, right), strict=True)
        )
        if len(ours) != len(theirs) or len({*ours}) != len(ours) or len({*theirs}) != len(theirs):
            raise KaelValueError(
                f"tensordot: {shapes.text(ours)} and {shapes.text(theirs)} must name as many "
                "different dims"
            )
        return ours, theirs
    count = shapes.as_index(dims, "tensordot", "dims")
    if not 0 <= count <= min(left.ndim, right.ndim):
        raise KaelValueError(
            f"tensordot: {count} dims cannot be summed over in shapes {shapes.text(left.shape)} "
            f"and {shapes.text(right.shape)}"
        )
    return tuple(range(left.ndim - count, left.ndim)), tuple(range(count))
