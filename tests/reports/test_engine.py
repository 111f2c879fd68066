# ruff: noqa: E501 (a table reads best with one row a line)
"""What nodes save, writes into shared memory, gradients that alias, integers in data."""

import json

import numpy as np
import pytest
from doors import Case, each_door, holds

import kael as k

STALE = "modified by an inplace operation"


def leaf(values):
    return k.tensor(values, requires_grad=True)


def written(tensor):
    with k.no_grad():
        tensor.add_(1)


# D1: the saved values, no more and no less. source: pytorch #9391

POINT = [0.25, 0.5, 0.75]
# Operations whose gradient reads the result alone: a write to the operand must not matter …
OUTPUT_ONLY = ["exp", "sigmoid", "tanh", "sqrt", "tan", "reciprocal", "expm1", "exp2"]
# … that read the operand alone: a write to the result must not matter …
INPUT_ONLY = [
    "log", "log1p", "log2", "log10", "sin", "cos", "asin", "acos", "atan", "sinh", "cosh", "square", "abs",
    "relu", "softplus", "silu", "gelu", "mish", "erf", "lgamma", "digamma", "asinh", "atanh", "logsigmoid",
]  # fmt: skip
# … and that read neither.
NEITHER = {
    "sum": k.sum, "mean": k.mean, "neg": k.neg, "plus": lambda x: x + 1, "minus": lambda x: 1 - x, "times": lambda x: x * 2,
    "over": lambda x: x / 2, "view": lambda x: x.view(3, 1), "T": lambda x: x.unsqueeze(0).T, "cumsum": lambda x: k.cumsum(x, 0),
    "cat": lambda x: k.cat([x, x]), "stack": lambda x: k.stack([x, x]), "flip": lambda x: k.flip(x, 0), "item": lambda x: x[1],
    "index": lambda x: x[[0, 0]], "pad": lambda x: k.pad(x, (1, 1)), "expand": lambda x: x.expand(2, 3), "clone": lambda x: x.clone(),
    "triu": lambda x: k.triu(x.view(1, 3)), "roll": lambda x: k.roll(x, 1, 0), "diff": k.diff, "repeat": lambda x: x.repeat(2),
}  # fmt: skip


def result_of(name):
    u = leaf(POINT) * 1
    return u, getattr(k, name)(u)


@pytest.mark.parametrize("name", OUTPUT_ONLY)
def test_an_operation_that_keeps_its_result_does_not_keep_its_operand(name):
    u, out = result_of(name)
    written(u)
    out.sum().backward()
    u, out = result_of(name)
    written(out)
    with pytest.raises(k.KaelError, match=STALE):
        out.sum().backward()


@pytest.mark.parametrize("name", INPUT_ONLY)
def test_an_operation_that_keeps_its_operand_does_not_keep_its_result(name):
    u, out = result_of(name)
    written(out)
    out.sum().backward()
    u, out = result_of(name)
    written(u)
    with pytest.raises(k.KaelError, match=STALE):
        out.sum().backward()


@pytest.mark.parametrize("name", NEITHER)
def test_an_operation_that_keeps_nothing_does_not_mind_a_write(name):
    x = leaf(POINT)
    u = x * 1
    out = NEITHER[name](u)
    right = leaf(POINT)
    NEITHER[name](right * 1).sum().backward()
    written(u)
    if name != "expand":
        written(out)
    out.sum().backward()
    assert x.grad.tolist() == right.grad.tolist()


def test_a_spelled_sigmoid_keeps_its_operands_only():
    a = leaf([1.0, 2.0, 3.0])
    b = 1 / (1 + k.exp(-a))
    with k.no_grad():
        b *= 2
    b.sum().backward()
    expected = [0.19661193324148188, 0.1049935854035065, 0.045176659730912144]
    assert a.grad.tolist() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    "spelling", ["sigmoid(a)", "1/(1 + exp(-a))", "exp(a)/(1 + exp(a))", "(1 + tanh(a/2))/2"]
)
def test_the_spellings_agree(spelling, kael):
    ran = kael("backward", f"sum({spelling})", "-i", "a=[1, 2, 3]", "--format", "json")
    grad = json.loads(ran.out)["results"][0]["grads"]["a"]["value"]
    expected = [0.19661193324148188, 0.1049935854035065, 0.045176659730912144]
    assert grad == pytest.approx(expected, rel=1e-13)


