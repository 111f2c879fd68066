"""Python specs: the decorator, and the loading of files."""
# ruff: noqa: E501 (a table reads better with a case a line)

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kael
from kael.specs.model import Instance, Spec
from kael.specs.place import SpecError
from kael.specs.python_loader import load, mentions_specs, spec
from kael.specs.yaml_loader import Loaded


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str, name: str = "loss.py", seed: int = 0) -> Loaded:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return load(str(path), name, seed)

    return write


def only(loaded: Loaded) -> Spec:
    assert [str(error) for error in loaded.errors] == []
    (found,) = loaded.specs
    return found


def base(loaded: Loaded) -> Instance:
    return only(loaded).instances()[0]


LOSS = """\
    import kael

    @kael.spec(
        w=[0.5, -1, 2], x=kael.randn(3), i=kael.tensor([0, 1]), tags=["loss"],
        c=kael.Input(value=[1], requires_grad=False),
    )
    def loss(x, w, i, c):
        '''What it is.'''
        return (kael.tanh(x * w) * c).sum()
    """


def test_inputs_and_keys(file: Any) -> None:
    found = only(file(LOSS))
    assert (found.name, found.description, found.tags) == ("loss", "What it is.", ("loss",))
    assert str(found.place) == "loss.py:7:1"
    assert list(found.inputs) == ["x", "w", "i", "c"]
    instance = found.instances()[0]
    leaves = instance.leaves()
    assert {name: (str(t.dtype), t.requires_grad) for name, t in leaves.items()} == {
        "x": ("float64", True),
        "w": ("float64", True),
        "i": ("int64", False),
        "c": ("float64", False),
    }
    output = instance.forward(leaves)
    expected = np.tanh(leaves["x"].numpy() * leaves["w"].numpy()).sum()
    assert output.item() == pytest.approx(expected)


def test_the_function_itself_is_returned() -> None:
    def double(x: Any) -> Any:
        return x * 2

    assert spec(x=[1.0])(double) is double


def test_tensors_own_flag_does_not_matter(file: Any) -> None:
    text = """\
        import kael
        x = kael.tensor([1.0], requires_grad=True)
        @kael.spec(x=x, y=kael.tensor([1.0]))
        def f(x, y):
            return (x * y).sum()
        """
    leaves = base(file(text)).leaves()
    assert leaves["x"].requires_grad
    assert leaves["y"].requires_grad


def test_the_global_generator_depends_on_seed_and_file_name_alone(file: Any) -> None:
    def drawn(name: str, seed: int) -> Any:
        return base(file(LOSS, name, seed)).leaves()["x"].tolist()

    first = drawn("loss.py", 0)
    kael.manual_seed(99)
    assert drawn("loss.py", 0) == first
    assert drawn("loss.py", 1) != first
    assert drawn("other.py", 0) != first


def test_generated_inputs_have_their_own_stream(file: Any) -> None:
    text = """\
        import kael
        @kael.spec({}=kael.Input(shape=[3]), {}=kael.Input(shape=[3], init="uniform", low=1, high=2))
        def f(a, b):
            return (a * b).sum()
        """
    first = base(file(text.format("a", "b"))).leaves(seed=0)
    again = base(file(text.format("a", "b"))).leaves(seed=0)
    assert first["a"].tolist() == again["a"].tolist()
    assert base(file(text.format("a", "b"))).leaves(seed=1)["a"].tolist() != first["a"].tolist()
    assert 1 <= min(first["b"].tolist()) <= max(first["b"].tolist()) <= 2


