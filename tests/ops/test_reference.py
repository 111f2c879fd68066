"""The operation reference: its rows are the declarations', and the committed page is current."""

import subprocess
import sys

import pytest

from kael.ops import COMPOSITES, REGISTRY, reference


def row_of(name):
    return next(row for row in reference.rows() if row["name"] == name)


def test_the_committed_page_is_current():
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), (
        "run python -m kael.ops.reference"
    )


def test_the_order_of_the_page_is_not_that_of_use():
    code = "import kael; kael.{}; from kael.ops import reference as r; print(r.page())"
    pages = {
        subprocess.run(
            [sys.executable, "-c", code.format(first)], capture_output=True, check=True
        ).stdout
        for first in ("conv2d", "softmax", "einsum", "matmul")
    }
    assert len(pages) == 1


def test_every_operation_has_one_row():
    names = [row["name"] for row in reference.rows()]
    assert sorted(names) == sorted([*REGISTRY, *COMPOSITES])


def test_a_row_says_what_the_declaration_says():
    row = row_of("rsqrt")
    assert row["signature"] == "rsqrt(x)"
    assert row["node"] == "RsqrtBackward"
    assert row["derivatives"] == {"x": "g * out / x * -0.5"}
    assert row["saves"] == {"x": ["x", "out"]}
    assert row["convention"] == "-inf at 0"
    assert row["at_kink"] is None


def test_an_operation_without_a_gradient_has_no_node():
    row = row_of("floor")
    assert row["node"] is None
    assert ("gradient", "none: the result is a constant", "") in list(reference.facts(row))


def test_an_entry_of_the_page():
    assert reference.markdown([row_of("abs")]) == (
        "### `abs(x)`, `AbsBackward`\n\nReturn the absolute value.\n\n"
        "- gradient of x: `g * sign(x)` (saves x)\n- at a kink: 0\n- also: absolute\n"
    )


def test_check_tells_a_stale_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reference, "PAGE", tmp_path / "operations.md")
    assert reference.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    reference.PAGE.write_text("old", encoding="utf-8")
    assert reference.main(["--check"]) == 1


@pytest.mark.parametrize("name", ["max", "min", "sort", "topk", "median"])
def test_what_gives_a_pair_elsewhere_says_that_it_gives_values_only(name):
    row = row_of(name)
    assert "values only" in row["doc"]
    assert "no pair: " in row["convention"]
