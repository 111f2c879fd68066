"""In-place operations: they write into the buffer, bump its version, and never enter a graph.

With grad mode on, a write that would need its history rewritten is refused; parameter updates run
under `no_grad`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kael import dtypes, shapes
from kael.engine.grad_mode import state
from kael.errors import KaelError, KaelIndexError, KaelTypeError, KaelValueError
from kael.ops.calling import constant
from kael.ops.index import checked_items, located, points
from kael.ops.math import mul, sub
from kael.tensors import Array, Tensor, as_array, shares_elements


def check_grad_rules(target: Tensor, source: Tensor | None, name: str) -> None:
    """Refuse, with grad mode on, the three writes that a graph could not describe."""
    if not state.here.grad_enabled:
        return
    if target.requires_grad and target.is_leaf:
        raise KaelError(
            f"a leaf tensor that requires grad is being used in the in-place operation {name}\n"
            "wrap updates of parameters in no_grad()"
        )
    if target.requires_grad:
        raise KaelError(
            f"{name} is not supported on a tensor with gradient history; use the out-of-place op"
        )
    if source is not None and source.requires_grad:
        raise KaelError(f"{name} is not supported with a source that requires grad")


def check_own_memory(target: Tensor, name: str) -> None:
    """Refuse a write into a view whose elements share memory, and into a lent gradient."""
    if target._storage is not None and target._storage.lent:
        raise KaelError(
            f"{name}: a gradient handed to a backward may be held by others too; clone() it first"
        )
    if shares_elements(target._array):
        raise KaelError(
            f"{name}: elements of the tensor share memory; clone() it first\n"
            f"it is an expanded or unfolded view of shape {shapes.text(target.shape)}"
        )


def write(target: Tensor, name: str, store: Callable[[Array], None]) -> Tensor:
    """Let `store` write into the buffer, then bump the version that all its views share."""
    check_own_memory(target, name)
    try:
        state.here.run(store, target._array)
    except KaelError:
        raise
    except IndexError as error:
        raise KaelIndexError(f"{name}: {error}") from error
    except (ValueError, TypeError) as error:
        raise KaelValueError(f"{name}: {error}") from error
    storage = target.storage
    storage.version += 1
    storage.writer = name
    return target


def _source(target: Tensor, value: Any, name: str, real: bool = False) -> Tensor:
    """Return the source as a tensor whose values fit the target's shape and kind of dtype."""
    if isinstance(value, (int, float)):
        source = constant(value, target.dtype)
    else:
        source = value if isinstance(value, Tensor) else Tensor(as_array(value))
    check_grad_rules(target, source, name)
    _check_kind(target, source, name, real)
    if shapes.broadcast(name, target.shape, source.shape) != target.shape:
        raise KaelValueError(
            f"{name}: shape {shapes.text(source.shape)} does not broadcast to the tensor's "
            f"shape {shapes.text(target.shape)}"
        )
    return source


def _check_kind(target: Tensor, source: Tensor, name: str, real: bool = False) -> None:
    """Refuse a real result in an integer tensor, and an integer one in a boolean tensor."""
    kind = "f" if real else source.dtype.kind
    if "biuf".index(kind) > "biuf".index(target.dtype.kind):
        raise KaelTypeError(
            f"{name}: a result of dtype {source.dtype} does not fit into a tensor of dtype "
            f"{target.dtype}; convert it with to()"
        )


def _arithmetic(
    name: str, ufunc: np.ufunc, doc: str, real: bool = False
) -> Callable[[Tensor, Any], Tensor]:
    def method(self: Tensor, other: Any) -> Tensor:
        source = _source(self, other, name, real)._array
        return write(self, name, lambda array: _into(ufunc, array, source))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    return method


def _into(ufunc: np.ufunc, array: Array, source: Array) -> None:
    ufunc(array, source, out=array, casting="unsafe")


def _scaled(name: str, ufunc: np.ufunc, doc: str) -> Callable[..., Tensor]:
    plain = _arithmetic(name, ufunc, doc)

    def method(self: Tensor, other: Any, alpha: float = 1) -> Tensor:
        if not isinstance(alpha, (int, float)):
            raise KaelTypeError(f"{name}: alpha must be a number, got {alpha!r}")
        if ufunc is np.subtract and self._array.dtype.kind == "b":
            raise KaelTypeError(f"{name} takes no booleans; {sub.booleans}")
        return plain(self, other if alpha == 1 else mul(other, alpha))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    return method


add_ = _scaled("add_", np.add, "Add `alpha` times `other` in place.")
sub_ = _scaled("sub_", np.subtract, "Subtract `alpha` times `other` in place.")
mul_ = _arithmetic("mul_", np.multiply, "Multiply by `other` in place.")
div_ = _arithmetic("div_", np.divide, "Divide by `other` in place.", real=True)


