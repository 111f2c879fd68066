"""YAML specs: every key, and every error with its line and column."""
# ruff: noqa: E501 (a table reads better with a case a line)

import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kael.specs.model import Golden, Spec
from kael.specs.yaml_loader import Loaded, load, load_bytes

BASE = "inputs: {x: [1, 2], w: [0.5, -1]}\noutput: (x*w).sum()\n"


def read(text: str) -> Loaded:
    return load_bytes(textwrap.dedent(text).encode(), "stem", "f.yaml")


def one(text: str) -> Spec:
    loaded = read(text)
    assert [str(error) for error in loaded.errors] == []
    (spec,) = loaded.specs
    return spec


def error(text: str) -> str:
    loaded = read(text)
    assert loaded.errors, "an error was expected"
    return str(loaded.errors[0])


FULL = """\
name: tanh gate
description: free text
tags: [activation, small]
inputs:
  x: [1, 2]
  w: {value: [0.5, -1]}
  a: {shape: [3, 4], init: uniform, low: 0.5, high: 2.5, seed: 7}
  m: {value: [true, false], requires_grad: false}
  t: {value: [0, 1], dtype: int64}
let:
  u: x * w
  v: u + x
  k: 3
output: tanh(v).sum() + (a * k).sum() * 0
upstream: ones
expect:
  value: 0.905148
  grad: {x: [0.271060, 0], w: null}
  atol: 1e-6
  rtol: 1e-5
derivatives:
  x: (1 - tanh(v)**2) * (w + 1)
  w: 0
gradcheck: {eps: 1e-6, atol: 1e-5, rtol: 1e-3, seed: 0, mode: full, inputs: [x, w], numeric: true}
xfail: "reason"
skip: "other reason"
cases:
  at_zero: {x: [0, 0]}
  large: {inputs: {x: [50, -50]}, expect: {value: 0}}
"""


def test_every_key() -> None:
    spec = one(FULL)
    assert (spec.name, spec.description, spec.tags) == (
        "tanh gate",
        "free text",
        ("activation", "small"),
    )
    assert str(spec.place) == "f.yaml:1:1"
    assert list(spec.inputs) == ["x", "w", "a", "m", "t"]
    assert list(spec.let) == ["u", "v", "k"]
    assert spec.upstream == "ones"
    assert spec.expect is not None
    assert isinstance(spec.expect.value, Golden)
    assert spec.expect.value.array == pytest.approx(0.905148)
    assert str(spec.expect.value.place) == "f.yaml:17:10"
    assert spec.expect.grad["w"] is None
    assert (spec.expect.atol, spec.expect.rtol) == (1e-6, 1e-5)
    assert list(spec.derivatives) == ["x", "w"]
    assert spec.gradcheck["mode"] == "full"
    assert spec.gradcheck["inputs"] == ("x", "w")
    assert (spec.xfail, spec.skip) == ("reason", "other reason")
    assert list(spec.cases) == ["at_zero", "large"]
    assert spec.cases["at_zero"].expect is None
    assert spec.cases["large"].expect is not None
    assert str(spec.cases["large"].place) == "f.yaml:29:3"


def test_leaves_of_every_kind() -> None:
    leaves = one(FULL).instances()[0].leaves()
    assert {name: (str(t.dtype), t.requires_grad) for name, t in leaves.items()} == {
        "x": ("float64", True),
        "w": ("float64", True),
        "a": ("float64", True),
        "m": ("bool", False),
        "t": ("int64", False),
    }


def test_cases_override_inputs_by_name_and_keep_the_dtype() -> None:
    spec = one(
        """\
        inputs: {x: [1, 2], t: {value: [0, 1], dtype: int64}, c: {value: [1], requires_grad: false}}
        output: (x[t] * c).sum()
        cases: {swapped: {t: [1, 0], c: [2]}, other: {t: {value: [1, 1]}}}
        """
    )
    base, swapped, other = spec.instances()
    assert [i.title for i in (base, swapped, other)] == ["stem", "stem[swapped]", "stem[other]"]
    leaves = swapped.leaves()
    assert leaves["t"].dtype == np.int64
    assert not leaves["c"].requires_grad
    assert leaves["t"].tolist() == [1, 0]
    assert other.leaves()["t"].tolist() == [1, 1]
    assert base.leaves()["t"].tolist() == [0, 1]