def test_all_keys(file: Any) -> None:
    text = """\
        import kael
        import numpy as np
        @kael.spec(
            x=[1.0, 2.0], t=np.array([0, 1]),
            name="named", description="d", upstream="ones",
            expect=dict(value=[2.0, 4.0], grad=dict(x=np.array([2.0, 2.0])), atol=1e-8),
            derivatives=dict(x="2 + 0*x"),
            gradcheck=dict(mode="full", inputs=["x"]), xfail="why", skip=True,
            cases=dict(zero=dict(x=[0, 0]), turned=dict(inputs=dict(t=[1, 0]), expect=dict(value=1))),
        )
        def f(x, t):
            return x * 2
        """
    found = only(file(text))
    assert (found.name, found.description, found.upstream) == ("named", "d", "ones")
    assert found.expect is not None
    assert found.expect.atol == 1e-8
    assert found.gradcheck == {"mode": "full", "inputs": ("x",)}
    assert (found.xfail, found.skip) == ("why", "no reason given")
    instance, zero, turned = found.instances()
    np.testing.assert_array_equal(instance.claim("x", instance.leaves()), [2.0, 2.0])
    assert zero.leaves()["x"].tolist() == [0.0, 0.0]
    assert turned.leaves()["t"].dtype == np.int64
    assert turned.expect is not None


@pytest.mark.parametrize(
    ("claims", "place"),
    [
        ('{"x": "2 + tahn(x)"}', "loss.py:2:53"),
        ('{\n  "x": "2 + 0*x", "w": "x*\\u0077 + tahn(x)"}', "loss.py:4:1"),  # not as it is written
        ('{"w": "1",\n  "x": "2 + tahn(x)"}', "loss.py:3:13"),
    ],
)
def test_a_claim_has_one_place_its_own(file: Any, claims: str, place: str) -> None:
    text = f"import kael\n@kael.spec(x=[1.0], w=[2.0], derivatives={claims})\ndef f(x, w):\n"
    (error,) = file(text + "    return x * w\n").errors
    assert str(error).startswith(f"{place}: unknown operation 'tahn'")


def test_claims_as_functions_take_the_inputs_by_position(file: Any) -> None:
    text = """\
        import kael
        @kael.spec(b=[3.0], a=[2.0], derivatives={"a": lambda a, b: b, "b": lambda a, b: a})
        def f(a, b):
            return (a * b).sum()
        """
    instance = base(file(text))
    leaves = instance.leaves()
    assert instance.claim("a", leaves).tolist() == [3.0]
    assert instance.claim("b", leaves).tolist() == [2.0]


def test_code_outside_kael(file: Any) -> None:
    text = """\
        import kael
        import numpy as np
        def df(x, y):
            assert type(x) is np.ndarray
            return 2 * x, y * 0 + 1
        @kael.spec(x=[1.0, 2.0], y=[3.0], grad=df)
        def f(x, y):
            x[0] += 0
            return (x**2).sum() + y.sum()
        """
    instance = base(file(text))
    leaves = instance.leaves()
    assert instance.spec.outside
    assert instance.forward(leaves).item() == 8.0
    found = instance.outside_gradients(leaves, np.array(1.0))
    assert {name: g.tolist() for name, g in found.items() if g is not None} == {
        "x": [2, 4],
        "y": [1],
    }


def test_vjp_of_code_outside_kael(file: Any) -> None:
    text = """\
        import kael
        @kael.spec(x=[1.0, 2.0], vjp=lambda g, x: g * 2 * x)
        def f(x):
            return x**2
        """
    instance = base(file(text))
    found = instance.outside_gradients(instance.leaves(), np.array([1.0, 10.0]))
    assert found["x"] is not None
    assert found["x"].tolist() == [2.0, 40.0]


