"""Storage and Tensor: a buffer with a version counter, and views on it with autograd state.

Operations are not known here. The layers above attach operators, methods and `backward` to
`Tensor` from their declarations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from kael import dtypes, shapes
from kael.dtypes import DType
from kael.errors import KaelError, KaelTypeError, KaelValueError
from kael.forms import Form, form_of

if TYPE_CHECKING:
    import weakref

    from kael.engine.node import AccumulateGrad, Node
    from kael.methods import Methods
else:
    Methods = object

Array = np.ndarray[Any, Any]


class Storage:
    """What the views of one buffer share: how often it was written, and by which operation."""

    __slots__ = ("version", "writer")

    lent = False  # True where others hold the memory too, so that nobody may write into it

    version: int
    writer: str | None

    def __init__(self) -> None:
        self.version = 0
        self.writer = None


class Tensor(Methods):
    """A view on a storage, with the autograd state of a leaf or of an operation's result.

    `Tensor(array)` wraps a NumPy array without a copy and is meant for kael's own layers;
    `kael.tensor(data)` copies and is what users call.
    """

    __slots__ = (
        "__weakref__",
        "_accumulator",
        "_array",
        "_form",
        "_grad",
        "_grad_fn",
        "_storage",
    )

    # NumPy scalars and arrays on the left of an operator hand over to the tensor's operator.
    __array_ufunc__ = None

    _accumulator: weakref.ref[AccumulateGrad] | None
    _form: Form | None
    _grad_fn: Node | None
    _storage: Storage | None

    def __init__(self, array: Array, grad_fn: Node | None = None) -> None:
        self._array = array
        # Looked up when an operation first asks; until then no gradient is required.
        self._form = None if grad_fn is None else form_of(array).recorded
        self._grad_fn = grad_fn
        self._grad: Tensor | None = None
        # Made when a view, a write or a saved value first needs it: most results never do.
        self._storage = None
        self._accumulator = None

    @property
    def form(self) -> Form:
        """The shape, dtype and flag, as the one object that all equal ones share."""
        form = self._form
        if form is None:
            form = self._form = form_of(self._array)
        return form

    @property
    def storage(self) -> Storage:
        """The storage shared with every view of the same buffer."""
        storage = self._storage
        if storage is None:
            storage = self._storage = Storage()
        return storage

    @property
    def version(self) -> int:
        """How many in-place operations have written to the buffer, through any view."""
        return 0 if self._storage is None else self._storage.version

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dims."""
        shape: tuple[int, ...] = self._array.shape
        return shape

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        dtype: DType = self._array.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self._array.ndim

    def dim(self) -> int:
        """Return the number of dims."""
        return self._array.ndim

    def numel(self) -> int:
        """Return the number of elements."""
        return self._array.size

    def size(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Return the shape, or the size of one dim."""
        if dim is None:
            return self.shape
        return self.shape[shapes.wrap_dim(dim, self.ndim, "size")]

    def stride(self) -> tuple[int, ...]:
        """Return the steps between neighbours along each dim, in elements."""
        return tuple(step // self._array.itemsize for step in self._array.strides)

    def is_contiguous(self) -> bool:
        """Tell whether the elements lie in row-major order without gaps."""
        return self._array.flags.c_contiguous

    def is_floating_point(self) -> bool:
        """Tell whether the dtype is floating."""
        return bool(self._array.dtype.kind == "f")

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was made by the user and not by a recorded operation."""
        return self._grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that produced this tensor; None for a leaf."""
        return None if self._grad_fn is None else self._grad_fn.owner

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor takes part in the graph."""
        return self._form is not None and self._form.requires_grad

    @requires_grad.setter
    def requires_grad(self, required: bool) -> None:
        self.requires_grad_(required)

    def requires_grad_(self, required: object = True) -> Tensor:
        """Set the flag of a leaf.

        Raises `KaelError` when that would change the flag of a non-leaf, or ask for the gradient
        of an integer or boolean tensor.
        """
        if type(required) is not bool:
            raise KaelTypeError(f"requires_grad must be True or False, got {required!r}")
        if self._grad_fn is not None and not required:
            raise KaelError(
                "you can only change requires_grad flags of leaf tensors\n"
                "use detach() for a tensor that takes no part in the graph"
            )
        if required and self._array.dtype.kind != "f":
            raise KaelError(
                "only floating point tensors can require gradients\n"
                f"the tensor is {self._array.dtype}; convert it with to(kael.float64)"
            )
        self._form = self.form.recorded if required else self.form.plain
        return self

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf or a retained tensor; None before the first."""
        return self._grad

    @grad.setter
    def grad(self, gradient: object) -> None:
        if gradient is None:
            self._grad = None
            return
        if not isinstance(gradient, Tensor):
            kind = type(gradient).__name__
            raise KaelTypeError(f"grad must be a tensor or None, got {kind}")
        if gradient.shape != self.shape or gradient.dtype != self.dtype:
            raise KaelValueError(
                f"grad must have the tensor's shape and dtype, {shapes.text(self.shape)} and "
                f"{self.dtype}, got {shapes.text(gradient.shape)} and {gradient.dtype}"
            )
        self._grad = gradient

    def zero_grad(self) -> None:
        """Forget the accumulated gradient: `grad` is None again."""
        self._grad = None

    def detach(self) -> Tensor:
        """Return a view on the same storage without autograd state."""
        view = Tensor(self._array)
        view._storage = self.storage
        return view

    def detach_(self) -> Tensor:
        """Drop the tensor's own autograd state; graphs recorded before skip its gradient."""
        self._form = None
        self._grad = None
        self._grad_fn = None
        self._accumulator = None
        return self

    def item(self) -> float | int | bool:
        """Return the only element as a Python number; `KaelValueError` unless there is one."""
        if self._array.size != 1:
            raise KaelValueError(
                f"only a tensor of one element is a number, got shape {shapes.text(self.shape)}"
            )
        number: float | int | bool = self._array.item()
        return number

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers (a number for a 0-d tensor)."""
        return self._array.tolist()

    def numpy(self) -> Array:
        """Return a NumPy array that shares the tensor's memory and cannot be made writable.

        A write from outside would pass by the version counter; `tensor.numpy().copy()` is free.
        """
        return np.asarray(memoryview(self._array.data).toreadonly())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError("a change of dtype needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise KaelTypeError("a 0-d tensor has no length")
        return len(self._array)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise KaelValueError(
                "the truth value of a tensor with other than one element is ambiguous, "
                f"got shape {shapes.text(self.shape)}; use any() or all()"
            )
        return bool(self._array.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iu" or self._array.size != 1:
            raise KaelTypeError("only an integer tensor of one element can be an index")
        return int(self._array.item())

    def __contains__(self, value: object) -> bool:
        return bool(np.any(self._array == as_array(value)))

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self._array.ndim == 0 else repr(self)

    # Elementwise equality would make tensors useless as keys.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        with np.printoptions(precision=6, threshold=1000, edgeitems=3, linewidth=88):
            body = np.array2string(self._array, separator=", ", prefix="tensor(")
        parts = [body]
        if self._array.size == 0:
            parts.append(f"shape={shapes.text(self.shape)}")
        if self._array.dtype not in (dtypes.default_dtype(), dtypes.int64, dtypes.bool_):
            parts.append(f"dtype={self._array.dtype}")
        if self._grad_fn is not None:
            parts.append(f"grad_fn=<{self._grad_fn.name}>")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"tensor({', '.join(parts)})"

    def __copy__(self) -> Tensor:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._grad_fn is not None:
            raise KaelError(
                "only a leaf tensor can be deep-copied: a copy would lose the history; "
                "use detach() or clone()"
            )
        copied = Tensor(self._array.copy())
        copied._form = self._form
        if self._grad is not None:
            copied._grad = self._grad.__deepcopy__(memo)
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: object) -> Any:
        if self._grad_fn is not None:
            raise KaelError("only a leaf tensor can be pickled; use detach() or clone()")
        return tensor, (self._array, self._array.dtype, self.requires_grad)


def as_array(data: object, dtype: DType | None = None) -> Array:
    """Return an own NumPy copy of numbers, nested lists, arrays or tensors.

    Python floats become the default dtype, ints int64. Raises `KaelValueError` for ragged lists
    and `KaelTypeError` for what no tensor can hold.
    """
    if isinstance(data, Tensor):
        return np.array(data._array, dtype=dtype)
    try:
        array = np.array(data)
    except (ValueError, TypeError, RuntimeError) as error:
        _refuse(data, error)
    if array.dtype.kind == "O":
        _refuse(data, None)
    if dtype is None:
        own = isinstance(data, (np.ndarray, np.generic))
        dtype = dtypes.as_dtype(array.dtype) if own else _dtype_of_numbers(array)
    if array.dtype.kind not in "fiub":
        raise KaelTypeError(f"a tensor holds numbers and booleans, not {array.dtype}")
    require_fit(array, dtype)
    with np.errstate(all="ignore"):
        return array.astype(dtype, copy=False)


def shares_elements(array: Array) -> bool:
    """Tell whether elements of a tensor's array lie on one another: expanded or unfolded views."""
    # NumPy makes overlapping views read-only; the steps of an empty array say nothing.
    return bool(array.size) and (
        not array.flags.writeable
        or any(n > 1 and step == 0 for n, step in zip(array.shape, array.strides, strict=True))
    )


def require_fit(array: Array, dtype: DType) -> None:
    """Refuse fractions, NaN and what lies beyond an integer dtype: a cast would alter them."""
    if dtype.kind not in "iu" or array.dtype == dtype or array.size == 0:
        return
    if array.dtype.kind == "f" and not np.all(array == np.floor(array)):
        raise KaelValueError(f"not every value is an integer, as dtype {dtype} asks")
    limits = np.iinfo(dtype)
    for extreme in (array.min().item(), array.max().item()):
        if not limits.min <= extreme <= limits.max:
            raise KaelValueError(f"{extreme} does not fit into {dtype}")


def _dtype_of_numbers(array: Array) -> DType:
    if array.dtype.kind == "f" or array.size == 0:
        return dtypes.default_dtype()
    return dtypes.as_dtype(array.dtype)


def _refuse(data: object, error: Exception | None) -> NoReturn:
    if isinstance(data, (list, tuple)):
        raise KaelValueError(
            "the nested lists are ragged or hold something other than numbers: "
            "every list of one level needs the same length"
        ) from error
    raise KaelTypeError(f"a tensor cannot be made from {type(data).__name__}") from error


def tensor(data: object, dtype: object = None, requires_grad: bool = False) -> Tensor:
    """Return a new leaf tensor that holds a copy of `data`.

    `data` is a number, nested lists, a NumPy array or a tensor; Python floats become float64 (the
    default dtype), ints int64, NumPy arrays keep their dtype. Raises `KaelValueError` for ragged
    lists.

    >>> tensor([1.0, 2.0], requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """
    made = Tensor(as_array(data, None if dtype is None else dtypes.as_dtype(dtype)))
    return made.requires_grad_() if requires_grad else made