# D2: a guard that is too wide. source: pytorch #197054

BY_A_CONSTANT = {
    "*": lambda v: v * 2.0, "*t": lambda v: v * k.tensor([2.0, 3.0]), "/": lambda v: v / 2.0, "+": lambda v: v + 1.0,
    "-": lambda v: 3.0 - v, "@": lambda v: v @ k.tensor([2.0, 3.0]), "lerp": lambda v: k.lerp(v, k.tensor([1.0, 1.0]), 0.5),
    "dot": lambda v: k.dot(v, k.tensor([2.0, 3.0])), "einsum": lambda v: k.einsum("i,j->ij", v, k.tensor([2.0, 3.0])),
    "outer": lambda v: k.outer(v, k.tensor([2.0, 3.0])), "addcmul": lambda v: k.addcmul(v, k.tensor([1.0, 1.0]), k.tensor([1.0, 1.0])),
    "masked_fill": lambda v: k.masked_fill(v, k.tensor([True, False]), 0.0), "where": lambda v: k.where(k.tensor([True, False]), v, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_A_CONSTANT)
def test_a_product_with_a_constant_need_not_keep_its_operand(name):
    x, right = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    BY_A_CONSTANT[name](right.view(2)).sum().backward()
    v = x.view(2)
    out = BY_A_CONSTANT[name](v)
    written(v)
    out.sum().backward()
    assert x.grad.tolist() == right.grad.tolist()


@pytest.mark.parametrize("through", ["view", "detach", "leaf", "row"])
def test_a_square_keeps_its_operand_through_every_alias(through):
    x = leaf([1.0, 2.0])
    v = x.view(2)
    out = v * v
    aliases = {"view": v, "detach": v.detach(), "leaf": x, "row": x.detach()[:1]}
    written(aliases[through])
    with pytest.raises(k.KaelError, match=STALE):
        out.sum().backward()


# D3: writes into memory whose elements overlap. source: pytorch #4664, pytorch #4718, Paddle #79718

OVERLAPPING = {
    "expand": lambda: (base := k.ones(1, 1), base.expand(4, 5)),
    "expand one dim": lambda: (base := k.ones(4, 1), base.expand(4, 5)),
    "expand a scalar": lambda: (base := k.tensor(1.0), base.expand(4, 5)),
    "a part of it": lambda: (base := k.ones(1, 1), base.expand(4, 5)[:, 1:3]),
    "a row of it": lambda: (base := k.ones(1, 1), base.expand(4, 5)[0]),
    "its transpose": lambda: (base := k.ones(1, 1), base.expand(4, 5).T),
    "unfold": lambda: (base := k.ones(5), base.unfold(0, 4, 1)),
    "a part of unfold": lambda: (base := k.ones(5), base.unfold(0, 4, 1)[:, 1:]),
    "detached": lambda: (base := k.ones(1, 1), base.expand(4, 5).detach()),
    "unsqueezed": lambda: (base := k.ones(1, 1), base.expand(4, 5).unsqueeze(0)),
    "permuted": lambda: (base := k.ones(1, 1), base.expand(4, 5).permute(1, 0)),
}  # fmt: skip


def _iadd(t):
    t += 1


INPLACE = {
    "add_": lambda t: t.add_(1), "sub_": lambda t: t.sub_(1), "mul_": lambda t: t.mul_(2), "div_": lambda t: t.div_(2),
    "fill_": lambda t: t.fill_(7), "zero_": lambda t: t.zero_(), "copy_": lambda t: t.copy_(k.tensor(9.0)),
    "clamp_": lambda t: t.clamp_(2, 3), "masked_fill_": lambda t: t.masked_fill_(k.tensor(True), 5.0),
    "index_add_": lambda t: t.index_add_(0, k.tensor([0]), k.ones(*t[:1].shape)),
    "scatter_add_": lambda t: t.scatter_add_(0, k.zeros(*t.shape).to(k.int64), k.ones(*t.shape)),
    "__setitem__": lambda t: t.__setitem__(0, 4.0), "slice": lambda t: t.__setitem__(slice(None), 4.0),
    "mask": lambda t: t.__setitem__(t > 0, 4.0), "+=": _iadd,
}  # fmt: skip


@pytest.mark.parametrize("write", INPLACE)
@pytest.mark.parametrize("view", OVERLAPPING)
def test_no_write_into_overlapping_elements(view, write):
    base, overlapping = OVERLAPPING[view]()
    with pytest.raises(k.KaelError, match=r"share memory.*clone"):
        INPLACE[write](overlapping)
    assert np.all(base.numpy() == 1)
    assert base.version == 0
    INPLACE[write](overlapping.clone())


@pytest.mark.parametrize("write", INPLACE)
def test_a_view_without_overlap_is_written_into(write):
    base = k.ones(4, 5)
    INPLACE[write](base[1:3].T)
    assert base.version == 1
    assert not np.all(base.numpy() == 1)


# D4: gradients that share a buffer. source: pytorch #34082, oneflow #9497, pytorch #46168

PASSED_ON = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - (-y), "+ through views": lambda x, y: x.view(2) + y.view(2),
    "cat": lambda x, y: k.cat([x, y]), "stack": lambda x, y: k.stack([x, y]), "clone": lambda x, y: x.clone() + y.clone(),
    "expand": lambda x, y: x.expand(3, 2) + y.expand(3, 2), "sum": lambda x, y: x.sum() + y.sum(),
    "unsqueeze": lambda x, y: x.unsqueeze(0) + y.unsqueeze(0), "squeeze": lambda x, y: x.unsqueeze(0).squeeze(0) + y,
    "T": lambda x, y: x.unsqueeze(0).T + y.unsqueeze(0).T, "flip": lambda x, y: k.flip(x, 0) + k.flip(y, 0),
    "slice": lambda x, y: x[0:2] + y[:], "permute": lambda x, y: x.view(1, 2).permute(1, 0) + y.view(1, 2).permute(1, 0),
    "to": lambda x, y: x.to(k.float64) + y.to(k.float64), "where": lambda x, y: k.where(k.tensor(True), x, y) + y,
    "addcmul": lambda x, y: k.addcmul(x, k.tensor(0.0), k.tensor(0.0)) + y, "relu": lambda x, y: k.relu(x) + k.relu(y),
    "clamp": lambda x, y: k.clamp(x, 0, 9) + k.clamp(y, 0, 9), "remainder": lambda x, y: k.remainder(x, 9.0) + y,
    "index": lambda x, y: x[[0, 1]] + y[[0, 1]], "diagonal": lambda x, y: k.diagonal(x.expand(2, 2)) + y,
    "reshape": lambda x, y: x.reshape(2, 1) + y.reshape(2, 1), "unfold": lambda x, y: x.unfold(0, 1, 1) + y.unfold(0, 1, 1),
    "mean": lambda x, y: x.mean() + y.mean(), "repeat": lambda x, y: x.repeat(1) + y.repeat(1),
    "roll": lambda x, y: k.roll(x, 0, 0) + y, "pad": lambda x, y: k.pad(x, (0, 0)) + y, "+0": lambda x, y: (x + 0) + (y + 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PASSED_ON)
def test_no_two_gradients_share_memory(name):
    function = PASSED_ON[name]
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    function(x, y).sum().backward()
    before = y.grad.tolist()
    assert not np.shares_memory(x.grad.numpy(), y.grad.numpy())
    x.grad.fill_(99)
    assert y.grad.tolist() == before
    function(x, y).sum().backward()
    assert y.grad.tolist() == [2 * g for g in before]
    y.grad.mul_(3)
    assert x.grad.tolist() != y.grad.tolist()


@pytest.mark.parametrize("name", PASSED_ON)
def test_an_upstream_gradient_that_is_handed_in_stays_the_users(name):
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    out = PASSED_ON[name](x, y)
    seed = k.ones(*out.shape)
    out.backward(seed)
    for grad in (x.grad, y.grad):
        assert not np.shares_memory(grad.numpy(), seed.numpy())
        grad.fill_(99)
    assert np.all(seed.numpy() == 1)


def test_a_leaf_and_a_retained_intermediate_do_not_share():
    x = leaf([1.0, 2.0])
    y = x + 0
    y.retain_grad()
    y.sum().backward()
    y.grad.fill_(99)
    assert x.grad.tolist() == [1, 1]


# D5: numbers typed without a point. source: jax #424, autograd #482, jax #2663

WHOLE = [
    Case("sum(x**2)", {"x": [1, 2, 3]}, 14, {"x": [2, 4, 6]}),
    Case("x**2", {"x": 3}, 9, {"x": 6}),
    Case("x / 2", {"x": [1, 2]}, [0.5, 1], {"x": [0.5, 0.5]}),
    Case("sum(x * w)", {"x": [1, 2]}, 11, {"x": [3, 4]}, None, {"w": [3, 4]}),
]  # fmt: skip


@each_door
@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.text)
def test_whole_numbers_are_real_where_a_gradient_is_asked_for(case, door, kael, tmp_path):
    holds(case, door, kael, tmp_path)


