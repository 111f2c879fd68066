"""An instance forward and backward: its upstream gradient, its names, outside code, anomalies."""

import numpy as np
import pytest

from kael.engine.hooks import Trace
from kael.specs.place import SpecError
from kael.specs.runner import AnomalyError, Evaluated, claims_of, recorded
from kael.specs.targets import resolve


def instance(text):
    found = resolve(["-"], stdin=text.encode)
    assert not found.errors
    return found.instances[0]


VECTOR = "inputs: {x: [1, 2]}\noutput: x * 3\n"


@pytest.mark.parametrize(
    ("line", "grad"), [("upstream: ones", [3, 3]), ("upstream: [2, -1]", [6, -3])]
)
def test_the_upstream_a_spec_names(line, grad):
    evaluated = Evaluated(instance(VECTOR + line))
    evaluated.backward()
    assert evaluated.leaves["x"].grad.tolist() == grad


def test_a_random_upstream_depends_on_the_seed_alone():
    one = instance(VECTOR + "upstream: randn")
    first, again, other = (Evaluated(one, seed).upstream() for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_without_an_upstream_only_ones_on_request():
    evaluated = Evaluated(instance(VECTOR))
    with pytest.raises(SpecError, match="only for scalar outputs, got shape \\[2\\]") as caught:
        evaluated.backward()
    assert "upstream: ones" in caught.value.hint
    evaluated.backward(ones=True)
    assert evaluated.leaves["x"].grad.tolist() == [3, 3]


def test_an_upstream_of_another_shape_is_refused_where_it_stands():
    with pytest.raises(SpecError, match=r"gradient shape \[3\] does not match") as caught:
        Evaluated(instance(VECTOR + "upstream: [1, 2, 3]")).backward()
    assert caught.value.place.line == 3


def test_names_are_leaves_and_lets():
    evaluated = Evaluated(instance("inputs: {x: [1, 2]}\nlet: {u: x * 2}\noutput: u.sum()\n"))
    assert list(evaluated.names) == ["x", "u"]


def test_claims_see_leaves_and_lets():
    text = "inputs: {x: [1, 2]}\nlet: {u: x * x}\noutput: u.sum()\nderivatives: {x: 2 * u / x}\n"
    assert claims_of(Evaluated(instance(text)))["x"].tolist() == [2, 4]


def test_an_anomaly_names_the_sub_expression(tmp_path):
    text = "inputs: {x: [0, 1]}\noutput: where(x > 0, log(x), x).sum()\n"
    evaluated = recorded(instance(text))
    with pytest.raises(AnomalyError, match="LogBackward returned NaN") as caught:
        evaluated.backward(anomaly=True)
    assert (caught.value.place.line, caught.value.place.column) == (2, 22)


OUTSIDE = """\
import numpy as np
import kael

@kael.spec(x=[1.0, 2.0], grad=lambda x: 2 * x)
def square(x):
    return (x * x).sum()
"""


def test_outside_code_has_gradients_and_no_graph(tmp_path):
    path = tmp_path / "outside.py"
    path.write_text(OUTSIDE)
    (square,) = resolve([str(path)]).instances
    evaluated = Evaluated(square)
    evaluated.backward(Trace(None))
    assert evaluated.output.tolist() == 5
    assert evaluated.leaves["x"].grad.tolist() == [2, 4]
    with pytest.raises(SpecError, match="records no graph"):
        recorded(square)