def test_streams_are_the_specs_own_and_not_the_orders() -> None:
    first = (
        one("inputs: {a: {shape: [3]}, b: {shape: [3]}}\noutput: a.sum()").instances()[0].leaves()
    )
    turned = (
        one("inputs: {b: {shape: [3]}, a: {shape: [3]}}\noutput: a.sum()").instances()[0].leaves()
    )
    assert first["a"].tolist() == turned["a"].tolist() != first["b"].tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1.0e3, 1e3, 1E3, +1e3]", [1000.0] * 4),
        ("[.inf, -.inf, inf, -inf]", [np.inf, -np.inf] * 2),
        ("[017, 0o17, 0x1f]", [17.0, 15.0, 31.0]),
        ("[.5, 5., -1_000]", [0.5, 5.0, -1000.0]),
        ("1e-6", 1e-6),
    ],
)
def test_numbers_of_yaml_1_2(text: str, expected: Any) -> None:
    spec = one(f"inputs: {{x: {text}}}\noutput: x.sum()")
    np.testing.assert_array_equal(spec.instances()[0].leaves()["x"].numpy(), expected)


def test_words_of_yaml_1_1_are_names_and_texts() -> None:
    spec = one("name: no\ntags: [on, yes]\ninputs: {on: 1, y: 2, no: 3}\noutput: on * y * no")
    assert spec.name == "no"
    assert list(spec.inputs) == ["on", "y", "no"]


def test_generators_and_files_as_short_values(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.array([3.0]))
    (tmp_path / "s.yaml").write_text(
        'inputs: {a: "randn(2,3)", d: {file: d.npy, dtype: float32}, e: "@d.npy"}\noutput: a.sum()\n'
    )
    (spec,) = load(str(tmp_path / "s.yaml")).specs
    leaves = spec.instances()[0].leaves()
    assert leaves["a"].shape == (2, 3)
    assert leaves["d"].dtype == np.float32
    assert leaves["e"].tolist() == [3.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", 3.0), ("+3", 3.0), (".5", 0.5), ("-.inf", -np.inf), ("true", True), ("1e-3", 0.001)],
)
def test_a_number_is_an_expression(text: str, expected: float) -> None:
    spec = one(f"inputs: {{x: 1}}\nlet: {{k: {text}}}\noutput: x * 0")
    assert spec.let["k"].value({}) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("false", None), ("true", "no reason given"), ("why", "why")]
)
def test_reasons(text: str, expected: str | None) -> None:
    spec = one(BASE + f"xfail: {text}\nskip: {text}\n")
    assert spec.xfail == spec.skip == expected


# Several specs


def test_specs_and_defaults() -> None:
    loaded = read(
        """\
        defaults:
          inputs: {x: [1, 2], c: {value: 3, requires_grad: false}}
          gradcheck: {eps: 1e-5, mode: full}
          expect: {atol: 1e-3}
          tags: [shared]
        specs:
          - {name: first, output: (x*c).sum(), gradcheck: {mode: fast}, expect: {value: 9}}
          - {inputs: {x: 4}, output: x * 2, tags: [own]}
          - {output: x.sum()}
        """
    )
    assert loaded.errors == []
    first, second, third = loaded.specs
    assert [spec.name for spec in loaded.specs] == ["first", "stem-1", "stem-2"]
    assert first.gradcheck == {"eps": 1e-5, "mode": "fast"}
    assert first.expect is not None
    assert (first.expect.atol, first.expect.rtol) == (1e-3, 1e-5)
    assert second.expect is None
    assert list(second.inputs) == ["x", "c"]
    assert second.instances()[0].leaves()["x"].item() == 4.0
    assert (first.tags, second.tags, third.tags) == (("shared",), ("own",), ("shared",))
    assert str(second.place) == "f.yaml:8:5"


