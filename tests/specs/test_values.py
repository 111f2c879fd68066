"""Values as they are typed behind `-i` and `-c`."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kael.specs.literals import plain_number
from kael.specs.place import Place, SpecError
from kael.specs.values import parse_value

FLOAT = np.dtype("float64")


def array(text: str, seed: int = 0, name: str = "x") -> Any:
    return parse_value(text, Place(None, 1, 1, f"-i {name}", text)).array((seed, "s", name), FLOAT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3.0),
        ("-2.5", -2.5),
        ("[1, 2]", [1.0, 2.0]),
        ("(1, 2)", [1.0, 2.0]),
        ("[[1,2],[3,4]]", [[1.0, 2.0], [3.0, 4.0]]),
        ("[]", np.zeros(0)),
        ("[[], []]", np.zeros((2, 0))),
        ("[-1, +2]", [-1.0, 2.0]),
        ("[inf, -inf]", [np.inf, -np.inf]),
        ("[.inf, -.inf]", [np.inf, -np.inf]),
        ("-Infinity", -np.inf),
        ("NaN", np.nan),
        ("[1e-3, 1E3]", [0.001, 1000.0]),
        ("zeros(3)", np.zeros(3)),
        ("ones(2, 2)", np.ones((2, 2))),
        ("ones([2, 2])", np.ones((2, 2))),
        ("ones(shape=[2])", np.ones(2)),
        ("arange(4)", [0.0, 1.0, 2.0, 3.0]),
        ("arange(1, 2, 0.5)", [1.0, 1.5]),
        ("linspace(0,1,5)", [0.0, 0.25, 0.5, 0.75, 1.0]),
        ("linspace(0, 1, steps=2)", [0.0, 1.0]),
    ],
)
def test_value(text: str, expected: Any) -> None:
    found = array(text)
    assert found.dtype == FLOAT
    np.testing.assert_array_equal(found, expected)


def test_truth_values_are_boolean() -> None:
    for text in ("[true, false]", "[True, False]"):
        assert array(text).dtype == bool
        np.testing.assert_array_equal(array(text), [True, False])


def test_a_list_with_a_dtype() -> None:
    found = array("tensor([0, 2], dtype=int64)")
    assert found.dtype == np.int64
    assert found.tolist() == [0, 2]
    assert array("tensor(3, dtype='int32')").dtype == np.int32
    assert array("tensor([true, false])").dtype == bool
    assert array("tensor([0, 2])").dtype == FLOAT


def test_dtype_of_a_generator() -> None:
    assert array("zeros(2, dtype=int64)").dtype == np.int64
    assert array("randn(2, dtype='float32')").dtype == np.float32


@pytest.mark.parametrize(
    ("text", "shape"),
    [("randn(2,3)", (2, 3)), ("randn()", ()), ("uniform(0.5,2.5,shape=[2,3])", (2, 3))],
)
def test_shape_of_what_is_drawn(text: str, shape: tuple[int, ...]) -> None:
    assert array(text).shape == shape


def test_uniform_stays_in_its_bounds() -> None:
    drawn = array("uniform(0.5, 2.5, shape=[1000])")
    assert 0.5 <= drawn.min() < 0.7
    assert 2.3 < drawn.max() <= 2.5


def test_streams_depend_on_seed_and_name_alone() -> None:
    first = array("randn(5)")
    np.testing.assert_array_equal(array("randn(5)"), first)
    assert not np.array_equal(array("randn(5)", seed=1), first)
    assert not np.array_equal(array("randn(5)", name="y"), first)
    own = array("randn(5, seed=7)")
    np.testing.assert_array_equal(array("randn(5, seed=7)", seed=1), own)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("[1,[2]]", 4, "ragged list: a list here, a number before it"),
        ("[[1],2]", 6, "ragged list: a number here, a list before it"),
        ("[[1],[2,3]]", 6, "ragged list: 2 items here, 1 in the lists before it"),
        ("[[[1],[2]],[[3]]]", 12, "ragged list: 1 item here, 2 in the lists before it"),
        ("[true, 1]", 8, "truth values and numbers are mixed in one list"),
        ("hello", 1, "'hello' is not a value"),
        ("[1, 'a']", 5, "'a' is not a value"),
        ("2*3", 1, "an expression is not a value"),
        ("[1, randn(2)]", 5, "a call inside a list is not a value"),
        ("null", 1, "'null' is not a value"),
        ("radn(3)", 1, "unknown generator 'radn'; did you mean 'randn'?"),
        ("os.system('x')", 1, "only a generator is called"),
        ("randn(-1)", 7, "a size is an integer that is not negative"),
        ("randn(2.5)", 7, "a size is an integer that is not negative"),
        ("randn(3, low=1)", 10, "randn takes no argument 'low'"),
        ("uniform(3,1)", 1, "low (3) is above high (1)"),
        ("tensor()", 1, "tensor needs values: tensor([0, 2])"),
        ("tensor([0.5], dtype=int64)", 9, "0.5 is not an integer, and the dtype is int64"),
        ("tensor([1], shape=[1])", 13, "tensor takes no argument 'shape'"),
        ("arange()", 1, "arange needs an end"),
        ("arange(0, 1, 0)", 1, "arange needs a step that is not 0"),
        ("linspace(0, 1)", 1, "linspace needs 'steps'"),
        ("linspace(0, 1, 1e9)", 1, "linspace takes a number of steps"),
        ("linspace(0, 1, 10000000000)", 1, "linspace would give more than 100,000,000 elements"),
        ("zeros(100000, 100000)", 1, "the shape [100000, 100000] has 10,000,000,000 elements"),
        ("zeros(2, dtype=flaot32)", 1, "unknown dtype 'flaot32'"),
        ("1" + "0" * 400, 1, "an integer of 401 digits is beyond the range of float64"),
        ("[1, 2", 1, "'[' was never closed"),
        ("", 1, "the value is empty"),
        ("@", 1, "@ is followed by the name of a file"),
        ("@nowhere.npy", 1, "there is no file 'nowhere.npy'"),
        ("@file.txt", 1, "'file.txt' is no .npy, .npz or .csv file"),
    ],
)
def test_error(text: str, column: int, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        array(text)
    assert str(caught.value).startswith(f"-i x:1:{column}: {message}")


@given(
    hnp.arrays(
        np.float64, hnp.array_shapes(max_dims=3, max_side=3), elements=st.floats(allow_nan=False)
    )
)
def test_lists_read_back_as_they_were(values: Any) -> None:
    np.testing.assert_array_equal(array(str(values.tolist())), values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-6", 1e-6),
        ("1e3", 1000.0),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("+.5", 0.5),
        ("1.", 1.0),
        (".inf", np.inf),
        ("-.INF", -np.inf),
        ("inf", np.inf),
        ("true", True),
        ("no", None),
        ("on", None),
        ("1:30", None),
        ("1e", None),
        ("_1", None),
        ("", None),
        (".", None),
        ("-", None),
        ("٣", None),
    ],
)
def test_numbers_of_yaml(text: str, expected: Any) -> None:
    found = plain_number(text)
    assert found == expected
    assert type(found) is type(expected)