def of_file(kael, *arguments):
    ran = kael("backward", *arguments, "--format", "json")
    (row,) = json.loads(ran.out)["results"]
    return row, ran.code


@pytest.mark.parametrize(
    "text",
    ["[1, 2, 3]", "[1,2,3]", "linspace(1, 3, 3)", "[1e0, 2, 3]"],
)
def test_every_spelling_on_the_command_line(text, kael):
    row, code = of_file(kael, "sum(x**2)", "-i", f"x={text}")
    assert (row["grads"]["x"]["value"], row["grads"]["x"]["dtype"], code) == (
        [2, 4, 6],
        "float64",
        0,
    )


@pytest.mark.parametrize(
    "inputs", ["{x: [1, 2, 3]}", "{x: {value: [1, 2, 3]}}", "\n  x:\n    - 1\n    - 2\n    - 3"]
)
def test_every_spelling_in_yaml(inputs, kael, tmp_path):
    (tmp_path / "case.yaml").write_text(f"inputs: {inputs}\noutput: sum(x**2)\n")
    row, code = of_file(kael, str(tmp_path / "case.yaml"))
    assert (row["grads"]["x"]["value"], row["grads"]["x"]["dtype"], code) == (
        [2, 4, 6],
        "float64",
        0,
    )


def test_a_table_of_whole_numbers_is_real_and_an_integer_array_keeps_its_dtype(kael, tmp_path):
    (tmp_path / "data.csv").write_text("1,2,3\n")
    row, code = of_file(kael, "sum(x**2)", "-i", f"x=@{tmp_path / 'data.csv'}")
    assert (row["grads"]["x"]["dtype"], code) == ("float64", 0)
    assert np.ravel(row["grads"]["x"]["value"]).tolist() == [2, 4, 6]
    np.save(tmp_path / "data.npy", np.array([1, 2, 3]))
    (tmp_path / "case.yaml").write_text(
        "inputs: {x: {file: data.npy, dtype: float64}}\noutput: sum(x**2)\n"
    )
    row, code = of_file(kael, str(tmp_path / "case.yaml"))
    assert (row["grads"]["x"]["value"], code) == ([2, 4, 6], 0)


