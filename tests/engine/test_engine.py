"""AutogradEngine, AutogradDetach, AutogradVersion: the walk, read as a specification."""

import gc
import io
import weakref

import numpy as np
import pytest

import kael
from kael import KaelError, KaelTypeError, KaelValueError
from kael.autograd import AccumulateGrad, FunctionNode, Node, backward
from kael.engine.node import gradient_edge
from kael.forms import form_of


def leaf(values):
    return kael.tensor(values, requires_grad=True)


# Recording


def test_ResultOfOpHasHistory():
    y = leaf([1.0]) * 2
    assert isinstance(y.grad_fn, FunctionNode)
    assert y.grad_fn.name == "MulBackward"
    assert not y.is_leaf


def test_OpWithoutGradInputsHasNoHistory():
    assert (kael.tensor([1.0]) * 2).grad_fn is None


def test_UsesOfALeafShareOneAccumulator():
    x = leaf([1.0])
    first, second = (x * 2).grad_fn, (x * 3).grad_fn
    assert first.inputs == (second.inputs[0], None)
    assert isinstance(first.inputs[0], AccumulateGrad)
    assert first.inputs[0].leaf is x


def test_AccumulatorDiesWithItsGraphs():
    x = leaf([1.0])
    ref = weakref.ref(gradient_edge(x * 2).inputs[0])
    assert ref() is None
    (x * 2).backward()
    assert x.grad.tolist() == [2]


def test_ClosureOfAnInputWithoutGradIsDropped():
    gc.disable()
    try:
        x, big = leaf([1.0]), kael.tensor(np.ones(1000))
        data = weakref.ref(big)
        y = x.expand(1000) * big  # the gradient of x needs big; big's would need x
        assert y.grad_fn.plan.saved_tensors == ("other",)
        z = big * 2
        assert z.grad_fn is None
        del big, z
        assert data() is None
    finally:
        gc.enable()


def test_NodeSavesOnlyWhatItsFormulasRead():
    x = leaf([1.0, 2.0])
    saves = {
        "add": x + x,
        "mul": x * x,
        "exp": kael.exp(x),
        "sin": kael.sin(x),
        "sum": x.sum(),
        "half": x * kael.tensor([1.0, 2.0]),
    }
    found = {name: y.grad_fn.plan.saved_tensors for name, y in saves.items()}
    assert found == {
        "add": (),
        "mul": ("other", "x"),
        "exp": ("out",),
        "sin": ("x",),
        "sum": (),
        "half": ("other",),
    }


# Accumulation and order


def test_RepeatedInputAccumulates():
    x = leaf([3.0])
    (x * x).backward()
    assert x.grad.tolist() == [6]


def test_TripleAddAccumulates():
    x = leaf([1.0])
    (x + x + x).backward()
    assert x.grad.tolist() == [3]


def test_DiamondWaitsForBothPaths():
    x = leaf([1.0, 2.0])
    stream = io.StringIO()
    with kael.debug.set_backward_trace(stream):
        (x * 2 + x * 3).sum().backward()
    assert x.grad.tolist() == [5, 5]
    assert stream.getvalue().splitlines() == [
        "backward SumBackward shape=[] norm=1",
        "backward AddBackward shape=[2] norm=1.41421",
        "backward MulBackward shape=[2] norm=1.41421",
        "backward MulBackward shape=[2] norm=1.41421",
        "backward AccumulateGrad shape=[2] norm=7.07107",
    ]


def test_WorkedExampleTrace():
    x, w = leaf([1.0, 2.0]), leaf([0.5, -1.0])
    stream = io.StringIO()
    with kael.debug.set_backward_trace(stream):
        kael.tanh(x * w + x).sum().backward()
    assert stream.getvalue().splitlines() == [
        "backward SumBackward shape=[] norm=1",
        "backward TanhBackward shape=[2] norm=1.41421",
        "backward AddBackward shape=[2] norm=1.0162",
        "backward MulBackward shape=[2] norm=1.0162",
        "backward AccumulateGrad shape=[2] norm=2.00815",
        "backward AccumulateGrad shape=[2] norm=0.27106",
    ]
    assert x.grad.tolist() == pytest.approx([0.271060, 0], abs=1e-6)
    assert w.grad.tolist() == pytest.approx([0.180707, 2], abs=1e-6)