@pytest.mark.parametrize(
    ("keywords", "parameters", "message"),
    [
        ("x=1, tgas=[]", "x", "unknown keyword 'tgas' in @kael.spec; did you mean 'tags'?"),
        ("x=1", "x, y", "the parameter 'y' has no input"),
        ("", "", "a spec has at least one input"),
        ("x=[[1], [2, 3]]", "x", "ragged list: 2 items here, 1 in the lists before it"),
        ("x='a'", "x", "input 'x' must be made of numbers, got str"),
        ("x=kael.Input(value=1, shape=[2])", "x", "'value' and 'shape' exclude each other"),
        (
            "x=kael.Input(value=1, dtype='int64', requires_grad=True)",
            "x",
            "an input of dtype int64",
        ),
        ("x=1, upstream='oens'", "x", "unknown upstream 'oens'; did you mean 'ones'?"),
        ("x=1, expect=dict(valeu=1)", "x", "unknown key 'valeu' in expect; did you mean 'value'?"),
        ("x=1, expect=dict(grad=dict(y=1))", "x", "there is no input 'y'"),
        ("x=1, derivatives=dict(x=[1])", "x", "the derivative of 'x' must be a function or an"),
        ("x=1, gradcheck=dict(mode='ful')", "x", "unknown mode 'ful'; did you mean 'full'?"),
        ("x=1, gradcheck=dict(eps='a')", "x", "eps must be a finite number that is not negative"),
        ("x=1, gradcheck=dict(atol=float('inf'))", "x", "atol must be a finite number"),
        ("x=1, cases={'a\\nb': {'x': 2}}", "x", "a name is one line of text"),
        (
            "x=1, cases={'a': {'inputs': {'x': 2}, 'skip': 'r'}}",
            "x",
            "unknown key 'skip' in case 'a'",
        ),
        ("x=1", "x, /", "the parameter 'x' is positional only"),
        ("x=1, cases=dict(a=dict(q=1))", "x", "there is no input 'q'"),
        ("x=1, tags='a'", "x", "tags must be a list of words"),
        ("x=1, grad=3", "x", "grad must be a function, got int"),
        ("x=1, grad=abs, vjp=abs", "x", "'grad' and 'vjp' exclude each other"),
        (
            "x=1, grad=abs, derivatives={'x': '9*x'}",
            "x",
            "'grad' claims the gradient already: leave out 'derivatives'",
        ),
        ("x=1, name=''", "x", "a name is one line of text"),
        ("x=1, name='a\\nb'", "x", "a name is one line of text"),
        ("x=1, name=3", "x", "name must be text"),
        ("x=1, xfail=3", "x", "xfail must be a reason"),
    ],
)
def test_errors_at_the_def(file: Any, keywords: str, parameters: str, message: str) -> None:
    loaded = file(
        f"""\
        import kael

        @kael.spec({keywords})
        def f({parameters}):
            return x

        @kael.spec(x=1)
        def good(x):
            return x * 2
        """
    )
    (error,) = loaded.errors
    assert error.message.startswith(message)
    assert "loss.py:4:1" in str(error)
    assert [found.name for found in loaded.specs] == ["good"]


def test_decorator_without_parentheses(file: Any) -> None:
    (error,) = file("import kael\n@kael.spec\ndef f(x):\n    return x\n").errors
    assert "takes keyword arguments" in str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import kael\n1/0\n", "loss.py:2: ZeroDivisionError: division by zero\n  1/0"),
        ("x = (\n", "loss.py:1:5: SyntaxError: '(' was never closed\n  x = (\n      ^"),
        ("import sys\nsys.exit(3)\n", "loss.py:2: SystemExit: sys.exit(3) was called"),
        ("import no_such_module_here\n", "loss.py:1: ModuleNotFoundError: No module named"),
        ("raise KeyError('a')\n", "loss.py:1: KeyError: 'a'"),
    ],
)
def test_what_a_file_raises_is_one_error(file: Any, text: str, expected: str) -> None:
    loaded = file(text)
    (error,) = loaded.errors
    assert str(error).startswith(expected)
    assert "Traceback" not in str(error)
    assert "python_loader" not in str(error)


def test_specs_before_an_exception_are_kept(file: Any) -> None:
    loaded = file(
        "import kael\n@kael.spec(x=1)\ndef f(x):\n    return x\nraise ValueError('late')\n"
    )
    assert [found.name for found in loaded.specs] == ["f"]
    assert "ValueError: late" in str(loaded.errors[0])