def test_an_integer_tensor_cannot_require_a_gradient():
    whole = k.tensor([1, 2, 3])
    assert whole.dtype == k.int64
    with pytest.raises(k.KaelError, match="floating"):
        k.tensor([1, 2, 3], requires_grad=True)
    with pytest.raises(k.KaelError, match="floating"):
        whole.requires_grad_()


# What an integer tensor takes: a number with a fraction is refused through every door.

TRUNCATING = {
    "number": 1.5, "whole number": 2.0, "tensor": k.tensor(1.5), "array": np.array(1.5), "list": [1.5],
    "numpy number": np.float64(1.5),
}  # fmt: skip


@pytest.mark.parametrize("value", TRUNCATING.values(), ids=TRUNCATING)
@pytest.mark.parametrize("items", [0, slice(0, 1), [0]], ids=["item", "slice", "index"])
def test_a_real_item_is_refused_in_an_integer_tensor(items, value):
    whole = k.tensor([1, 2])
    with pytest.raises(
        k.KaelTypeError, match=r"__setitem__: a result of dtype float64 does not fit"
    ):
        whole[items] = value
    for write in (whole.add_, whole.mul_, whole.sub_):
        with pytest.raises(k.KaelTypeError, match="does not fit"):
            write(value)
    assert (whole.tolist(), whole.version) == ([1, 2], 0)


def test_a_mask_takes_what_is_true_or_false():
    mask = k.tensor([True, False])
    mask[1] = 1
    mask[0] = False
    assert mask.tolist() == [False, True]
    with pytest.raises(k.KaelTypeError, match="__setitem__"):
        mask[0] = 0.5
