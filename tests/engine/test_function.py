"""Function: hand-written backwards, and what they may return."""

import gc
import io
import weakref

import pytest

import kael
from kael import KaelError, KaelTypeError
from kael.autograd import Function


def leaf(values):
    return kael.tensor(values, requires_grad=True)


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 2


class SumAndDifference(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b, a - b

    @staticmethod
    def backward(ctx, g_sum, g_difference):
        return g_sum + g_difference, g_sum - g_difference


def test_OneNodeIsRecorded():
    x = leaf([3.0])
    y = Square.apply(x)
    assert y.grad_fn.name == "SquareBackward"
    assert y.grad_fn.inputs[0].leaf is x
    y.backward()
    assert x.grad.tolist() == [6]


def test_WithoutGradNothingIsRecorded():
    assert Square.apply(kael.tensor([3.0])).grad_fn is None
    with kael.no_grad():
        assert Square.apply(leaf([3.0])).grad_fn is None


def test_SeveralOutputsShareOneNode():
    a, b = leaf([5.0, 1.0]), leaf([2.0, 2.0])
    total, difference = SumAndDifference.apply(a, b)
    assert total.grad_fn is difference.grad_fn
    stream = io.StringIO()
    with kael.debug.set_backward_trace(stream):
        (total * 3 + difference * 4).sum().backward()
    assert a.grad.tolist() == [7, 7]
    assert b.grad.tolist() == [-1, -1]
    lines = [line for line in stream.getvalue().splitlines() if "SumAndDifference" in line]
    assert lines == ["backward SumAndDifferenceBackward shape=[2],[2] norm=7.07107"]


def test_OutputWithoutGradientArrivesAsZeros():
    a, b = leaf([5.0]), leaf([2.0])
    total, difference = SumAndDifference.apply(a, b)
    difference.backward(retain_graph=True)
    assert (a.grad.tolist(), b.grad.tolist()) == ([1], [-1])
    total.backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([2], [0])


def test_RetainGradOnOneOfSeveralOutputs():
    a, b = leaf([5.0]), leaf([2.0])
    total, difference = SumAndDifference.apply(a, b)
    difference.retain_grad()
    (total + difference * 2).backward()
    assert difference.grad.tolist() == [2]
    assert total.grad is None


def test_NeedsInputGradAndPlainArguments():
    seen = []

    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor, other):
            ctx.factor = factor
            seen.append(ctx.needs_input_grad)
            return x * factor + other

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None, None

    x = leaf([1.0])
    Scale.apply(x, 3.0, kael.tensor([1.0])).backward()
    assert seen == [(True, False, False)]
    assert x.grad.tolist() == [3]


def test_NonDifferentiableOutput():
    class SortedWithOrder(Function):
        @staticmethod
        def forward(ctx, x):
            whole = kael.tensor([1, 0])
            extra = x * 2
            ctx.mark_non_differentiable(extra)
            return x * 1, whole, extra

        @staticmethod
        def backward(ctx, grad, no_grad, none):
            assert no_grad.tolist() == [0, 0]
            return grad

    x = leaf([2.0, 1.0])
    y, order, extra = SortedWithOrder.apply(x)
    assert y.requires_grad
    assert not order.requires_grad
    assert not extra.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def bad(returned):
    class Cube(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, grad):
            return returned(grad)

    return Cube


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda g: g, r"incorrect number of gradients \(expected 2, got 1\): Cube.backward"),
        (lambda g: (g, g, g), r"expected 2, got 3"),
        (
            lambda g: (g, g.sum()),
            r"CubeBackward returned an invalid gradient at index 1 - got \[\] but",
        ),
        (lambda g: (g[:1], g), r"index 0 - got \[1\] but expected shape \[3\]"),
        (lambda g: (g, g.to("float32")), r"index 1 - got float32 but expected dtype float64"),
        (lambda g: (g, 3.0), r"index 1 - got float but expected a tensor or None"),
        (lambda g: (g, g.numpy()), r"index 1 - got ndarray but expected a tensor or None"),
    ],
)  # fmt: skip
def test_WrongGradientsNameTheClass(returned, message):
    a, b = leaf([1.0, 2.0, 3.0]), leaf([1.0, 1.0, 1.0])
    with pytest.raises(KaelError, match=message):
        bad(returned).apply(a, b).sum().backward()


