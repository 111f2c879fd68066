"""Inputs: what fits together, dtypes, and files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kael.specs.inputs import Input, checked
from kael.specs.place import Place, SpecError
from kael.tensors import Tensor

FLOAT = np.dtype("float64")
PLACE = Place("spec.py", 3, 1)


def array(folder: str = "", max_elements: int = 10**8, **fields: Any) -> Any:
    given = checked(Input(**fields), "x", PLACE, folder)
    return given.array((0, "spec", "x"), FLOAT, max_elements)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([1, 2], None, "float64"),
        ([1, 2], "int64", "int64"),
        ([1.0, 2.0], "int64", "int64"),
        ([True, False], None, "bool"),
        ([1, 0], "bool", "bool"),
        ([True], "float32", "float32"),
        (np.array([1, 2]), None, "int64"),
        (np.array([1, 2], np.float32), None, "float32"),
        (np.array([1.0, 2.0], ">f8"), None, "float64"),
        (np.float32(2), None, "float32"),
        (Tensor(np.array([1, 2])), None, "int64"),
        ([np.array([1, 2]), [3, 4]], None, "float64"),
    ],
)
def test_dtype(value: Any, dtype: Any, expected: str) -> None:
    assert array(value=value, dtype=dtype).dtype == np.dtype(expected)


def test_values_are_copies() -> None:
    mine = np.array([1.0, 2.0])
    given = checked(mine, "x", PLACE)
    mine[0] = 9
    first = given.array((0,), FLOAT)
    first[1] = 9
    np.testing.assert_array_equal(given.array((0,), FLOAT), [1.0, 2.0])


def test_inits() -> None:
    np.testing.assert_array_equal(array(shape=[2, 3], init="arange"), [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(array(shape=2, init="zeros", dtype="int64"), [0, 0])
    assert array(shape=[100]).std() == pytest.approx(1, abs=0.3)
    drawn = array(shape=[1000], init="uniform", low=-1, high=1, dtype="float32")
    assert drawn.dtype == np.float32
    assert -1 <= drawn.min() < -0.9 < 0.9 < drawn.max() <= 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "an input needs a value, a file, or a shape"),
        ({"value": 1, "shape": [2]}, "'value' and 'shape' exclude each other"),
        ({"value": 1, "file": "a.npy"}, "'value' and 'file' exclude each other"),
        ({"file": "a.npy", "seed": 1}, "'file' and 'seed' exclude each other"),
        ({"shape": [2], "init": "unifrom"}, "unknown init 'unifrom'; did you mean 'uniform'?"),
        ({"shape": [2], "low": 1}, "'low' goes with init: uniform only"),
        ({"shape": [2], "init": "uniform", "low": 2, "high": 1}, "low (2) is above high (1)"),
        ({"shape": [2], "init": "uniform", "high": np.inf}, "'high' must be a finite number"),
        ({"shape": [2], "seed": 1.5}, "'seed' must be an integer"),
        ({"shape": [-1]}, "a shape is a list of sizes"),
        ({"shape": "3"}, "a shape is a list of sizes"),
        ({"shape": [2], "dtype": "int64"}, None),
        ({"shape": [2], "init": "normal", "dtype": "int64"}, "init: normal draws reals, not int64"),
        ({"value": [1], "dtype": "flaot64"}, "unknown dtype 'flaot64'"),
        ({"value": [0.5], "dtype": "int64"}, "0.5 is not an integer, and the dtype is int64"),
        ({"value": [2], "dtype": "bool"}, "2 is neither true nor false, and the dtype is bool"),
        ({"value": [300], "dtype": "uint8"}, "300 is beyond the range of uint8"),
        (
            {"value": [2**70], "dtype": "int64"},
            "1180591620717411303424 is beyond the range of int64",
        ),
        ({"value": [1e300], "dtype": "float32"}, "1e+300 is beyond the range of float32"),
        ({"value": [float("nan")], "dtype": "int64"}, "nan is not an integer"),
        ({"value": 10**400}, "an integer of 401 digits is beyond the range of float64"),
        ({"value": [True], "requires_grad": True}, "an input of dtype bool cannot require"),
        (
            {"value": [1], "dtype": "int64", "requires_grad": True},
            "an input of dtype int64 cannot require a gradient",
        ),
        ({"value": np.array([1]), "requires_grad": True}, "an input of dtype int64 cannot require"),
        ({"value": [1, "a"]}, "input 'x' must be made of numbers, got str"),
        ({"value": np.array(["a"])}, "an array of dtype <U1 holds no numbers"),
        ({"value": np.array([1j])}, "an array of dtype complex128 holds no numbers"),
        ({"value": np.array([0.5]), "dtype": "int64"}, "0.5 at [0] does not fit into int64"),
        ({"value": [[1], [2, 3]]}, "ragged list: 2 items here, 1 in the lists before it"),
    ],
)
def test_what_does_not_fit(fields: dict[str, Any], message: str | None) -> None:
    if message is None:
        fields = {**fields, "init": "arange"}
        assert array(**fields).dtype == np.int64
        return
    with pytest.raises(SpecError) as caught:
        array(**fields)
    assert caught.value.message.startswith(message)


def test_size_is_checked_before_anything_is_drawn() -> None:
    with pytest.raises(SpecError, match="1,000,000,000,000,000 elements"):
        array(shape=[10**9, 10**6])


def test_integer_and_boolean_inputs_never_want_a_gradient() -> None:
    given = Input(value=1)
    assert given.wants_gradient(FLOAT)
    assert not given.wants_gradient(np.dtype("int64"))
    assert not given.wants_gradient(np.dtype("bool"))
    assert not Input(value=1, requires_grad=False).wants_gradient(FLOAT)


# Files


def test_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 4]], np.int32))
    found = array(str(tmp_path), file="a.npy")
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, [[1, 2], [3, 4]])
    assert array(str(tmp_path), file="a.npy", dtype="float32").dtype == np.float32


def test_npz_needs_a_key_when_it_has_several(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", weight=[1.0], bias=[2.0])
    np.testing.assert_array_equal(array(str(tmp_path), file="a.npz:bias"), [2.0])
    with pytest.raises(SpecError, match="holds 2 arrays; name one"):
        array(str(tmp_path), file="a.npz")
    with pytest.raises(SpecError, match="has no array 'wieght'; did you mean 'weight'"):
        array(str(tmp_path), file="a.npz:wieght")
    np.savez(tmp_path / "one.npz", only=[3.0])
    np.testing.assert_array_equal(array(str(tmp_path), file="one.npz"), [3.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1,2,3\n", [1, 2, 3]),
        ("1\n2\n", [1, 2]),
        ("5\n", 5),
        ("\ufeff1,2\r\n\r\n# note\r\n3, 4", [[1, 2], [3, 4]]),
        ("1e-3,inf\nnan,-2\n", [[0.001, np.inf], [np.nan, -2]]),
    ],
)
def test_csv(tmp_path: Path, text: str, expected: Any) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    np.testing.assert_array_equal(array(str(tmp_path), file="a.csv"), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n", "a.csv:1:1: 'x' is not a number"),
        ("1,2\n3,four\n", "a.csv:2:3: 'four' is not a number"),
        ("1,,3\n", "a.csv:1:3: '' is not a number"),
        ("1e5, e\n", "a.csv:1:6: 'e' is not a number"),
        ("1,2\n3\n", "a.csv:2:1: ragged rows: 1 numbers here, 2 in the rows before it"),
    ],
)
def test_csv_errors_have_places(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(SpecError) as caught:
        array(str(tmp_path), file="a.csv")
    assert str(caught.value).startswith(message)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", a=np.array([None], object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(SpecError, match="holds pickled objects, which are not loaded"):
            array(str(tmp_path), file=name)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
@pytest.mark.parametrize("data", [b"", b"garbage", b"\x93NUMPY\x01\x00", b"PK\x03\x04"])
def test_broken_files(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SpecError, match="is not a NumPy file"):
        array(str(tmp_path), file=name)


def test_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.npy").mkdir()
    with pytest.raises(SpecError, match="cannot be read"):
        array(str(tmp_path), file="a.npy")


def test_size_of_a_file_is_checked_at_its_header(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(100))
    np.savez(tmp_path / "a.npz", a=np.zeros(100))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(SpecError, match="100 elements, more than the limit of 50"):
            array(str(tmp_path), 50, file=name)


def test_a_hostile_header_runs_nothing_and_is_told_without_an_address(tmp_path: Path) -> None:
    header = b"__import__('os').system('echo no')".ljust(99) + b"\n"
    (tmp_path / "a.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    )
    with pytest.raises(SpecError, match="is not a NumPy file") as raised:
        array(str(tmp_path), file="a.npy")
    assert " at 0x" not in str(raised.value)
