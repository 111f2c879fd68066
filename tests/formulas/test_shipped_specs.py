"""The specs that ship with the project: all hold, and each says where its numbers come from."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

SPECS = Path(__file__).parents[2] / "specs"
FILES = sorted(p for p in SPECS.rglob("*") if p.suffix in (".yaml", ".py"))
# Who computed the expected numbers, if not kael.
SOURCES = ("by hand", "mpmath", "PyTorch")


def specs_of(path):
    document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return document.get("specs", [document])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SPECS)))
def test_shipped_spec_holds(path, gradcheck):
    verdict = gradcheck(path)
    states = {(r["spec"], r["case"]): r["status"] for r in verdict.results}
    assert {key: state for key, state in states.items() if state != "passed"} == {}
    assert verdict.compared() > 0
    assert verdict.code == 0


YAML_FILES = [path for path in FILES if path.suffix == ".yaml"]


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: str(path.relative_to(SPECS)))
def test_expectations_name_a_source_outside_kael(path):
    for spec in specs_of(path):
        assert "expect" in spec, spec["name"]
        description = spec["description"].lower()
        assert any(source.lower() in description for source in SOURCES), spec["name"]
        assert spec["tags"], spec["name"]