def test_ExtraNoneIsAllowed():
    a, b = leaf([1.0]), leaf([2.0])
    bad(lambda g: (g, None, None)).apply(a, b).backward()
    assert a.grad.tolist() == [1]
    assert b.grad is None


@pytest.mark.parametrize("returned", [3.0, None, [], (1.0,)])
def test_ForwardMustReturnTensors(returned):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return returned

    with pytest.raises(KaelTypeError, match=r"Wrong\.forward must return"):
        Wrong.apply(leaf([1.0]))


def test_SavedTensorsAreWatched():
    x = leaf([3.0])
    y = Square.apply(x)
    with kael.no_grad():
        x.add_(1)
    with pytest.raises(
        KaelError, match="modified by an inplace operation: expected version 0, got 1"
    ):
        y.backward()


def test_SecondBackwardNeedsRetainGraph():
    y = Square.apply(leaf([3.0]))
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(KaelError, match=r"second time \(SquareBackward\)"):
        y.backward()


def test_SavedOutputMakesNoCycle():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = kael.exp(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    gc.disable()
    try:
        x = leaf([1.0])
        y = Exp.apply(x)
        node, tensor = weakref.ref(y.grad_fn), weakref.ref(y)
        y.backward()
        assert x.grad.tolist() == pytest.approx([2.718281828459045])
        del y
        assert (node(), tensor()) == (None, None)
    finally:
        gc.enable()


def test_InputHandedBackHasItsOwnHistory():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    x = leaf([1.0])
    y = Same.apply(x)
    assert x.is_leaf
    y.backward()
    assert x.grad.tolist() == [10]


def test_OneTensorAsTwoOutputsHasAGradientForEach():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 1
            return y, y

        @staticmethod
        def backward(ctx, g_first, g_second):
            return g_first + 10 * g_second

    for number, expected in ((0, 1), (1, 10)):
        x = leaf([1.0])
        Twice.apply(x)[number].backward()
        assert x.grad.tolist() == [expected]


def test_TheArrivingGradientIsNotBackwardsToWriteInto():
    class Doubles(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad.clone().mul_(2) if ctx.copies else grad[:1].mul_(2)

    class Careful(Doubles):
        @staticmethod
        def forward(ctx, x):
            ctx.copies = True
            return x * 1

    x, upstream = leaf([1.0]), kael.tensor([3.0])
    Careful.apply(x).backward(upstream)
    assert x.grad.tolist() == [6]

    class Careless(Doubles):
        @staticmethod
        def forward(ctx, x):
            ctx.copies = False
            return x * 1

    with pytest.raises(KaelError, match=r"mul_: a gradient handed to a backward.*clone"):
        Careless.apply(x).backward(upstream)
    assert upstream.tolist() == [3]


def test_ANamedTensorThatRequiresAGradientIsRefused():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, by=None):
            return x * by

        @staticmethod
        def backward(ctx, grad):
            return grad

    assert Scale.apply(leaf([2.0]), by=kael.tensor(3.0)).tolist() == [6]
    with pytest.raises(KaelTypeError, match=r"Scale.apply: by requires a gradient"):
        Scale.apply(leaf([2.0]), by=leaf(3.0))


def test_WhatKaelHasNoUseForOnTheContextSaysSo():
    class Same(Function):
        @staticmethod
        def forward(ctx, x, method, value):
            getattr(ctx, method)(value)
            return x * 1

    x = leaf([1.0])
    Same.apply(x, "set_materialize_grads", True)
    with pytest.raises(KaelError, match="arrive as zeros"):
        Same.apply(x, "set_materialize_grads", False)
    with pytest.raises(KaelError, match="return a new tensor"):
        Same.apply(x, "mark_dirty", x)


def test_BaseClassNamesWhatIsMissing():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Nothing.apply(leaf([1.0]))
