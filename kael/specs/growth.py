"""How many elements a result would have, told before memory is taken for it.

Only what can give more elements than it takes has a rule here; sizes that do not fit together are
left for the operation itself to refuse.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from kael.errors import KaelError
from kael.tensors import Tensor


class Refused(KaelError):
    """An operand or a result that the expression language does not take."""


def operand_shape(symbol: str, left: Any, right: Any) -> tuple[int, ...]:
    """Return the shape that two operands would give, as far as it can be told."""
    first = left.shape if isinstance(left, Tensor) else ()
    second = right.shape if isinstance(right, Tensor) else ()
    if symbol == "@":
        return matmul_shape(first, second)
    return first if first == second else broadcast(first, second)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the broadcast shape; sizes that do not fit are left for the operation to refuse."""
    ndim = max(map(len, shapes), default=0)
    padded = [(1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(0 if 0 in sizes else max(sizes) for sizes in zip(*padded, strict=True))


def matmul_shape(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a matrix product."""
    rows, columns = first[-2:-1], second[-1:] if len(second) > 1 else ()
    return broadcast(first[:-2], second[:-2]) + rows + columns


def check_elements(shape: tuple[int, ...], limit: int, name: str) -> None:
    """Refuse a result over the memory limit.

    Raises `Refused`.
    """
    if math.prod(shape) > limit:
        raise Refused(
            f"{name} would give {math.prod(shape):,} elements, more than the limit of {limit:,}; "
            f"--max-elements raises it"
        )


def operation_shape(name: str, values: list[Any]) -> tuple[int, ...] | None:
    """Return the shape an operation that can give more elements than it takes would give.

    None where the operation is none of those, or its arguments are not understood: the operation
    refuses them itself.
    """
    rule = GROWING.get(name)
    try:
        return None if rule is None else rule(*values)
    except (TypeError, ValueError, LookupError, AttributeError):
        return None


def sizes_of(values: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes given one by one or as one list."""
    sizes = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
    return tuple(abs(operator.index(size)) for size in sizes)


def joined(tensors: Any, dim: int = 0, **_: Any) -> tuple[int, ...]:
    """Return a shape of as many elements as the tensors of a list have."""
    return (sum(math.prod(tensor.shape) for tensor in tensors),)


def expanded(x: Any, *sizes: Any) -> tuple[int, ...]:
    """Return the shape of `expand`, in which -1 keeps a size."""
    return broadcast(x.shape, sizes_of(sizes))


def repeated(x: Any, *sizes: Any) -> tuple[int, ...]:
    """Return a shape of as many elements as `repeat` and `tile` give."""
    return (math.prod(x.shape), *sizes_of(sizes))


def paired(first: Any, second: Any, *_: Any) -> tuple[int, ...]:
    """Return the shape of an outer product."""
    return (*first.shape, *second.shape)


def product(first: Any, second: Any, *_: Any) -> tuple[int, ...]:
    """Return the shape of a matrix product of two tensors."""
    return matmul_shape(first.shape, second.shape)


def one_hot(x: Any, classes: int = -1, *_: Any) -> tuple[int, ...]:
    """Return the shape of `one_hot`."""
    return (*x.shape, classes if classes > 0 else int(np.max(x.numpy(), initial=0)) + 1)


def padded(x: Any, widths: Any, *_: Any) -> tuple[int, ...]:
    """Return the shape of `pad`, whose widths start at the last dim."""
    shape = list(x.shape)
    for at, width in enumerate(widths):
        shape[-1 - at // 2] += operator.index(width)
    return tuple(max(size, 0) for size in shape)


def contracted(equation: Any, *tensors: Any) -> tuple[int, ...]:
    """Return the shape of `einsum`, from the letters of its output."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    terms, arrow, output = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    hidden: list[tuple[int, ...]] = []
    for term, tensor in zip(terms.split(","), tensors, strict=True):
        before, dots, after = term.partition("...")
        end = tensor.ndim - len(after)
        if dots:
            hidden.append(tensor.shape[len(before) : end])
        named = tensor.shape[: len(before)] + tensor.shape[end:] if dots else tensor.shape
        sizes |= dict(zip(before + after, named, strict=True))
    if not arrow:
        output = "..." + "".join(letter for letter in sizes if terms.count(letter) == 1)
    front = broadcast(*hidden) if "..." in output else ()
    return (*front, *(sizes[letter] for letter in output.replace("...", "")))


def tensordot(first: Any, second: Any, dims: Any = 2, *_: Any) -> tuple[int, ...]:
    """Return the shape of `tensordot`."""
    if isinstance(dims, int):
        return (*first.shape[: first.ndim - dims], *second.shape[dims:])
    left = [
        size for at, size in enumerate(first.shape) if at not in {d % first.ndim for d in dims[0]}
    ]
    right = [
        size for at, size in enumerate(second.shape) if at not in {d % second.ndim for d in dims[1]}
    ]
    return (*left, *right)


def selected(x: Any, dim: int, index: Any) -> tuple[int, ...]:
    """Return the shape of `index_select`."""
    shape = list(x.shape)
    shape[dim] = math.prod(getattr(index, "shape", (len(index),)))
    return tuple(shape)


def together(*operands: Any) -> tuple[int, ...]:
    """Return the shape that the tensors of a call broadcast to."""
    return broadcast(*(operand.shape for operand in operands if isinstance(operand, Tensor)))


def linear(x: Any, weight: Any, *_: Any) -> tuple[int, ...]:
    """Return the shape of `linear`."""
    return (*x.shape[:-1], *weight.shape[:-1])


def convolved(x: Any, weight: Any, *rest: Any) -> tuple[int, ...]:
    """Return a shape of at least as many elements as a convolution's padded input and output."""
    numbers = [n for value in rest for n in (value if isinstance(value, tuple) else (value,))]
    widest = max((n for n in numbers if isinstance(n, int)), default=0)
    space = (size + 2 * widest for size in x.shape[2:])
    return (x.shape[0], max(x.shape[1], weight.shape[0]), *space)


def unfolded(x: Any, dim: int, size: int, step: int) -> tuple[int, ...]:
    """Return the shape of `unfold`, windows along a dim."""
    shape = list(x.shape)
    shape[dim] = (shape[dim] - size) // step + 1
    return (*shape, size)


GROWING: dict[str, Callable[..., tuple[int, ...]]] = {
    "cat": joined,
    "stack": joined,
    "expand": expanded,
    "repeat": repeated,
    "tile": repeated,
    "outer": paired,
    "matmul": product,
    "mm": product,
    "bmm": product,
    "one_hot": one_hot,
    "pad": padded,
    "einsum": contracted,
    "tensordot": tensordot,
    "index_select": selected,
    "unfold": unfolded,
    "linear": linear,
    "conv1d": convolved,
    "conv2d": convolved,
    "convolution": convolved,
}
GROWING |= dict.fromkeys(
    (
        "binary_cross_entropy_with_logits",
        "huber_loss",
        "kl_div",
        "l1_loss",
        "mse_loss",
        "smooth_l1_loss",
    ),
    together,
)


def index_shape(shape: tuple[int, ...], items: tuple[Any, ...]) -> tuple[int, ...]:
    """Return a shape of as many elements as indexing with integer tensors gives, or of fewer."""
    arrays = [item for item in items if isinstance(item, (Tensor, list))]
    if not arrays or any(isinstance(item, Tensor) and item.dtype.kind == "b" for item in arrays):
        return ()
    picked = broadcast(*(np.shape(item.numpy() if isinstance(item, Tensor) else item)
                         for item in arrays))  # fmt: skip
    front = all(item is arrays[at] for at, item in enumerate(items[: len(arrays)]))
    return (*picked, *shape[len(items) :]) if front else picked
