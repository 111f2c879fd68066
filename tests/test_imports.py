"""What may import what: the layers' order, and what a plain import does not load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kael

ROOT = Path(kael.__file__).parent
# From the bottom up; a module imports from its own layer and from those before it.
LAYERS = (
    ("version", "errors"),
    ("dtypes", "shapes"),
    ("forms",),
    ("kernels",),
    ("tensors",),
    ("engine",),
    ("ops",),
    ("checker", "inspect"),
    ("specs",),
    ("autograd", "debug"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
MODULES = sorted(ROOT.rglob("*.py"))


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def typing_only(tree: ast.Module) -> set[ast.AST]:
    """Everything under `if TYPE_CHECKING:`; a name for the type checker binds nothing."""
    return {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for child in ast.walk(statement)
    }


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = typing_only(tree)
    names: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "kael":
            names.update(f"kael.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.split(".")[1] for name in names if name.startswith("kael.")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    own = layer_of(path)
    if own in ("__init__", "micrograd"):
        return
    for name in imported(path):
        if name in RANK:
            assert RANK[name] <= RANK[own], f"{own} imports {name}"
            assert RANK[name] < RANK[own] or name == own, f"{own} imports its neighbour {name}"


def test_every_module_has_a_layer():
    assert {layer_of(path) for path in MODULES} - set(RANK) <= {"__init__", "micrograd", "testing"}


def test_nothing_below_knows_the_command_line():
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for word in ("import kael_cli", "from kael_cli", "import typer", "import rich"):
            assert word not in text, f"{path} has {word!r}"


def test_no_module_has_the_name_of_a_public_function():
    from kael.ops.names import FAMILIES

    functions = {*FAMILIES, *kael._HOME, "gradcheck", "backward"}
    top = {path.stem for path in ROOT.glob("*.py")} | {p.name for p in ROOT.iterdir() if p.is_dir()}
    assert not top & functions


def loaded(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(' '.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


HEAVY = {"numba", "scipy", "pydot", "rich", "typer", "ruamel.yaml", "msgspec", "pytest", "torch"}


def test_a_gradient_loads_nothing_heavy():
    code = """
import kael
x = kael.tensor([1.0, 2.0], requires_grad=True)
kael.tanh(x * x).sum().backward()
"""
    found = loaded(code)
    assert not found & (HEAVY | {"numpy.random", "kael.specs", "kael.checker", "kael.ops.linalg"})


def test_importing_kael_loads_no_layer():
    assert "kael.ops" not in loaded("import kael")


def test_public_names_exist():
    for name in dir(kael):
        assert getattr(kael, name) is not None
    for name in kael.autograd.__all__:
        assert getattr(kael.autograd, name) is not None
    for name in kael.debug.__all__:
        assert getattr(kael.debug, name) is not None


@pytest.mark.parametrize("module", ["kael", "kael.autograd", "kael.debug"])
def test_unknown_names_are_attribute_errors(module):
    import importlib

    with pytest.raises(AttributeError, match="no_such_name"):
        _ = importlib.import_module(module).no_such_name
