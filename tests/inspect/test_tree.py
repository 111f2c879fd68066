"""The text tree, exactly."""

import kael
from kael.inspect.tree import graph_tree


def leaf(values):
    return kael.tensor(values, requires_grad=True)


def test_leaves_are_named_and_a_shared_node_is_marked():
    x, w = leaf([1.0, 2.0]), leaf([0.5, -1.0])
    loss = kael.tanh(x * w + x).sum()
    assert graph_tree(loss, {"x": x, "w": w}) == (
        "SumBackward\n"
        "└── TanhBackward\n"
        "    └── AddBackward\n"
        "        ├── MulBackward\n"
        "        │   ├── AccumulateGrad (x)\n"
        "        │   └── AccumulateGrad (w)\n"
        "        └── AccumulateGrad (x) same node as above\n"
    )


def test_the_diamond_with_names_and_shapes():
    x = leaf([1.0, 2.0])
    u = x * 2
    loss = (u + u * u).sum()
    assert graph_tree(loss, {"x": x, "u": u}, gradient_shapes=True) == (
        "SumBackward\n"
        "└── AddBackward [2]\n"
        "    ├── MulBackward (u) [2]\n"
        "    │   └── AccumulateGrad (x) [2]\n"
        "    └── MulBackward [2]\n"
        "        ├── MulBackward (u) [2] same node as above\n"
        "        └── MulBackward (u) [2] same node as above\n"
    )


def test_a_tree_that_doubles_stays_linear():
    y = leaf([1.0])
    for _ in range(40):
        y = y + y
    assert graph_tree(y, max_nodes=100).count("same node as above") == 40


def test_a_long_chain_is_folded_without_being_asked():
    y = leaf([0.1])
    for _ in range(10_000):
        y = kael.sin(y)
    assert graph_tree(y) == ("SinBackward x 9999\n└── SinBackward\n    └── AccumulateGrad\n")