def copy_(self: Tensor, source: Any) -> Tensor:
    """Write `source`, broadcast and cast to the tensor's dtype."""
    given = source if isinstance(source, Tensor) else Tensor(as_array(source))
    check_grad_rules(self, given, "copy_")
    if shapes.broadcast("copy_", self.shape, given.shape) != self.shape:
        raise KaelValueError(
            f"copy_: shape {shapes.text(given.shape)} does not broadcast to "
            f"{shapes.text(self.shape)}"
        )
    values = given._array
    return write(self, "copy_", lambda array: np.copyto(array, values, casting="unsafe"))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element to the number `value`."""
    source = _source(self, value, "fill_")
    if source.ndim:
        raise KaelValueError(f"fill_ takes a number, got shape {shapes.text(source.shape)}")
    return write(self, "fill_", lambda array: array.fill(source._array.item()))


def zero_(self: Tensor) -> Tensor:
    """Set every element to 0."""
    check_grad_rules(self, None, "zero_")
    return write(self, "zero_", lambda array: array.fill(0))


def clamp_(self: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """Limit every element to `min` and `max`."""
    check_grad_rules(self, None, "clamp_")
    if min is None and max is None:
        raise KaelValueError("clamp_ needs min, max or both")
    for bound in (min, max):
        if bound is not None:
            _source(self, bound, "clamp_")
    return write(self, "clamp_", lambda array: _clip(array, min, max))


def _clip(array: Array, low: float | None, high: float | None) -> None:
    np.clip(array, low, high, out=array)


def masked_fill_(self: Tensor, mask: Any, value: Any) -> Tensor:
    """Set the elements where `mask` is True to the number `value`."""
    where = mask if isinstance(mask, Tensor) else Tensor(as_array(mask))
    if where.dtype != dtypes.bool_:
        raise KaelTypeError(f"masked_fill_: the mask must be boolean, got {where.dtype}")
    source = _source(self, value, "masked_fill_")
    if shapes.broadcast("masked_fill_", self.shape, where.shape) != self.shape:
        raise KaelValueError(
            f"masked_fill_: mask of shape {shapes.text(where.shape)} does not broadcast to "
            f"{shapes.text(self.shape)}"
        )
    masked = where._array
    return write(self, "masked_fill_", lambda array: np.copyto(array, source._array, where=masked))


def index_add_(self: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """Add slices of `source` to the slices that `index` names along `dim`; repeats add up."""
    from kael.ops.positions import index_add

    given = source if isinstance(source, Tensor) else Tensor(as_array(source))
    check_grad_rules(self, given, "index_add_")
    return _replaced(self, "index_add_", index_add(self.detach(), dim, index, given.detach()))


def scatter_add_(self: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """Add each element of `src` at the place that `index` names along `dim`; repeats add up."""
    from kael.ops.positions import scatter_add

    given = src if isinstance(src, Tensor) else Tensor(as_array(src))
    check_grad_rules(self, given, "scatter_add_")
    return _replaced(self, "scatter_add_", scatter_add(self.detach(), dim, index, given.detach()))


def _replaced(self: Tensor, name: str, result: Tensor) -> Tensor:
    values = result._array
    return write(self, name, lambda array: np.copyto(array, values, casting="unsafe"))


def setitem(self: Tensor, items: Any, value: Any) -> None:
    """Write `value`, broadcast, at an index, slice, mask or index tensor."""
    source = _source_of_item(self, value)
    check_grad_rules(self, source, "__setitem__")
    if source.dtype.kind == "f":  # an integer 0 or 1 may be written into a mask
        _check_kind(self, source, "__setitem__")
    view, read = located(self.detach(), items)
    at = points(checked_items(view, read)) if read else ...
    values = source._array

    def store(array: Array) -> None:
        view._array[at] = values

    write(self, "__setitem__", store)


def _source_of_item(self: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    given = as_array(value)
    if given.dtype.kind == "f" and self.dtype.kind != "f":
        return Tensor(given)
    if isinstance(value, (int, float)) or self.dtype.kind == "f":
        return Tensor(as_array(given, self.dtype))
    return Tensor(given)


METHODS: dict[str, Callable[..., Any]] = {
    "add_": add_,
    "sub_": sub_,
    "mul_": mul_,
    "div_": div_,
    "copy_": copy_,
    "fill_": fill_,
    "zero_": zero_,
    "clamp_": clamp_,
    "masked_fill_": masked_fill_,
    "index_add_": index_add_,
    "scatter_add_": scatter_add_,
    "__setitem__": setitem,
    "__iadd__": add_,
    "__isub__": sub_,
    "__imul__": mul_,
    "__itruediv__": div_,
}