def test_SumsOfThreeContributionsStayRight():
    # The second sum is made in place in the walk's own buffer; no formula's array may change.
    x = leaf([1.0, 2.0])
    y = x + x
    (y + y * 1.0 + y * y + y).sum().backward()
    assert x.grad.tolist() == [2 * (3 + 2 * 2), 2 * (3 + 2 * 4)]


def test_GradientsThatAliasAreNotOverwritten():
    # Add hands the very same array to both of its inputs, and v receives twice more.
    x, w = leaf([1.0]), leaf([2.0])
    v = x + w
    out = (v + v) + (v + w)
    out.backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([3], [4])


def test_LeafSharedByTwoGraphsAccumulates():
    x = leaf([1.0, 2.0])
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_SubgraphSharedByTwoLossesIsNotWaitedFor():
    x = leaf([1.0])
    a = x * 2
    first, second = a * 3, a * 5
    first.backward(retain_graph=True)
    assert x.grad.tolist() == [6]
    second.backward()
    assert x.grad.tolist() == [16]


# Seeding


def test_NonScalarRootNeedsAGradient():
    with pytest.raises(
        KaelValueError,
        match=r"grad can be implicitly created only for scalar outputs, got shape \[2\]",
    ):
        (leaf([1.0, 2.0]) * 2).backward()


def test_GradientOfTheWrongShapeIsRefused():
    with pytest.raises(
        KaelValueError, match=r"gradient shape \[3\] does not match output shape \[2\]"
    ):
        (leaf([1.0, 2.0]) * 2).backward(kael.ones(3))


@pytest.mark.parametrize("gradient", [[3.0, 6.0], np.array([3, 6]), kael.tensor([3.0, 6.0])])
def test_ExplicitGradientWeighsTheOutput(gradient):
    x = leaf([1.0, 2.0])
    (x * 2).backward(gradient)
    assert x.grad.tolist() == [6, 12]


def test_NumberAsGradientOfAScalar():
    x = leaf(2.0)
    (x * 3).backward(5)
    assert x.grad.item() == 15


def test_BooleanGradientPointsToRetainGraph():
    with pytest.raises(KaelTypeError, match="retain_graph=True"):
        (leaf([1.0]) * 2).backward(True)


def test_HigherOrderGradientsAreRefused():
    x = leaf([1.0])
    with pytest.raises(KaelError, match="gradients are first order"):
        (x * x).backward(create_graph=True)
    assert x.grad is None


def test_OneElementRootOfAnyRank():
    x = leaf([[2.0]])
    (x * x).backward()
    assert x.grad.tolist() == [[4]]


def test_RootWithoutGradIsRefused():
    with pytest.raises(KaelError, match="backward needs a tensor that requires grad"):
        kael.tensor([1.0]).backward()
    with kael.no_grad():
        y = leaf([1.0]) * 2
    with pytest.raises(KaelError, match="backward needs a tensor that requires grad"):
        y.backward()


def test_LeafAsRootReceivesSeed():
    x = leaf([4.0])
    x.backward()
    assert x.grad.tolist() == [1]


def test_GradientKeepsTheRootsDtype():
    x = kael.tensor([1.0], dtype="float32", requires_grad=True)
    (x * 2).backward(np.array([3.0]))
    assert str(x.grad.dtype) == "float32"


# Releasing


def test_SecondBackwardWithoutRetainThrows():
    loss = (leaf([1.0, 2.0]) * 2).sum()
    loss.backward()
    with pytest.raises(
        KaelError,
        match=r"Trying to backward through the graph a second time \(SumBackward\); "
        "specify retain_graph=true",
    ):
        loss.backward()


def test_RetainGraphAccumulatesInLeaves():
    x = leaf([1.0])
    y = x * 2
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4]