def test_several_documents() -> None:
    loaded = read(BASE + "---\n" + BASE + "---\n---\nname: third\n" + BASE)
    assert loaded.errors == []
    assert [spec.name for spec in loaded.specs] == ["stem-1", "stem-2", "third"]


def test_a_broken_spec_does_not_hide_the_others() -> None:
    loaded = read(
        """\
        specs:
          - {name: good, inputs: {x: 1}, output: x * 2}
          - {name: bad, inputs: {x: 1}, output: tahn(x)}
          - {name: worse, inputs: {x: 1}}
          - {name: fine, inputs: {x: 1}, output: x * 3}
        """
    )
    assert [spec.name for spec in loaded.specs] == ["good", "fine"]
    assert [str(e).partition("\n")[0] for e in loaded.errors] == [
        "f.yaml:3:41: unknown operation 'tahn'; did you mean 'tanh'?",
        "f.yaml:4:5: the key 'output' is missing",
    ]


def test_an_error_in_the_defaults_is_told_once() -> None:
    loaded = read(
        "defaults: {gradcheck: {mode: ful}, inputs: {x: 1}}\nspecs: [{output: x}, {output: x}]"
    )
    assert len(loaded.errors) == 1


def test_equal_names() -> None:
    assert error(
        "specs:\n  - {name: a, inputs: {x: 1}, output: x}\n  - {name: a, inputs: {x: 1}, output: x}"
    ) == (
        "f.yaml:3:12: the name 'a' is given to two specs of this file\n"
        "    - {name: a, inputs: {x: 1}, output: x}\n"
        "             ^\n"
        "  the first is on line 2"
    )


# Errors

