"""The checker's modules import one way: whoever verifies knows nothing of diagnoses."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import kael.checker

FOLDER = Path(kael.checker.__file__).parent


def imports_of(path):
    """The modules of the checker that a module imports, wherever it does so, but for type names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node in typing_only:
            continue
        if node.module == "kael.checker":
            found |= {alias.name for alias in node.names}
        elif node.module and node.module.startswith("kael.checker."):
            found.add(node.module.split(".")[2])
    return found


IMPORTS = {path.stem: imports_of(path) for path in FOLDER.glob("*.py") if path.stem != "__init__"}


def test_there_is_no_circle():
    assert list(TopologicalSorter(IMPORTS).static_order())


def test_verification_does_not_reach_diagnosis():
    reached, pending = set(), ["verification"]
    while pending:
        module = pending.pop()
        if module not in reached:
            reached.add(module)
            pending += IMPORTS.get(module, ())
    assert reached.isdisjoint({"diagnosis", "nodewise", "evidence", "faults"})
