"""`kael warmup` says what was compiled and how long it took; the kernels here are stand-ins."""

import json

import pytest

from kael.kernels import tiers


@pytest.fixture
def kernels(monkeypatch):
    monkeypatch.setattr("kael.kernels.warmup", lambda: iter([("exp float64", 0.5), ("sum", 0.25)]))


def test_each_kernel_and_the_total(kael, kernels):
    assert kael("warmup") == (0, "exp float64  0.50s\nsum  0.25s\n2 kernels ready in 0.75s\n", "")
    assert kael("warmup", "-q").out == "2 kernels ready in 0.75s\n"


def test_as_json(kael, kernels):
    document = json.loads(kael("warmup", "--format", "json").out)
    assert document["results"][0] == {"kernel": "exp float64", "seconds": 0.5}


def test_a_compiler_that_fails_is_noted_and_breaks_nothing(kael, kernels, monkeypatch):
    monkeypatch.setattr(tiers, "failure", lambda: "no compiler")
    ran = kael("warmup")
    assert ran.code == 0
    assert ran.err == "note: compiled kernels are not used, NumPy runs instead: no compiler\n"