ERRORS = [
    # structure
    ("", "f.yaml: the file is empty"),
    ("# only a comment\n", "f.yaml: the file is empty"),
    ("- 1\n- 2\n", "f.yaml:1:1: a spec is a mapping, got a list"),
    ("just text\n", "f.yaml:1:1: a spec must be a mapping, got the text 'just text'"),
    ("output: 1\n", "f.yaml:1:1: the key 'inputs' is missing"),
    ("inputs: {x: 1}\n", "f.yaml:1:1: the key 'output' is missing"),
    (
        "inputs: {x: 1}\nouptut: x\n",
        "f.yaml:2:1: unknown key 'ouptut' in a spec; did you mean 'output'?",
    ),
    ("inputs: {x: 1}\noutput: x\noutput: x\n", "f.yaml:3:1: key 'output' is given twice"),
    ("inputs: {x: 1, x: 2}\noutput: x\n", "f.yaml:1:16: key 'x' is given twice"),
    ("{? [1, 2] : 3}\n", "f.yaml:1:4: a key must be a word, got a list"),
    ("specs: 3\n", "f.yaml:1:8: 'specs' must be a list of specs, got the number 3"),
    ("specs: []\n", "f.yaml:1:8: 'specs' must be a list of specs, got an empty one"),
    ("specs: [3]\n", "f.yaml:1:9: a spec must be a mapping, got the number 3"),
    ("specs: []\nname: a\n", "f.yaml:2:1: unknown key 'name' in a file with 'specs'"),
    ("defaults: {}\n" + BASE, "f.yaml:1:1: 'defaults' goes with 'specs'"),
    ("defaults: {name: a}\nspecs: [{}]\n", "f.yaml:1:12: unknown key 'name' in defaults"),
    # what is no YAML
    ("a: [1, 2\n", "f.yaml:2:1: not YAML: "),
    ("a: b: c\n", "f.yaml:1:5: not YAML: mapping values are not allowed here"),
    ("inputs:\n\tx: 1\n", "f.yaml:2:1: not YAML: a tab cannot start a token"),
    ("a: *nowhere\n", "f.yaml:1:4: not YAML: found undefined alias 'nowhere'"),
    ("a: !!python/object:os.system x\n", "f.yaml:1:4: unknown YAML tag"),
    ("a: !mine x\n", "f.yaml:1:4: unknown YAML tag '!mine'"),
    ("a: !!binary aGk=\n", "f.yaml:1:4: unknown YAML tag"),
    ("a: &a [*a]\n", "f.yaml:1:4: an alias inside the node it stands for"),
    # simple types
    ("name: 3\n" + BASE, "f.yaml:1:7: name must be text, got the number 3"),
    ("name: ''\n" + BASE, "f.yaml:1:7: a name is one line of text"),
    ("name: [a]\n" + BASE, "f.yaml:1:7: name must be text, got a list"),
    ("description: true\n" + BASE, "f.yaml:1:14: description must be text, got true"),
    ("tags: a\n" + BASE, "f.yaml:1:7: tags must be a list of words, got the text 'a'"),
    ("tags: [1]\n" + BASE, "f.yaml:1:8: a tag must be text, got the number 1"),
    ("xfail: 3\n" + BASE, "f.yaml:1:8: xfail must be a reason, got the number 3"),
    ("skip: [a]\n" + BASE, "f.yaml:1:7: skip must be a reason, got a list"),
    ("inputs: {x: '1'}\noutput: x\n", "f.yaml:1:13: a value is expected, got the text '1'"),
    (
        'inputs: {x: "[1, 2]"}\noutput: x\n',
        "f.yaml:1:13: a value is expected, got the text '[1, 2]'",
    ),
    (BASE + 'cases: {"a\\nb": {x: 1}}\n', "f.yaml:3:9: a name is one line of text"),
    (BASE + "cases: {'': {x: 1}}\n", "f.yaml:3:9: a name is one line of text"),
    (
        BASE + "cases: {a: {inputs: {x: 1}, xfail: r}}\n",
        "f.yaml:3:29: unknown key 'xfail' in case 'a'",
    ),
    (BASE + "cases: {a: {x: 1, expect: {value: 1}}}\n", "f.yaml:3:13: unknown key 'x' in case 'a'"),
    (
        BASE + "gradcheck: {atol: .inf}\n",
        "f.yaml:3:19: atol must be a finite number that is not negative",
    ),
    (
        BASE + "expect: {value: 1, rtol: nan}\n",
        "f.yaml:3:26: rtol must be a finite number that is not negative",
    ),
    # inputs
    ("inputs: [1]\noutput: 1\n", "f.yaml:1:9: inputs must be a mapping, got a list"),
    ("inputs: {1x: 1}\noutput: 1\n", "f.yaml:1:10: '1x' cannot be the name of an input"),
    ("inputs: {lambda: 1}\noutput: 1\n", "f.yaml:1:10: 'lambda' is a word of Python"),
    ("inputs: {True: 1}\noutput: 1\n", "f.yaml:1:10: 'True' is a word of Python"),
    ("inputs: {ﬁ: 1, fi: 2}\noutput: 1\n", "f.yaml:1:16: the name 'fi' is taken"),
    ("inputs: {x: }\noutput: x\n", "f.yaml:1:10: the input has no value"),
    ("inputs: {x: hello}\noutput: x\n", "f.yaml:1:13: 'hello' is not a value"),
    ("inputs: {x: '1.5a'}\noutput: x\n", "f.yaml:1:16: invalid decimal literal"),
    ("inputs: {x: [1, two]}\noutput: x\n", "f.yaml:1:17: a number is expected, got the text 'two'"),
    ("inputs: {x: ['1']}\noutput: x\n", "f.yaml:1:14: a number is expected, got the text '1'"),
    ("inputs: {x: [1, {a: 2}]}\noutput: x\n", "f.yaml:1:17: a number is expected, got a mapping"),
    ("inputs: {x: [1, null]}\noutput: x\n", "f.yaml:1:17: a number is expected, got nothing"),
    ("inputs: {x: [[1, 2], [3]]}\noutput: x\n", "f.yaml:1:22: ragged list: 1 item here, 2 in"),
    ("inputs: {x: [1, true]}\noutput: x\n", "f.yaml:1:17: truth values and numbers are mixed"),
    (
        "inputs: {x: {value: 1, shpae: 2}}\noutput: x\n",
        "f.yaml:1:24: unknown key 'shpae' in an input",
    ),
    ("inputs: {x: {value: 1, shape: 2}}\noutput: x\n", "f.yaml:1:31: 'value' and 'shape' exclude"),
    ("inputs: {x: {dtype: float32}}\noutput: x\n", "f.yaml:1:13: an input needs a value, a file"),
    ("inputs: {x: {shape: [2.5]}}\noutput: x\n", "f.yaml:1:22: a size must be an integer"),
    ("inputs: {x: {shape: 2, init: unifrom}}\noutput: x\n", "f.yaml:1:30: unknown init 'unifrom'"),
    (
        "inputs: {x: {shape: 2, init: uniform, low: a}}\noutput: x\n",
        "f.yaml:1:44: low must be a number",
    ),
    ("inputs: {x: {value: 0.5, dtype: int64}}\noutput: x\n", "f.yaml:1:21: 0.5 is not an integer"),
    ("inputs: {x: {value: 1, dtype: flaot}}\noutput: x\n", "f.yaml:1:31: unknown dtype 'flaot'"),
    (
        "inputs: {x: {value: 1, dtype: int64, requires_grad: true}}\noutput: x\n",
        "f.yaml:1:53: an input of dtype int64 cannot require a gradient",
    ),
    (
        "inputs: {x: {value: true, requires_grad: true}}\noutput: x\n",
        "f.yaml:1:42: an input of dtype bool cannot require a gradient",
    ),
    (
        "inputs: {x: {value: 1, requires_grad: no}}\noutput: x\n",
        "f.yaml:1:39: requires_grad must be true",
    ),
    (
        "inputs: {x: 1" + "0" * 400 + "}\noutput: x\n",
        "f.yaml:1:13: an integer of 401 digits is beyond",
    ),
    ("inputs: {x: {file: a.txt}}\noutput: x\n", None),
    # expressions
    (
        "inputs: {x: 1}\noutput: tahn(x)\n",
        "f.yaml:2:9: unknown operation 'tahn'; did you mean 'tanh'?",
    ),
    ("inputs: {x: 1}\noutput: x + z\n", "f.yaml:2:13: unknown name 'z'"),
    ("inputs: {x: 1}\noutput: 'x + z'\n", "f.yaml:2:14: unknown name 'z'"),
    ('inputs: {x: 1}\noutput: "x\\u0020+ z"\n', "f.yaml:2:19: unknown name 'z'"),
    ("inputs: {x: 1}\noutput: |\n  x\n  + z\n", "f.yaml:4:5: unknown name 'z'"),
    ("inputs: {x: 1}\noutput: >-\n    x\n    + z\n", "f.yaml:4:7: unknown name 'z'"),
    ("inputs: {x: 1}\noutput: x\n  + z\n", "f.yaml:3:5: unknown name 'z'"),
    ("inputs: {x: 1}\noutput:\n", "f.yaml:2:1: output is empty"),
    ("inputs: {x: 1}\noutput: [x]\n", "f.yaml:2:9: output must be an expression, got a list"),
    ("inputs: {x: 1}\nlet: {v: u, u: x}\noutput: v\n", "f.yaml:2:10: unknown name 'u'"),
    ("inputs: {x: 1}\nlet: {x: 2}\noutput: x\n", "f.yaml:2:7: the name 'x' is taken"),
    (
        "inputs: {x: 1}\nlet: {a-b: 2}\noutput: x\n",
        "f.yaml:2:7: 'a-b' cannot be the name of a let value",
    ),
    ("inputs: {x: 1}\nlet: [a]\noutput: x\n", "f.yaml:2:6: let must be a mapping, got a list"),
    (BASE + "derivatives: {y: 1}\n", "f.yaml:3:15: there is no input 'y'"),
    (BASE + "derivatives: {x: q}\n", "f.yaml:3:18: unknown name 'q'"),
    (
        "inputs: {x: 1, c: {value: 1, requires_grad: false}}\noutput: x*c\nderivatives: {c: x}\n",
        "f.yaml:3:15: 'c' has requires_grad: false and no derivative",
    ),
    # golden values and options
    (BASE + "upstream: oens\n", "f.yaml:3:11: unknown upstream 'oens'; did you mean 'ones'?"),
    (BASE + "upstream: [1, [2]]\n", "f.yaml:3:15: ragged list"),
    (BASE + "expect: 3\n", "f.yaml:3:9: expect must be a mapping, got the number 3"),
    (BASE + "expect: {atol: 1}\n", "f.yaml:3:9: expect needs 'value' or 'grad'"),
    (
        BASE + "expect: {valeu: 1}\n",
        "f.yaml:3:10: unknown key 'valeu' in expect; did you mean 'value'?",
    ),
    (BASE + "expect: {value: a}\n", "f.yaml:3:17: a number is expected, got the text 'a'"),
    (BASE + "expect: {grad: {q: 1}}\n", "f.yaml:3:17: there is no input 'q'"),
    (
        BASE + "expect: {value: 1, atol: -1}\n",
        "f.yaml:3:26: atol must be a finite number that is not negative",
    ),
    (
        BASE + "gradcheck: {epz: 1}\n",
        "f.yaml:3:13: unknown key 'epz' in gradcheck; did you mean 'eps'?",
    ),
    (BASE + "gradcheck: {eps: 0}\n", "f.yaml:3:18: eps must be positive and finite"),
    (BASE + "gradcheck: {eps: 1e}\n", "f.yaml:3:18: eps must be a number, got the text '1e'"),
    (BASE + "gradcheck: {mode: ful}\n", "f.yaml:3:19: unknown mode 'ful'; did you mean 'full'?"),
    (BASE + "gradcheck: {inputs: [q]}\n", "f.yaml:3:22: there is no input 'q'"),
    (BASE + "gradcheck: {inputs: x}\n", "f.yaml:3:21: inputs must be a list of names"),
    (BASE + "gradcheck: {samples: 1.5}\n", "f.yaml:3:22: samples must be an integer"),
    (BASE + "gradcheck: {seed: -1}\n", "f.yaml:3:19: seed must not be negative"),
    (BASE + "gradcheck: {numeric: 1}\n", "f.yaml:3:22: numeric must be true or false"),
    # cases
    (BASE + "cases: [1]\n", "f.yaml:3:8: cases must be a mapping, got a list"),
    (BASE + "cases: {a: 1}\n", "f.yaml:3:12: case 'a' must be a mapping, got the number 1"),
    (BASE + "cases: {a: {q: 1}}\n", "f.yaml:3:13: there is no input 'q'"),
    (BASE + "cases: {a: {x: 1}, a: {x: 2}}\n", "f.yaml:3:20: key 'a' is given twice"),
    (BASE + "cases: {a: {inputs: {x: hi}}}\n", "f.yaml:3:25: 'hi' is not a value"),
    (
        BASE + "cases: {a: {inputs: {x: 1}, expect: {vlaue: 1}}}\n",
        "f.yaml:3:38: unknown key 'vlaue'",
    ),
]