def test_NodeWithoutAGradientReleasesItsInputs():
    class Half(kael.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 1 + b * 1

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    x = leaf([1.0])
    u = x * 2
    v = kael.exp(x) * 3  # gets no gradient; x still waits for it
    Half.apply(u, v).backward()
    assert x.grad.tolist() == [2]
    with pytest.raises(KaelError, match="a second time"):
        v.backward()


def test_SavedValuesAreFreedNodeByNode():
    freed = []

    class Spy(kael.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            freed.append(later.saved is None)
            return grad

    x = leaf([1.0])
    y = kael.exp(Spy.apply(kael.exp(x)))
    later = y.grad_fn
    y.backward()
    assert freed == [True]


# Checks on what formulas return


class BadNode(Node):
    """Returns a gradient of the wrong shape or dtype for its second input."""

    __slots__ = ("gradient",)

    name = "BadBackward"

    def __init__(self, edges, gradient):
        self.edges = edges
        self.gradient = gradient
        self.form = form_of(np.zeros(()))
        self.retained, self.saved = None, ()

    def apply(self, upstream):
        return (None, self.gradient)


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (np.ones((2, 3)), r"got \[2, 3\] but expected shape \[3\]"),
        (np.ones(1), r"got \[1\] but expected shape \[3\]"),
        (np.ones(3, "float32"), "got float32 but expected dtype float64"),
    ],
)
def test_InvalidGradientShapeNamesTheNode(gradient, message):
    x = leaf([1.0, 2.0, 3.0])
    root = kael.Tensor(np.array(1.0), BadNode((None, gradient_edge(x)), gradient))
    with pytest.raises(
        KaelError,
        match="Function BadBackward returned an invalid gradient at index 1 - " + message,
    ):
        backward(root)
    assert x.grad is None


def test_ExceptionFromAFormulaLeavesNoHalfState():
    class Fails(kael.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ZeroDivisionError("boom")

    x = leaf([1.0])
    with pytest.raises(ZeroDivisionError):
        (Fails.apply(x) * 2).backward()
    assert kael.is_grad_enabled()
    assert x.grad is None
    (x * 2).backward()
    assert x.grad.tolist() == [2]


# Gradients as users see them


def test_GradIsACopyOfThePropagatedGradient():
    x = leaf([1.0, 2.0])
    seed = kael.tensor([3.0, 4.0])
    (x + 0).backward(seed)
    x.grad.fill_(99)
    assert seed.tolist() == [3, 4]
    assert not x.grad.requires_grad


def test_GradsOfTwoLeavesNeverAlias():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x + y).sum().backward()
    x.grad.fill_(99)
    assert y.grad.tolist() == [1, 1]
    (x + y).sum().backward()
    assert y.grad.tolist() == [2, 2]


def test_LaterGradientsAreAddedInPlace():
    x = leaf([1.0])
    (x * 2).backward()
    grad = x.grad
    (x * 3).backward()
    assert x.grad is grad
    assert grad.tolist() == [5]
    assert grad.version == 1


# retain_grad


def test_RetainGradStoresIntermediateGradient():
    x = leaf([1.0, 1.0])
    middle = x * 3
    middle.retain_grad()
    (middle * 2).sum().backward()
    assert (middle.grad.tolist(), x.grad.tolist()) == ([2, 2], [6, 6])


def test_RetainGradOnALeafDoesNothing():
    x = leaf([1.0])
    x.retain_grad()
    (x * 2).backward()
    assert x.grad.tolist() == [2]


def test_RetainGradNeedsATensorThatRequiresGrad():
    with pytest.raises(KaelError, match="retain_grad needs a tensor that requires grad"):
        kael.tensor([1.0]).retain_grad()


def test_RetainedOutputIsNotKeptAlive():
    x = leaf([1.0])
    middle = x * 3
    middle.retain_grad()
    loss, ref = middle * 2, weakref.ref(middle)
    del middle
    assert ref() is None
    loss.backward()
    assert x.grad.tolist() == [6]


def test_WithoutRetainGradNothingIsStored():
    x = leaf([1.0])
    middle = x * 3
    (middle * 2).backward()
    assert middle.grad is None


# AutogradDetach


def test_CutsTheGradient():
    x = leaf([1.0, 2.0])
    (x.detach() * x).sum().backward()
    assert x.grad.tolist() == [1, 2]


def test_DetachSharesMemoryAndVersion():
    x = leaf([1.0])
    y = x.detach()
    assert (y.requires_grad, y.grad_fn) == (False, None)
    y.fill_(5)
    assert x.tolist() == [5]
    assert x.version == 1


def test_InPlaceOnALeafInTheGraphSkipsItsGradient():
    x, w = leaf([2.0]), leaf([3.0])
    loss = x * w
    assert x.detach_() is x
    loss.backward()
    assert x.grad is None
    assert w.grad.tolist() == [2]