def test_an_exception_of_the_function_shows_the_users_frames(file: Any) -> None:
    text = """\
        import kael
        def helper(x):
            raise RuntimeError("inside")
        @kael.spec(x=1)
        def f(x):
            return helper(x)
        """
    instance = base(file(text))
    instance.spec.place.file = None
    with pytest.raises(SpecError, match="f raised RuntimeError: inside"):
        instance.forward(instance.leaves())


def test_frames_of_the_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.py").write_text(
        "import kael\ndef helper(x):\n    return x @ x[0]\n"
        "@kael.spec(x=[1.0])\ndef f(x):\n    return helper(x)\n"
    )
    instance = base(load("f.py"))
    with pytest.raises(SpecError) as caught:
        instance.forward(instance.leaves())
    text = str(caught.value)
    assert text.startswith("f.py:5:1: f raised ")
    assert "f.py:6 in f" in text
    assert "f.py:3 in helper" in text
    assert "kael/ops" not in text


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("x.numpy()", "f must return a tensor, got ndarray"),
        ("float(x[0])", "f must return a tensor, got float"),
        ("None", "f must return a tensor, got nothing"),
        ("(x, x)", "f must return a tensor, got tuple"),
        ("sys.exit(2)", "f raised SystemExit: sys.exit(2) was called"),
    ],
)
def test_a_severed_graph_is_an_error(file: Any, result: str, message: str) -> None:
    text = f"import kael, sys\n@kael.spec(x=[1.0])\ndef f(x):\n    return {result}\n"
    instance = base(file(text))
    with pytest.raises(SpecError) as caught:
        instance.forward(instance.leaves())
    assert caught.value.message.startswith(message)
    assert str(caught.value).startswith("loss.py:3:1: ")


@pytest.mark.parametrize(
    ("result", "remedy"),
    [
        ("kael.tahnh(x)", "did you mean 'tanh'?"),
        ("x.tahnh()", "did you mean 'tanh'?"),
        ("np.tanh(x)", "a function of NumPy takes no tensors: use kael's (kael.tanh for np.tanh)"),
        ("kael.zzzzzzzz", None),
    ],
)
def test_what_to_write_instead(file: Any, result: str, remedy: str | None) -> None:
    text = f"import kael, numpy as np\n@kael.spec(x=[1.0])\ndef f(x):\n    return {result}\n"
    instance = base(file(text))
    with pytest.raises(SpecError) as caught:
        instance.forward(instance.leaves())
    last = str(caught.value).splitlines()[-1].strip()
    assert last.startswith(remedy) if remedy else "did you mean" not in str(caught.value)