@pytest.mark.parametrize(("text", "expected"), ERRORS, ids=[str(row[1])[:40] for row in ERRORS])
def test_error_has_line_and_column(text: str, expected: str | None) -> None:
    if expected is None:
        (spec,) = read(text).specs
        with pytest.raises(Exception, match=r"f.yaml:1:13: 'a.txt' is no .npy"):
            spec.instances()[0].leaves()
        return
    assert error(text).startswith(expected)


def test_error_shows_the_line_and_a_caret() -> None:
    assert error("inputs: {x: 1}\noutput: 1 + tahn(x)\n") == (
        "f.yaml:2:13: unknown operation 'tahn'; did you mean 'tanh'?\n"
        "  output: 1 + tahn(x)\n"
        "              ^"
    )


def test_an_evaluation_error_has_its_place_in_the_file() -> None:
    spec = one("inputs: {x: [1, 2], w: [1, 2, 3]}\nlet:\n  v: 1 + x * w\noutput: v.sum()\n")
    instance = spec.instances()[0]
    with pytest.raises(
        Exception, match=r"^f.yaml:3:10: mul: shapes \[2\] and \[3\] do not broadcast"
    ):
        instance.forward(instance.leaves())


# Hostile files


def test_alias_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    started = time.perf_counter()
    assert "aliases written out" in error("\n".join(lines))
    assert time.perf_counter() - started < 2


