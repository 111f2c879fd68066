"""Trace rows and their formats, exactly."""

import numpy as np
import pytest

import kael
from kael.engine.backward import backward
from kael.inspect import trace
from kael.inspect.recorder import Recorder
from kael.specs.expression import current_span, parse


def rows_of(text, **inputs):
    leaves = {name: kael.tensor(value, requires_grad=True) for name, value in inputs.items()}
    recorder = Recorder(current_span)
    with recorder.observing():
        output = parse(text).evaluate(leaves)
    tracer = trace.Tracer(leaves, recorder)
    backward(output, np.ones(output.shape), watch=tracer)
    return tracer.rows


@pytest.fixture
def gate():
    return rows_of("tanh(x*w + x).sum()", x=[1.0, 2.0], w=[0.5, -1.0])


def test_the_lines_are_those_of_the_engine(gate):
    assert trace.lines(gate) == [
        "backward SumBackward shape=[] norm=1",
        "backward TanhBackward shape=[2] norm=1.41421",
        "backward AddBackward shape=[2] norm=1.0162",
        "backward MulBackward shape=[2] norm=1.0162",
        "backward AccumulateGrad shape=[2] norm=2.00815",
        "backward AccumulateGrad shape=[2] norm=0.27106",
    ]


def test_the_diamond_waits_for_both_paths():
    assert trace.lines(rows_of("(x*2 + x*3).sum()", x=[1.0, 2.0])) == [
        "backward SumBackward shape=[] norm=1",
        "backward AddBackward shape=[2] norm=1.41421",
        "backward MulBackward shape=[2] norm=1.41421",
        "backward MulBackward shape=[2] norm=1.41421",
        "backward AccumulateGrad shape=[2] norm=7.07107",
    ]


def test_small_gradients_are_printed_in_full(gate):
    assert trace.lines(gate, values=True)[3:5] == [
        "backward MulBackward shape=[2] norm=1.0162 [0.180707, 1]",
        "backward AccumulateGrad shape=[2] norm=2.00815 [0.180707, 2]",
    ]


def test_the_table_names_sub_expressions_and_their_places(gate):
    assert trace.table(gate, times=False) == [
        "step  node            name  expression           at   shape     norm       min"
        "      max  nan/inf",
        "   1  SumBackward           tanh(x*w + x).sum()  1:1  []           1         1"
        "        1        0",
        "   2  TanhBackward          tanh(x*w + x)        1:1  [2]    1.41421         1"
        "        1        0",
        "   3  AddBackward           x*w + x              1:6  [2]     1.0162  0.180707"
        "        1        0",
        "   4  MulBackward           x*w                  1:6  [2]     1.0162  0.180707"
        "        1        0",
        "   5  AccumulateGrad  w                               [2]    2.00815  0.180707"
        "        2        0",
        "   6  AccumulateGrad  x                               [2]    0.27106         0"
        "  0.27106        0",
    ]
    assert trace.table(gate)[0].endswith("nan/inf     ms")


def test_json_has_one_record_a_step(gate):
    records = trace.records(gate, values=True)
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5, 6]
    assert records[0] == {
        "step": 1,
        "node": "SumBackward",
        "name": None,
        "shape": [],
        "norm": 1.0,
        "expr": "tanh(x*w + x).sum()",
        "value": 1.0,
    }
    assert records[4]["name"] == "w"
    assert records[4]["value"] == pytest.approx([0.18070663892364836, 2.0])


@pytest.mark.parametrize(
    ("only", "steps"),
    [("MulBackward", [4]), ("Mul", [4]), ("x", [6]), ("Accumulate*", [5, 6]), ("T*", [2])],
)
def test_only_some_nodes(gate, only, steps):
    assert [row.step for row in trace.selected(gate, only)] == steps


def test_a_node_that_is_not_there_is_an_error(gate):
    with pytest.raises(kael.KaelError, match=r"'Exp'; there are AccumulateGrad, AddBackward"):
        trace.selected(gate, "Exp")


def test_the_largest_by_norm_keep_their_order(gate):
    assert [row.step for row in trace.selected(gate, top=2)] == [2, 5]
    assert trace.selected(gate, top=100) == gate


def test_vanishing_exploding_zero_and_non_finite_gradients_are_marked():
    rows = rows_of("(x * 1e-9).sum()", x=[1.0, 2.0])
    assert [row.mark for row in rows] == [None, None, "vanishing"]
    rows = rows_of("(x * 1e9).sum()", x=[1.0])
    assert trace.lines(rows, marks=True)[2] == (
        "backward AccumulateGrad shape=[1] norm=1e+09  (exploding)"
    )
    assert [row.mark for row in rows_of("(x * 0).sum()", x=[1.0])][-1] == "zero"
    rows = rows_of("sqrt(x).sum()", x=[0.0, 4.0])
    assert rows[-1].mark == "not finite"
    assert trace.records(rows)[-1]["norm"] == "Infinity"
    assert trace.table(rows, times=False)[-1].split() == [
        "3", "AccumulateGrad", "x", "[2]", "inf", "0.25", "0.25", "1", "not", "finite",
    ]  # fmt: skip


def test_a_broadcast_alone_marks_nothing():
    rows = rows_of("x.expand(100000).sum()", x=[1.0])
    assert [row.mark for row in rows] == [None, None, None]