def test_prints_go_to_stderr(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = "import kael\nprint('loading')\n@kael.spec(x=1)\ndef f(x):\n    print('running')\n    return x\n"
    instance = base(file(text))
    instance.forward(instance.leaves())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "loading\nrunning\n"


def test_modules_beside_a_file_are_importable_while_it_loads(tmp_path: Path) -> None:
    path_before, modules_before = list(sys.path), set(sys.modules)
    for folder, scale in (("a", 2), ("b", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shared_part.py").write_text(f"SCALE = {scale}\n")
        (tmp_path / folder / "s.py").write_text(
            "import kael\nfrom shared_part import SCALE\n"
            "@kael.spec(x=[1.0])\ndef f(x):\n    return x * SCALE\n"
        )
    values = []
    for folder in ("a", "b"):
        instance = base(load(str(tmp_path / folder / "s.py")))
        values.append(instance.forward(instance.leaves()).item())
    assert values == [2.0, 3.0]
    assert sys.path == path_before
    assert "shared_part" not in set(sys.modules) - modules_before


def test_equal_names_in_a_file(file: Any) -> None:
    text = "import kael\n" + "@kael.spec(x=1)\ndef f(x):\n    return x\n" * 2
    loaded = file(text)
    assert len(loaded.specs) == 1
    assert str(loaded.errors[0]).startswith("loss.py:6:1: the name 'f' is given to two specs")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("import kael\nkael.spec", True), ("kaels spec", False), ("kael specs", False), ("", False)],
)
def test_words_that_make_a_folder_import_a_file(tmp_path: Path, text: str, expected: bool) -> None:
    (tmp_path / "a.py").write_text(text)
    assert mentions_specs(str(tmp_path / "a.py")) is expected


def test_functions_of_the_autograd_module_work(file: Any) -> None:
    text = """\
        import kael

        class Square(kael.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * 2 * x

        @kael.spec(x=[3.0])
        def square(x):
            return Square.apply(x).sum()
        """
    instance = base(file(text))
    leaves = instance.leaves()
    instance.forward(leaves).backward()
    assert leaves["x"].grad is not None
    assert leaves["x"].grad.tolist() == [6.0]


LEAVES = """\
    import kael
    class Leave(BaseException): pass
    {before}
    @kael.spec(x=[1.0, 2.0])
    def f(x):
        {inside}
        return x.sum()
    """


@pytest.mark.parametrize("raised", ["Leave('gone')", "GeneratorExit('gone')", "SystemExit('gone')"])
def test_what_is_no_exception_to_python_is_an_error_of_the_spec(file: Any, raised: str) -> None:
    at_import = file(LEAVES.format(before=f"raise {raised}", inside="pass"))
    assert "gone" in str(at_import.errors[0])
    assert str(at_import.errors[0]).startswith("loss.py:3: ")
    instance = base(file(LEAVES.format(before="", inside=f"raise {raised}")))
    with pytest.raises(SpecError, match="gone"):
        instance.forward(instance.leaves())


def test_an_interrupt_is_no_error_of_the_spec(file: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        file(LEAVES.format(before="raise KeyboardInterrupt", inside="pass"))
    instance = base(file(LEAVES.format(before="", inside="raise KeyboardInterrupt")))
    with pytest.raises(KeyboardInterrupt):
        instance.forward(instance.leaves())


@pytest.mark.parametrize(
    "text", ["@kael.spec\ndef f(x): return x\n", "@kael.spec(x=1)\nclass F: pass\n"]
)
def test_a_wrong_use_of_the_decorator_has_a_place(file: Any, text: str) -> None:
    (error,) = file("import kael\n\n" + text).errors
    assert str(error).startswith("loss.py:3: @kael.spec ")


def test_an_async_function_is_refused_and_never_called(file: Any) -> None:
    (error,) = file("import kael\n@kael.spec(x=1)\nasync def f(x): return x\n").errors
    assert str(error).startswith("loss.py:3:1: a spec is a plain function, and this one is async")


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("kael.set_grad_enabled(False); kael.set_default_dtype(kael.float32)", "pass"),
        ("", "kael.set_grad_enabled(False); kael.set_default_dtype(kael.float32)"),
    ],
)
def test_modes_a_spec_sets_do_not_reach_the_next(file: Any, before: str, inside: str) -> None:
    instance = base(file(LEAVES.format(before=before, inside=inside)))
    instance.forward(instance.leaves())
    assert kael.is_grad_enabled()
    assert kael.tensor(1.5).dtype == kael.float64


def test_a_missing_file_is_looked_for_in_the_folder_as_given(file: Any) -> None:
    instance = base(
        file("import kael\n@kael.spec(x=kael.Input(file='no.npy'))\ndef f(x): return x\n")
    )
    with pytest.raises(SpecError, match="looked for in the current folder"):
        instance.leaves()


def test_a_file_that_changes_the_folder_changes_it_for_no_other(file: Any, tmp_path: Path) -> None:
    before = os.getcwd()
    text = "import os, kael\nos.chdir('/')\n@kael.spec(x=1)\ndef f(x): return x\n"
    assert str(only(file(text)).place) == "loss.py:4:1"
    assert os.getcwd() == before


def test_an_exception_class_of_the_file_has_its_own_name(file: Any) -> None:
    instance = base(file(LEAVES.format(before="", inside="raise Leave('gone')")))
    with pytest.raises(SpecError) as raised:
        instance.forward(instance.leaves())
    assert raised.value.message == "f raised Leave: gone"