def test_aliases_within_reason_are_fine() -> None:
    spec = one("inputs: {x: &v [1, 2], w: *v}\noutput: (x*w).sum()")
    assert spec.instances()[0].leaves()["w"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("text", ["[" * 5000, "a: " + "[" * 500 + "]" * 500, "{a: " * 3000])
def test_deep_nesting_is_refused(text: str) -> None:
    assert error(text).startswith("f.yaml:1:")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0", "f.yaml: the file is binary, not YAML"),
        (b"name: a\nb: \xff\n", "f.yaml:2:4: the file is not UTF-8: byte 0xff"),
        ("é: é\nb: ".encode() + b"\xe9\n", "f.yaml:2:4: the file is not UTF-8: byte 0xe9"),
        (b"a: 1\nb: \x07\n", "f.yaml:2:4: not YAML: the character U+0007 is not allowed"),
        (b" " * 4_000_001, "f.yaml: the file has 4,000,001 bytes; at most 4,000,000 are read"),
    ],
)
def test_files_that_are_no_text(data: bytes, message: str) -> None:
    loaded = load_bytes(data, "f", "f.yaml")
    assert str(loaded.errors[0]).startswith(message)
    assert loaded.specs == []


def test_byte_order_mark_and_windows_line_ends() -> None:
    data = b"\xef\xbb\xbfinputs: {x: 1}\r\noutput: |\r\n  x\r\n  + z\r\n"
    (found,) = load_bytes(data, "f", "f.yaml").errors
    assert str(found).startswith("f.yaml:4:5: unknown name 'z'")
    assert "\r" not in str(found)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    loaded = load(str(tmp_path / "none.yaml"), "none.yaml")
    assert str(loaded.errors[0]) == "none.yaml: the file cannot be read: No such file or directory"
    assert "the file cannot be read" in str(load(str(tmp_path), "dir.yaml").errors[0])


