"""The same formulas in float32: right ones are never called wrong, wrong ones still are."""

import json
from pathlib import Path

import pytest

from kael_cli.main import main

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def statuses(capsys, *arguments):
    capsys.readouterr()
    main(["check", *map(str, arguments), "--dtype", "float32", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    return {(row["spec"], row["case"]): row["status"] for row in document["results"]}


def test_shipped_specs_are_not_called_wrong(capsys):
    found = statuses(capsys, ROOT / "specs")
    assert set(found.values()) <= {"passed", "inconclusive"}
    assert sum(status == "passed" for status in found.values()) >= 0.9 * len(found)


def test_right_formulas_pass_and_wrong_ones_fail(capsys):
    wrong = {path.stem for path in (HERE / "wrong").glob("*.yaml")}
    found = statuses(capsys, HERE)
    assert wrong
    for (spec, _), status in found.items():
        assert status == ("failed" if spec in wrong else "passed"), spec


@pytest.mark.parametrize(("claim", "status"), [("pi", "passed"), ("3.14", "failed")])
def test_a_claim_is_held_to_more_than_differences_show(capsys, tmp_path, claim, status):
    path = tmp_path / "wave.yaml"
    path.write_text(
        "inputs: {x: [0.3, 0.7]}\n"
        "output: sin(pi*x).sum()\n"
        f"derivatives: {{x: {claim}*cos(pi*x)}}\n"
    )
    assert statuses(capsys, path) == {("wave", None): status}


HANDWRITTEN = """
import kael
from kael.autograd import Function


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        {returned}


@kael.spec(x=kael.Input([0.5, 1.5], dtype="float32"))
def square(x):
    return Square.apply(x).sum()
"""


@pytest.mark.parametrize(
    ("returned", "status"),
    [
        ("return 2 * g * x", "passed"),
        ("return (4 if x.dtype == kael.float32 else 2) * g * x", "failed"),
        ('return (2 * g * x).to("float64")', "failed"),
    ],
)
def test_what_is_wrong_in_float32_alone_is_not_put_down_to_rounding(
    capsys, tmp_path, returned, status
):
    path = tmp_path / "square.py"
    path.write_text(HANDWRITTEN.format(returned=returned))
    assert statuses(capsys, path) == {("square", None): status}
