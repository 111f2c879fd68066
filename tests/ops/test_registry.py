"""Every declared operation has every property of `declarations.py`; wrong declarations fail.

Declaring an operation is enough to be tested here; one without samples, without a golden case or
without a point on its kink fails.
"""

import json
import os
from pathlib import Path

import declarations as must
import numpy as np
import pytest

import kael.ops
from kael import kernels
from kael.engine.grad_mode import no_grad
from kael.errors import KaelError
from kael.ops import ALIASES, REGISTRY, lookup
from kael.ops.declare import Operation, unary
from kael.ops.samples import Sample, away_from, normal, positive, unary_samples

GOLDEN = Path(__file__).parents[1] / "golden"
OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "%": "remainder",
    "**": "pow", "@": "matmul", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq",
    "!=": "ne",
}  # fmt: skip
DECLARED = dict(REGISTRY)
EACH = pytest.mark.parametrize("op", DECLARED.values(), ids=DECLARED)

# A point on the kink of every operation that has one: operands, arguments.
ONE, TWO = np.array([1.0]), np.array([2.0])
ZERO = np.zeros(1)
KINKS = {
    "abs": ([ZERO], {}),
    "maximum": ([ONE, ONE], {}),
    "minimum": ([ONE, ONE], {}),
    "remainder": ([np.array([6.0]), TWO], {}),
    "fmod": ([np.array([6.0]), TWO], {}),
    "floor_divide": ([np.array([6.0]), TWO], {}),
    "atan2": ([ZERO, -ONE], {}),
    "clamp": ([ONE], {"min": 0.0, "max": 1.0}),
    "relu": ([ZERO], {}),
    "relu6": ([np.array([6.0])], {}),
    "leaky_relu": ([ZERO], {}),
    "hardtanh": ([ONE], {}),
    "hardsigmoid": ([np.array([3.0])], {}),
    "hardswish": ([np.array([-3.0])], {}),
    "softplus": ([np.array([10.0])], {"beta": 2.0, "threshold": 20.0}),
    "elu": ([ZERO], {"alpha": 0.5}),
    "selu": ([ZERO], {}),
    "l1_loss": ([ONE, ONE], {}),
    "smooth_l1_loss": ([ONE, ONE], {"beta": 0.0}),
    "sign": ([ZERO], {}),
    "floor": ([TWO], {}),
    "ceil": ([TWO], {}),
    "trunc": ([TWO], {}),
    "round": ([np.array([2.5])], {}),
    "hypot": ([ZERO, ZERO], {}),
    "norm": ([np.zeros(3)], {}),
    "std": ([np.ones(3)], {}),
    "max": ([np.array([2.0, 2.0, 1.0])], {}),
    "min": ([np.array([1.0, 1.0, 2.0])], {}),
    "sort": ([np.array([1.0, 1.0, 3.0])], {}),
    "topk": ([np.array([1.0, 3.0, 1.0])], {"k": 2}),
    "median": ([np.array([2.0, 1.0, 2.0])], {}),
    "amax": ([np.array([2.0, 2.0, 1.0])], {}),
    "amin": ([np.array([1.0, 1.0, 2.0])], {}),
} | {name: ([ONE, ONE], {}) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
WITHOUT_SIDES = {"hypot", "norm", "std", "sort", "topk", "median"}


@EACH
@pytest.mark.parametrize("tier", ["auto", "numpy", "numba"])
def test_gradients_agree_with_differences(op, tier):
    with kernels.only(tier):
        must.check_gradients(op)
    # A compiled kernel that fails hands over to NumPy, and the numbers would be right all the same.
    assert kernels.failure() is None or os.environ.get("NUMBA_DISABLE_JIT")


@EACH
def test_texts_are_the_formulas(op):
    must.check_text(op)


@EACH
def test_saved_tensors_are_those_declared(op):
    must.check_saves(op)


@EACH
def test_float32_stays_float32(op):
    must.check_float32(op)


@EACH
def test_shapes(op):
    must.check_shapes(op)


@EACH
def test_batch_rule(op):
    must.check_batch(op)


@EACH
def test_complex_step(op):
    must.check_analytic(op)


@EACH
def test_memory(op):
    must.check_memory(op)


@EACH
def test_integers_and_booleans(op):
    must.check_integers(op)


@pytest.mark.parametrize("name", [name for name, op in DECLARED.items() if op.kink is not None])
def test_kink(name):
    assert name in KINKS, f"{name} has a kink: give a point on it"
    must.check_kink(DECLARED[name], KINKS[name], cone=name in WITHOUT_SIDES)


def test_points_on_kinks_are_of_operations_that_have_one():
    assert [name for name in KINKS if name in DECLARED and DECLARED[name].kink is None] == []


def test_every_operation_has_a_golden_case():
    seen = set()
    for name in ("ops.json", "ops_more.json"):
        for case in json.loads((GOLDEN / name).read_text())["cases"]:
            seen.add(OPERATORS.get(case["op"], case["op"]))
    # What an index or another operation stands for has cases under that name.
    inside = {"index": "getitem", "convolution": "conv2d"}
    missing = [name for name in DECLARED if inside.get(name, name) not in seen]
    assert missing == []


def test_every_operation_is_described():
    for op in DECLARED.values():
        assert op.doc, f"{op.name} has no doc"
        assert op.doc[0].isupper(), op.doc
        assert op.doc.rstrip().endswith("."), op.doc


def test_names_do_not_clash():
    assert set(ALIASES) & set(REGISTRY) == set()
    for alias, name in ALIASES.items():
        assert lookup(alias) is REGISTRY[name]


@EACH
def test_keywords_are_the_parameters_names(op):
    sample = must.draw(op)[-1]
    leaves, inputs, plain = must.bound(op, sample.inputs, sample.arguments)
    named = must.operands_by_name(op, leaves) | dict(sample.arguments)
    np.testing.assert_array_equal(op(**named)._array, op.apply(inputs, plain)._array)


def test_nothing_records_without_grad_mode():
    for op in DECLARED.values():
        sample = must.draw(op)[0]
        _, inputs, plain = must.bound(op, sample.inputs, sample.arguments)
        with no_grad():
            assert not op.apply(inputs, plain).requires_grad


# Wrong on purpose: a check that lets one of these pass is no check.


@pytest.fixture
def declare():
    """Declares operations that are gone from the registry afterwards."""
    before = set(REGISTRY)

    def made(kernel=np.tanh, vjp=lambda g, out: g * (1 - out * out), **facts):
        facts.setdefault("text", "g * (1 - out**2)")
        facts.setdefault("domain", normal)
        return unary(f"faulty_{len(REGISTRY)}", kernel, vjp=vjp, **facts)

    yield made
    for name in set(REGISTRY) - before:
        del REGISTRY[name]
    assert kael.ops.REGISTRY is REGISTRY


CHECKS = [
    must.check_gradients, must.check_text, must.check_saves, must.check_float32,
    must.check_shapes, must.check_batch, must.check_analytic, must.check_memory,
    must.check_integers,
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_a_right_declaration_passes(declare, check):
    check(declare())


@pytest.mark.parametrize(
    "formula",
    [
        lambda g, out: -g * (1 - out * out),
        lambda g, out: g * (1 - out),
        lambda g, out: g * (1 - out * out) * (1 + 1e-6),
        lambda g, out: np.abs(g) * (1 - out * out),
        lambda g, out: np.ones_like(g) * (1 - out * out),
        lambda g, out: g * g * (1 - out * out),
        lambda g, out: g * (1 - out * out).ravel()[:1].sum(),
        lambda g, out: g * (1 - out * out) + 1e-7 * np.arange(out.size).reshape(out.shape),
    ],
)
def test_a_wrong_formula_fails(declare, formula):
    with pytest.raises(AssertionError):
        must.check_gradients(declare(vjp=formula))


def test_a_formula_that_fails_on_strides_only_fails(declare):
    def formula(g, x):
        return g * (1 - np.tanh(x) ** 2) * (1 if x.flags.c_contiguous else 2)

    with pytest.raises(AssertionError):
        must.check_gradients(declare(vjp=formula))


def test_an_operation_that_should_record_nothing_fails_when_it_has_a_text(declare):
    with pytest.raises(AssertionError):
        must.check_text(declare(vjp=None))


@pytest.mark.parametrize("text", ["g * (1 - out)", "g", "-g * (1 - out**2)", ""])
def test_a_wrong_text_fails(declare, text):
    with pytest.raises(AssertionError):
        must.check_text(declare(text=text))


def test_a_text_over_what_does_not_exist_fails(declare):
    with pytest.raises(KaelError):
        must.check_text(declare(text="g * (1 - tahn(x)**2)"))


def test_a_saved_tensor_that_is_not_declared_fails(declare):
    class Hidden(Operation):
        """Says that it saves nothing."""

        saves = ((),)

    op = declare()
    op.__class__ = Hidden
    with pytest.raises(AssertionError):
        must.check_saves(op)


def test_a_formula_that_widens_float32_fails(declare):
    with pytest.raises((AssertionError, KaelError), match=r"widens|invalid gradient"):
        must.check_float32(declare(vjp=lambda g, out: g * np.float64(1) * (1 - out * out)))


def test_a_kernel_that_widens_float32_fails(declare):
    with pytest.raises((AssertionError, KaelError), match="float64"):
        must.check_float32(declare(lambda x: np.tanh(x) * np.float64(1), real=False))


def test_a_kernel_that_changes_the_shape_fails(declare):
    with pytest.raises((AssertionError, KaelError)):
        must.check_shapes(declare(lambda x: np.tanh(np.atleast_1d(x))))


def test_samples_without_an_empty_shape_fail(declare):
    op = declare()
    op.samples = lambda rng: [Sample((normal(rng, (2,)),)), Sample((normal(rng, ()),))]
    with pytest.raises(AssertionError, match="missing"):
        must.check_shapes(op)


def test_a_wrong_batch_rule_fails(declare):
    op = declare(lambda x: x - x.sum(), vjp=None, text="")
    with pytest.raises(AssertionError):
        must.check_batch(op)


def test_a_kernel_that_is_not_analytic_fails(declare):
    sign_lost = declare(
        np.abs, vjp=lambda g, x: g * np.sign(x), text="g * sign(x)", domain=away_from(0.0)
    )
    with pytest.raises(AssertionError):
        must.check_analytic(sign_lost)
    with pytest.raises(AssertionError):
        must.check_analytic(declare(lambda x: np.tanh(np.real(x))))


def test_a_kernel_that_returns_its_operand_fails(declare):
    with pytest.raises(AssertionError):
        must.check_memory(declare(lambda x: x, vjp=lambda g: g, text="g"))


def test_a_kernel_that_writes_to_its_operand_fails(declare):
    def kernel(x):
        x += 1
        return x + 0

    with pytest.raises(AssertionError):
        must.check_memory(declare(kernel, vjp=lambda g: g, text="g"))


def test_an_unsupported_dtype_fails(declare):
    with pytest.raises(AssertionError):
        must.check_integers(declare(np.sqrt, vjp=None, text="", real=False))


@pytest.mark.parametrize(
    "kink",
    [
        lambda x: (x - 1,),
        lambda x: (np.abs(x),),
        lambda x: (x * 0,),
        lambda x: (),
    ],
)
def test_a_wrong_kink_fails(declare, kink):
    op = declare(np.abs, analytic=False, kink=kink, at_kink="0")
    with pytest.raises(AssertionError):
        must.check_kink(op, ([ZERO], {}))


def test_a_kink_without_a_convention_fails(declare):
    with pytest.raises(AssertionError, match="convention"):
        must.check_kink(declare(np.abs, kink=lambda x: (x,)), ([ZERO], {}))


def test_an_operation_without_samples_fails(declare):
    op = declare()
    for samples in (None, lambda rng: [], lambda rng: [Sample((np.zeros(0),))]):
        op.samples = samples
        for check in (must.check_gradients, must.check_float32, must.check_memory):
            with pytest.raises(AssertionError):
                check(op)


def test_an_operation_that_is_never_differentiated_fails(declare):
    op = declare()
    op.samples = lambda rng: [Sample((np.arange(3),))]
    with pytest.raises(AssertionError, match="nothing was compared"):
        must.check_gradients(op)


def test_settings_reach_the_samples():
    drawn = list(unary_samples(np.random.default_rng(0), positive, ({}, {"beta": 2.0})))
    assert {tuple(sample.arguments.items()) for sample in drawn} == {(), (("beta", 2.0),)}
