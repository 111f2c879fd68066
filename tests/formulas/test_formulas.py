"""Published formulas: the right ones pass, each wrong statement fails, and nothing beside it."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
RIGHT = sorted(HERE.glob("*.yaml"))
# What is wrong in each file: the kind of the failing checks and the inputs they are about.
WRONG = {
    "arrhenius-temperature": ("derivative", {"T"}),
    "booth-gradient": ("derivative", {"x"}),
    "charbonnier-golden": ("expect", {None}),
    "hill-coefficient-slope": ("derivative", {"n"}),
    "log-barrier-sign": ("derivative", {"x"}),
    "nguyen-10-golden": ("expect", {"x", "y"}),
    "sigmoid-mlp-missing-slope": ("derivative", {"W"}),
}


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_formula_passes(path, gradcheck):
    verdict = gradcheck(path)
    assert verdict.failed() == []
    assert {result["status"] for result in verdict.results} == {"passed"}
    assert verdict.compared() > 0
    assert verdict.code == 0


@pytest.mark.parametrize("name", WRONG)
def test_wrong_statement_fails_alone(name, gradcheck):
    verdict = gradcheck(HERE / "wrong" / f"{name}.yaml")
    kind, inputs = WRONG[name]
    assert {found for found, _ in verdict.failed()} == {kind}
    assert {about for _, about in verdict.failed()} == inputs
    assert verdict.code == 1


def test_every_wrong_file_is_listed():
    assert {path.stem for path in (HERE / "wrong").glob("*.yaml")} == set(WRONG)