def test_ALeafDetachedAndUsedAgainGetsNothingFromTheOldGraph():
    x = leaf([1.0])
    old = x * 2
    x.detach_().requires_grad_()
    new = x * 5
    old.backward()
    new.backward()
    assert x.grad.tolist() == [5]


def test_InPlaceOnARetainedOutputSkipsItsGradient():
    x = leaf([1.0, 1.0])
    y = x * 2
    y.retain_grad()
    loss = (y * 3).sum()
    y.detach_()
    loss.backward()
    assert x.grad.tolist() == [6, 6]
    assert y.grad is None
    assert (y.is_leaf, y.requires_grad) == (True, False)


# AutogradVersion

STALE = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: expected version {}, got {}"
)


def test_ModifyingSavedInputThrows():
    x, constant = leaf([1.0, 2.0]), kael.tensor([3.0, 4.0])
    y = (x * constant).sum()
    constant.add_(1)
    with pytest.raises(KaelError, match=STALE.format(0, 1)) as caught:
        y.backward()
    assert str(caught.value).splitlines()[1] == (
        "MulBackward saved its input 'other'; add_ overwrote it afterwards"
    )
    assert x.grad is None


def test_ModifyingSavedOutputThroughDetachThrows():
    y = kael.exp(leaf([1.0]))
    y.detach().mul_(2)
    with pytest.raises(KaelError, match=STALE.format(0, 1)) as caught:
        y.backward()
    assert "ExpBackward saved its output; mul_ overwrote it" in str(caught.value)


def test_VersionAtTheTimeOfSavingCounts():
    x, c = leaf([1.0]), kael.tensor([1.0])
    c.add_(1)
    y = x * c
    y.backward()
    assert x.grad.tolist() == [2]
    z = x * c
    c.add_(1)
    c[0] = 5.0
    with pytest.raises(KaelError, match=STALE.format(1, 3)):
        z.backward()


def test_WriteThroughAViewOfTheSavedTensorThrows():
    x, c = leaf([1.0, 2.0]), kael.tensor([[3.0, 4.0], [5.0, 6.0]])
    y = (x * c[0]).sum()
    c.T[0].zero_()
    with pytest.raises(KaelError, match=STALE.format(0, 1)):
        y.backward()


def test_WriteToWhatIsNotSavedIsAllowed():
    # exp saves its output, not its input; a product with a constant keeps only the constant.
    x = leaf([1.0, 2.0])
    u = x * 2
    z = kael.exp(u)
    with kael.no_grad():
        u.add_(1)
    z.sum().backward()
    assert x.grad.tolist() == pytest.approx((2 * np.exp([2.0, 4.0])).tolist())
    x.zero_grad()
    v = x.view(2)
    out = v * 2.0
    with kael.no_grad():
        v.add_(1)
    out.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_SquareOfAViewKeepsIt():
    x = leaf([1.0, 2.0])
    v = x.view(2)
    out = v * v
    with kael.no_grad():
        v.add_(1)
    with pytest.raises(KaelError, match=STALE.format(0, 1)):
        out.sum().backward()
    y = x * x
    x.detach().add_(1)
    with pytest.raises(KaelError, match=STALE.format(1, 2)):
        y.sum().backward()


def test_SigmoidSavesItsOutputAndItsSpellingDoesNot():
    a = leaf([1.0, 2.0, 3.0])
    b = kael.sigmoid(a)
    with kael.no_grad():
        b.mul_(2)
    with pytest.raises(KaelError, match=STALE.format(0, 1)):
        b.sum().backward()
    b = 1 / (1 + kael.exp(-a))
    with kael.no_grad():
        b.mul_(2)
    b.sum().backward()
    assert a.grad.tolist() == pytest.approx(
        [0.19661193324148188, 0.1049935854035065, 0.045176659730912144]
    )


# Memory


def test_DetachedSavedOutputDoesNotLeak():
    gc.disable()
    try:
        y = kael.exp(leaf([1.0]))
        node, tensor = weakref.ref(y.grad_fn), weakref.ref(y)
        del y
        assert node() is None
        assert tensor() is None
    finally:
        gc.enable()


def test_DroppingTheLossFreesTheGraph():
    gc.disable()
    try:
        x = leaf([1.0])
        loss = kael.tanh(kael.exp(x) * x).sum()
        node = weakref.ref(loss.grad_fn.inputs[0].inputs[0])
        del loss
        assert node() is None
    finally:
        gc.enable()
