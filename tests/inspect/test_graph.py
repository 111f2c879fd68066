"""The graph walk, its ids and names, and the folding of large graphs."""

import pytest

import kael
from kael.inspect.folding import fold
from kael.inspect.graph import graph_of


def leaf(values):
    return kael.tensor(values, requires_grad=True)


def labels(graph):
    return [node.label for node in graph.nodes]


def links(graph):
    return [(e.source.id, e.target.id, list(e.shape)) for e in graph.edges]


@pytest.fixture
def gate():
    x, w = leaf([1.0, 2.0]), leaf([0.5, -1.0])
    u = x * w
    v = u + x
    return kael.tanh(v).sum(), {"x": x, "w": w, "u": u, "v": v}


def test_nodes_are_numbered_in_the_order_the_engine_runs_them(gate):
    loss, names = gate
    graph = graph_of(loss, {"x": names["x"], "w": names["w"]})
    assert labels(graph) == [
        "SumBackward",
        "TanhBackward",
        "AddBackward",
        "MulBackward",
        "AccumulateGrad (w)",
        "AccumulateGrad (x)",
    ]
    assert [node.id for node in graph.nodes] == ["n0", "n1", "n2", "n3", "n4", "n5"]
    assert links(graph) == [
        ("n0", "n1", [2]),
        ("n1", "n2", [2]),
        ("n2", "n3", [2]),
        ("n2", "n5", [2]),
        ("n3", "n5", [2]),
        ("n3", "n4", [2]),
    ]


def test_json_has_the_nodes_and_the_edges(gate):
    loss, names = gate
    document = graph_of(loss, names).as_json()
    assert document["nodes"][0] == {
        "id": "n0",
        "name": "SumBackward",
        "label": "SumBackward",
        "shape": [],
    }
    assert document["nodes"][3]["label"] == "MulBackward (u)"
    assert document["nodes"][3]["name"] == "MulBackward"
    assert document["edges"][0] == {"from": "n0", "to": "n1", "shape": [2]}


def test_a_leaf_is_its_one_accumulator():
    x = leaf([1.0])
    assert labels(graph_of(x, {"x": x})) == ["AccumulateGrad (x)"]


def test_the_first_name_of_a_tensor_wins_and_lists_are_indexed():
    x = leaf([1.0, 2.0])
    y, z = x * 2, x * 3
    graph = graph_of(y + z, {"x": x, "also_x": x, "parts": [y, z], "n": 3, "c": kael.tensor([1.0])})
    assert labels(graph) == [
        "AddBackward",
        "MulBackward (parts[1])",
        "MulBackward (parts[0])",
        "AccumulateGrad (x)",
    ]


class Both(kael.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x.sum()

    @staticmethod
    def backward(ctx, first, second):
        return first * 2 + second


def test_a_function_of_several_outputs_is_one_node_with_an_edge_an_output():
    x = leaf([1.0, 2.0])
    doubled, total = Both.apply(x)
    graph = graph_of((doubled * total).sum(), {"x": x, "total": total})
    assert labels(graph) == [
        "SumBackward",
        "MulBackward",
        "BothBackward (total)",
        "AccumulateGrad (x)",
    ]
    assert links(graph) == [
        ("n0", "n1", [2]),
        ("n1", "n2", [2]),
        ("n1", "n2", []),
        ("n2", "n3", [2]),
    ]
    assert graph.nodes[2].shape == [[2], []]
    assert graph.nodes[2].kind == "function"


@pytest.mark.parametrize("tensor", [kael.tensor([1.0]), kael.tensor([1.0]) * 2])
def test_a_tensor_without_a_graph_is_refused(tensor):
    with pytest.raises(kael.KaelError, match="does not require grad"):
        graph_of(tensor)


def loop(steps, x, w):
    y = x
    for _ in range(steps):
        y = kael.tanh(y * w)
    return y


def test_a_loop_of_many_operations_is_folded_into_its_pattern():
    x, w = leaf([1.0]), leaf([0.5])
    graph = graph_of(loop(10_000, x, w).sum(), {"x": x, "w": w})
    assert graph.size == 20_003
    folded = fold(graph, 10)
    assert labels(folded) == [
        "SumBackward",
        "TanhBackward x 9999",
        "MulBackward x 9999",
        "TanhBackward",
        "MulBackward",
        "AccumulateGrad (w)",
        "AccumulateGrad (x)",
    ]
    assert links(folded) == [
        ("n0", "n1", [1]),
        ("n1", "n2", [1]),
        ("n2", "n5", [1]),
        ("n2", "n3", [1]),
        ("n3", "n4", [1]),
        ("n4", "n6", [1]),
        ("n4", "n5", [1]),
    ]
    assert folded.size == graph.size


def test_layers_with_a_weight_each_fold_their_weights_too():
    x = leaf([1.0])
    weights = {f"w{i}": leaf([0.5]) for i in range(100)}
    y = x
    for w in weights.values():
        y = kael.tanh(y * w)
    graph = graph_of(y, {"x": x, **weights})
    assert graph.size == 301
    shown = labels(fold(graph, 20))
    assert "AccumulateGrad (w99, w98, … w1) x 99" in shown


def test_what_does_not_repeat_is_cut_far_from_the_output():
    x = leaf([1.0])
    y = x
    functions = (kael.sin, kael.cos, kael.exp, kael.tanh)
    for i in range(60):
        y = functions[(i * i * 7 // 3) % 4](y) * x if i % 7 else functions[i % 4](y)
    graph = graph_of(y, {"x": x})
    cut = fold(graph, 8)
    assert len(cut.nodes) == 8
    assert [node.kind for node in cut.nodes].count("folded") == 1
    assert labels(cut)[-1] == "AccumulateGrad (x)"
    assert cut.size == graph.size
    total = sum(len(node.nodes) for node in cut.nodes)
    assert total == graph.size


def test_a_small_graph_is_not_folded(gate):
    graph = graph_of(gate[0])
    assert fold(graph, 6) is graph
