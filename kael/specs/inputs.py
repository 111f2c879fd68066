"""The inputs of a spec: values, generators with streams of their own, and files.

An `Input` says where an array comes from; `array` makes it. Whether it takes part in the graph
follows from its dtype: only floating inputs can require a gradient.
"""

import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from kael import dtypes
from kael.errors import KaelError
from kael.specs.literals import Nested, PythonReader, read_nested
from kael.specs.place import Place, SpecError
from kael.specs.spelling import did_you_mean
from kael.tensors import Tensor

Array = np.ndarray[Any, Any]

INITS = ("normal", "uniform", "zeros", "ones", "arange")
FIELDS = ("value", "shape", "init", "low", "high", "seed", "file", "dtype", "requires_grad")


class Input:
    """One input of a spec: a value, a generator (`init` and `shape`), or a file.

    `init` is `normal`, `uniform` (between `low` and `high`), `zeros`, `ones` or `arange`. Numbers
    typed without a point are reals; NumPy arrays and tensors keep their dtype. Floating inputs
    require a gradient unless `requires_grad` is False. What does not fit together is refused when
    the spec is loaded.
    """

    __slots__ = (*FIELDS, "folder", "place")

    def __init__(
        self,
        value: Any = None,
        shape: Any = None,
        init: str | None = None,
        low: float | None = None,
        high: float | None = None,
        seed: int | None = None,
        file: str | None = None,
        dtype: Any = None,
        requires_grad: bool | None = None,
    ) -> None:
        self.value = value
        self.shape = shape
        self.init = init
        self.low = low
        self.high = high
        self.seed = seed
        self.file = file
        self.dtype = dtype
        self.requires_grad = requires_grad
        self.place = Place()
        self.folder = ""

    def __repr__(self) -> str:
        given = [f"{name}={getattr(self, name)!r}" for name in FIELDS if name_given(self, name)]
        return f"Input({', '.join(given)})"

    def with_changes(self, **changes: Any) -> "Input":
        """Return a copy with some fields changed."""
        copy = Input()
        for name in self.__slots__:
            setattr(copy, name, changes.get(name, getattr(self, name)))
        return copy

    @property
    def generated(self) -> bool:
        """Whether the values are drawn, so that another seed gives others."""
        return self.value is None and self.file is None and self.init in (None, "normal", "uniform")

    def wants_gradient(self, dtype: dtypes.DType) -> bool:
        """Tell whether an input of that dtype takes part in the graph."""
        return dtype.kind == "f" and self.requires_grad is not False

    def array(
        self, stream: tuple[Any, ...], default: dtypes.DType, max_elements: int = 10**8
    ) -> Array:
        """Return the values as a new array.

        `stream` is (seed, spec, input name), from which a generator draws; `default` the floating
        dtype of numbers and generators. Raises `SpecError`.
        """
        dtype = None if self.dtype is None else self.dtype
        if self.file is not None:
            array = convert(
                load_file(self.file, self.folder, self.place, max_elements), dtype, self
            )
        elif isinstance(self.value, Nested):
            array = self.value.array(dtype, default)
        elif self.value is not None:
            array = convert(self.value, dtype, self)
        else:
            array = self.generate(stream, dtype or default, max_elements)
        if self.requires_grad and array.dtype.kind != "f":
            raise no_gradient(array.dtype, self.place)
        return array

    def generate(self, stream: tuple[Any, ...], dtype: dtypes.DType, max_elements: int) -> Array:
        """Return the array that `init` and `shape` describe."""
        shape = self.shape or ()
        if math.prod(shape) > max_elements:
            raise SpecError(
                f"the shape {list(shape)} has {math.prod(shape):,} elements, more than the limit "
                f"of {max_elements:,}; --max-elements raises it",
                self.place,
            )
        if self.init == "zeros":
            return np.zeros(shape, dtype)
        if self.init == "ones":
            return np.ones(shape, dtype)
        if self.init == "arange":
            return np.arange(math.prod(shape)).astype(dtype).reshape(shape)
        seed, *names = stream
        rng = generator(seed if self.seed is None else self.seed, *names)
        if self.init == "uniform":
            low, high = self.bounds
            drawn = low + (high - low) * rng.random(shape)
            return np.asarray(np.clip(drawn, low, high), dtype)
        return np.asarray(rng.standard_normal(shape), dtype)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest value of `uniform`, 0 and 1 unless given."""
        return (0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high)


def name_given(given: Input, name: str) -> bool:
    """Tell whether a field of an input was given."""
    return getattr(given, name) is not None


def generator(*stream: Any) -> "np.random.Generator":
    """Return the random generator of a stream, the same for the same (seed, spec, name) always.

    >>> float(generator(0, "gate", "x").random()) == float(generator(0, "gate", "x").random())
    True
    """
    import hashlib

    text = "\0".join(map(str, stream)).encode("utf-8", "surrogatepass")
    entropy = int.from_bytes(hashlib.sha256(text).digest()[:16], "little")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


def no_gradient(dtype: dtypes.DType, place: Place) -> SpecError:
    """Return the error for a gradient asked of an integer or boolean input."""
    return SpecError(
        f"an input of dtype {dtype} cannot require a gradient",
        place,
        hint="only floating inputs can",
    )


def checked(given: Any, name: str, place: Place, folder: str = "") -> Input:
    """Return what a Python spec gives for an input as an `Input` whose fields fit together.

    Raises `SpecError`.
    """
    found = given.with_changes() if isinstance(given, Input) else Input(value=given)
    found.place, found.folder = place, folder
    if isinstance(found.value, Tensor):
        found.value = found.value.numpy().copy()
    elif isinstance(found.value, (np.ndarray, np.generic)):
        found.value = np.array(found.value)
    elif found.value is not None and not isinstance(found.value, Nested):
        found.value = read_nested(found.value, PythonReader(place, f"input '{name}'"))
    check_fields(found, lambda field: place)
    return found


def check_fields(given: Input, place_of: Any) -> None:
    """Check the fields of an input and bring shape and dtype into their own types.

    `place_of` maps a field's name to its place. Raises `SpecError`.
    """
    names = [field for field in ("value", "file") if name_given(given, field)]
    drawn = [f for f in ("init", "shape", "low", "high", "seed") if name_given(given, f)]
    if names[1:] or (names and drawn):
        other = (names[1:] + drawn)[0]
        raise SpecError(f"'{names[0]}' and '{other}' exclude each other", place_of(other))
    if not names and not (set(drawn) & {"init", "shape"}):
        raise SpecError(
            "an input needs a value, a file, or a shape to draw", place_of("value"),
            hint="{value: [1, 2]}, {shape: [3, 4], init: uniform} or {file: data.npy}",
        )  # fmt: skip
    if given.requires_grad not in (None, True, False):
        raise SpecError("requires_grad must be true or false", place_of("requires_grad"))
    if given.dtype is not None:
        try:
            given.dtype = dtypes.as_dtype(given.dtype)
        except KaelError as error:
            near = did_you_mean(str(given.dtype), map(str, dtypes.SUPPORTED))
            raise SpecError(f"{error}{near}".partition("\n")[0], place_of("dtype")) from None
    check_generator(given, place_of)
    if given.requires_grad:
        dtype = given.dtype
        if dtype is None and isinstance(given.value, Nested) and given.value.kind == "b":
            dtype = dtypes.bool_
        if dtype is None and isinstance(given.value, np.ndarray):
            dtype = given.value.dtype
        if dtype is not None and dtype.kind != "f":
            raise no_gradient(dtype, place_of("requires_grad"))


def check_generator(given: Input, place_of: Any) -> None:
    """Check the fields of a generator."""
    if given.shape is not None:
        given.shape = as_shape(given.shape, place_of("shape"))
    if given.init is not None and given.init not in INITS:
        raise SpecError(
            f"unknown init '{given.init}'{did_you_mean(str(given.init), INITS)}",
            place_of("init"),
            hint=f"init is one of {', '.join(INITS)}",
        )
    for field in ("low", "high"):
        bound = getattr(given, field)
        if bound is None:
            continue
        if given.init != "uniform":
            raise SpecError(f"'{field}' goes with init: uniform only", place_of(field))
        if (
            isinstance(bound, bool)
            or not isinstance(bound, (int, float))
            or not math.isfinite(bound)
        ):
            raise SpecError(f"'{field}' must be a finite number", place_of(field))
    if given.init == "uniform" and given.bounds[0] > given.bounds[1]:
        low, high = given.bounds
        raise SpecError(f"low ({low:g}) is above high ({high:g})", place_of("low"))
    if given.seed is not None and (isinstance(given.seed, bool) or not isinstance(given.seed, int)):
        raise SpecError("'seed' must be an integer", place_of("seed"))
    if given.dtype is not None and given.dtype.kind != "f" and given.init in ("normal", "uniform"):
        raise SpecError(f"init: {given.init} draws reals, not {given.dtype}", place_of("dtype"))


def as_shape(shape: Any, place: Place) -> tuple[int, ...]:
    """Return a shape given as an integer or as a list of them."""
    sizes = [shape] if isinstance(shape, (int, np.integer)) else shape
    if not isinstance(sizes, Sequence) or isinstance(sizes, str):
        raise SpecError("a shape is a list of sizes, like [3, 4]", place)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
            raise SpecError(f"a shape is a list of sizes, like [3, 4]; got {size!r}"[:200], place)
    if len(sizes) > 32:
        raise SpecError("a shape has at most 32 dims", place)
    return tuple(int(size) for size in sizes)


def convert(array: Any, dtype: dtypes.DType | None, given: Input) -> Array:
    """Return a copy of an array in its own dtype or in the one that is asked for."""
    array = np.asarray(array)
    if array.dtype.hasobject or array.dtype.kind not in "biuf":
        raise SpecError(f"an array of dtype {array.dtype} holds no numbers kael knows", given.place)
    if dtype is None:
        try:
            dtype = dtypes.as_dtype(array.dtype.newbyteorder("="))
        except KaelError as error:
            hint = "a dtype: float64 or int64 beside it converts the values"
            raise SpecError(str(error).partition("\n")[0], given.place, hint=hint) from None
    with np.errstate(all="ignore"):
        result: Array = array.astype(dtype)
        if dtype.kind in "iub" and not np.array_equal(result, array):
            at = tuple(int(i) for i in np.argwhere(result != array)[0])
            raise SpecError(f"{array[at]:g} at {list(at)} does not fit into {dtype}", given.place)
    return result


def load_file(name: str, folder: str, place: Place, max_elements: int) -> Array:
    """Return the array in a `.npy`, `.npz` (`file.npz:key`) or `.csv` file.

    Nothing in the file can run code: pickled objects are refused. Raises `SpecError`.
    """
    path, key = name, None
    if ".npz:" in name:
        path, _, key = name.rpartition(":")
    full = os.path.join(folder, path)
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in (".npy", ".npz", ".csv"):
        raise SpecError(f"'{name}' is no .npy, .npz or .csv file", place)
    try:
        if suffix == ".csv":
            return load_csv(full, path, place)
        return load_npy(full, path, key, place, max_elements)
    except FileNotFoundError:
        where = folder if place.file is None else os.path.dirname(place.file)
        raise SpecError(f"there is no file '{path}'", place, hint=looked_in(where)) from None
    except OSError as error:
        raise SpecError(f"'{path}' cannot be read: {error.strerror or error}", place) from None


def looked_in(folder: str) -> str:
    """Return the line that tells where a relative path starts."""
    return f"it is looked for in {folder or 'the current folder'}".replace(os.sep, "/")


def load_npy(full: str, path: str, key: str | None, place: Place, max_elements: int) -> Array:
    """Return the array in a NumPy file, after a look at its size."""
    import zipfile

    try:
        if path.lower().endswith(".npz"):
            with zipfile.ZipFile(full) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                chosen = choose_key(names, key, path, place)
                with archive.open(chosen + ".npy") as stream:
                    return read_npy(stream, place, max_elements)
        with open(full, "rb") as stream:
            return read_npy(stream, place, max_elements)
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError) as error:
        if "Object arrays" in str(error) or "pickle" in str(error):
            raise SpecError(
                f"'{path}' holds pickled objects, which are not loaded", place
            ) from None
        said = re.sub(r" at 0x[0-9a-fA-F]+", "", str(error))  # an address differs in every run
        message = f"'{path}' is not a NumPy file: {said}".partition("\n")[0]
        raise SpecError(message[:200], place) from None


def read_npy(stream: Any, place: Place, max_elements: int) -> Array:
    """Return the array of an open `.npy` file; one over the limit is refused at its header."""
    from numpy.lib import format as npy

    start = stream.tell()
    version = npy.read_magic(stream)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, _ = header(stream)
    if math.prod(shape) > max_elements:
        raise SpecError(
            f"the file holds {math.prod(shape):,} elements, more than the limit of "
            f"{max_elements:,}; --max-elements raises it",
            place,
        )
    stream.seek(start)
    return np.asarray(npy.read_array(stream, allow_pickle=False))


def choose_key(names: list[str], key: str | None, path: str, place: Place) -> str:
    """Return the array of an archive that is meant."""
    if key is None and len(names) == 1:
        return names[0]
    listed = ", ".join(names[:12])
    if key is None:
        raise SpecError(
            f"'{path}' holds {len(names)} arrays; name one: {path}:KEY", place, hint=listed
        )
    if key not in names:
        raise SpecError(
            f"'{path}' has no array '{key}'{did_you_mean(key, names)}",
            place,
            hint=f"it has {listed}",
        )
    return key


def load_csv(full: str, path: str, place: Place) -> Array:
    """Return the numbers of a text file, one row a line, separated by commas.

    A single row, or a single column, gives one dim.
    """
    rows: list[list[float]] = []
    with open(full, "rb") as stream:
        text = stream.read().decode("utf-8-sig", "replace")
    shown = path.replace(os.sep, "/")
    for at, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = line.split(",")
        if rows and len(cells) != len(rows[0]):
            raise SpecError(
                f"ragged rows: {len(cells)} numbers here, {len(rows[0])} in the rows before it",
                Place(shown, at, 1, source=text),
            )
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            number = next(i for i, cell in enumerate(cells) if not is_float(cell))
            cell = cells[number]
            indent = len(cell) - len(cell.lstrip()) if cell.strip() else 0
            column = sum(len(before) + 1 for before in cells[:number]) + indent + 1
            raise SpecError(
                f"{cell.strip()[:40]!r} is not a number", Place(shown, at, column, source=text),
                hint="a file of numbers has no header",
            ) from None  # fmt: skip
    array = np.array(rows, np.float64)
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1) if array.size != 1 else array.reshape(())
    return array


def is_float(text: str) -> bool:
    """Tell whether Python reads a text as a float."""
    try:
        float(text)
    except ValueError:
        return False
    return True
