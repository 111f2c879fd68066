"""Wrong backward functions are caught and named; right ones, however hard, are not called wrong."""

import numpy as np
import pytest
from mutants import RIGHT, WRONG

import kael
from kael.checker import check
from kael.checker.faults import codes

NAMED = [mutant for mutant in WRONG if mutant.code is not None]


def report(case):
    leaves = [kael.tensor(v, dtype=kael.float64, requires_grad=True) for v in case.inputs]
    return check(case.function, leaves, ["x", "y"][: len(leaves)])


@pytest.fixture(scope="module")
def diagnosed():
    return {mutant.name: report(mutant) for mutant in WRONG}


def test_there_are_enough_of_both():
    assert len(WRONG) >= 60
    assert len(RIGHT) >= 60
    assert len({case.name for case in (*WRONG, *RIGHT)}) == len(WRONG) + len(RIGHT)


@pytest.mark.parametrize("mutant", WRONG, ids=lambda mutant: mutant.name)
def test_wrong_backward_is_caught(mutant, diagnosed):
    assert diagnosed[mutant.name].status == "failed"


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_right_backward_is_not_called_wrong(case):
    found = report(case)
    assert found.status in ("passed", "inconclusive"), found.findings
    assert found.compared > 0


def test_hardly_any_right_one_stays_undecided():
    undecided = [case.name for case in RIGHT if report(case).status == "inconclusive"]
    assert undecided == ["lost to rounding"]


@pytest.mark.parametrize("mutant", WRONG, ids=lambda mutant: mutant.name)
def test_no_diagnosis_is_wrong(mutant, diagnosed):
    told = {entry.code for entry in diagnosed[mutant.name].diagnosis}
    assert told <= {mutant.code, "mismatch"}
    assert told


def test_most_faults_are_named(diagnosed):
    named = [
        mutant.name
        for mutant in NAMED
        if mutant.code in {entry.code for entry in diagnosed[mutant.name].diagnosis}
    ]
    assert len(named) >= 0.8 * len(NAMED)


def test_every_sentence_is_one_sentence_with_a_known_code(diagnosed):
    for found in diagnosed.values():
        for entry in found.diagnosis:
            assert entry.code in codes()
            assert "\n" not in entry.message
            assert entry.message[0].islower()
            assert not entry.message.endswith(".")


def test_inputs_are_as_before_after_a_diagnosis():
    mutant = NAMED[0]
    x = kael.tensor(mutant.inputs[0], dtype=kael.float64, requires_grad=True)
    before, version = x.numpy().copy(), x.version
    check(mutant.function, [x])
    assert np.array_equal(x.numpy(), before)
    assert (x.version, x.grad) == (version, None)