@pytest.mark.parametrize(
    "text",
    [
        "inputs:\n  y: tensor([0, 2], dtype=int64)\noutput: y\n",
        "inputs: {y: 'tensor([0, 2], dtype=int64)'}\noutput: y\n",
    ],
)
def test_a_short_value_with_a_dtype(text: str) -> None:
    found = one(text).inputs["y"].array((0, "s", "y"), np.dtype("float64"))
    assert found.dtype == np.int64
    assert found.tolist() == [0, 2]


def test_a_quoted_generator_is_still_one() -> None:
    found = one("inputs: {x: 'randn(2)', y: \"zeros(3)\"}\noutput: x.sum() + y.sum()")
    assert {name: t.shape for name, t in found.instances()[0].leaves().items()} == {
        "x": (2,),
        "y": (3,),
    }


def test_a_formula_cut_by_the_brackets_of_yaml_says_to_quote_it() -> None:
    message = error("specs: [{inputs: {x: [1]}, output: (x[0]*3).sum()}]\n")
    assert message.startswith("f.yaml:1:38: not YAML: expected ',' or '}', but got '['")
    assert message.endswith("put the expression in quotes")


@pytest.mark.parametrize("text", ["@a.npy", "`x`", "%x"])
def test_a_character_yaml_reserves_is_to_be_quoted(text: str) -> None:
    message = error(f"inputs: {{x: 1}}\noutput: {text}\n")
    assert message.startswith("f.yaml:2:9: not YAML")
    assert message.endswith("is written in quotes")


def test_an_argument_that_a_comma_cut_off_is_told_from_a_key() -> None:
    cut = load_bytes(b"{inputs: {x: [1, 2]}, output: cumsum(x, 0)}", "f", "f.yaml").errors
    assert [(error.message, error.hint) for error in cut] == [
        (
            "unknown key '0)' in a spec",
            "inside {…} YAML ends a text at a comma: put the expression in quotes",
        )
    ]
    (plain,) = load_bytes(b"{inputs: {x: 1}, output: exp(x), zz: 0}", "f", "f.yaml").errors
    assert (plain.hint or "").startswith("the keys are name, ")
