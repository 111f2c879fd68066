"""AutogradFields: the autograd state of a tensor, and what may be done to it in place."""

import copy
import pickle
import weakref

import numpy as np
import pytest

import kael
from kael import KaelError, KaelTypeError, KaelValueError


def leaf(values):
    return kael.tensor(values, requires_grad=True)


def test_LeafDefaults():
    x = kael.tensor([1.0, 2.0])
    assert (x.requires_grad, x.is_leaf, x.grad, x.grad_fn) == (False, True, None, None)
    assert x.version == 0


def test_RequiresGradSetsTheFlag():
    x = kael.tensor([1.0])
    assert x.requires_grad_() is x
    assert x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad


def test_RequiresGradRefusesNonLeaf():
    y = leaf([1.0]) * 2
    with pytest.raises(KaelError, match="you can only change requires_grad flags of leaf tensors"):
        y.requires_grad_(False)
    assert y.requires_grad_() is y


@pytest.mark.parametrize("data", [[1, 2], [True, False]])
def test_OnlyFloatingPointCanRequireGrad(data):
    with pytest.raises(KaelError, match="only floating point tensors can require gradients"):
        kael.tensor(data).requires_grad_()
    with pytest.raises(KaelError, match="only floating point tensors can require gradients"):
        kael.tensor(data, requires_grad=True)


def test_RequiresGradPropagates():
    x, c = leaf([1.0]), kael.tensor([2.0])
    assert (x * c).requires_grad
    assert not (c * c).requires_grad


def test_ViewDoesNotShareRequiresGradWithoutHistory():
    base = kael.tensor([1.0, 2.0])
    view = base.view(2, 1)
    base.requires_grad_()
    assert not view.requires_grad


def test_ViewHasItsOwnHistory():
    x = leaf([1.0, 2.0])
    view = x[0:1]
    assert view.grad_fn.name == "SliceBackward"
    assert x.is_leaf


def test_ZeroGradResetsToNone():
    x = leaf([1.0])
    (x * 2).sum().backward()
    assert x.grad is not None
    x.zero_grad()
    assert x.grad is None


def test_GradCanBeAssigned():
    x = leaf([1.0, 2.0])
    x.grad = kael.tensor([3.0, 4.0])
    assert x.grad.tolist() == [3, 4]
    x.grad = None
    assert x.grad is None
    with pytest.raises(KaelValueError, match=r"shape and dtype, \[2\] and float64, got \[1\]"):
        x.grad = kael.tensor([1.0])
    with pytest.raises(KaelTypeError):
        x.grad = 1.0


def test_GradAssignedAsAnExpandedViewIsAddedTo():
    x = kael.tensor([1.0, 2.0], requires_grad=True)
    x.grad = kael.tensor(1.0).expand(2)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_VersionStartsAtZeroAndIsSharedByViews():
    x = kael.tensor([1.0, 2.0, 3.0])
    view, detached = x[1:], x.detach()
    assert (x.version, view.version, detached.version) == (0, 0, 0)
    view.add_(1)
    assert (x.version, view.version, detached.version) == (1, 1, 1)
    assert x.tolist() == [1, 3, 4]


INPLACE = {
    "add_": lambda t: t.add_(1),
    "sub_": lambda t: t.sub_(1),
    "mul_": lambda t: t.mul_(2),
    "div_": lambda t: t.div_(2),
    "fill_": lambda t: t.fill_(7),
    "zero_": lambda t: t.zero_(),
    "copy_": lambda t: t.copy_(kael.tensor([9.0, 9.0])),
    "clamp_": lambda t: t.clamp_(0, 1),
    "masked_fill_": lambda t: t.masked_fill_(kael.tensor([True, False]), 5.0),
    "index_add_": lambda t: t.index_add_(0, kael.tensor([0, 0]), kael.tensor([1.0, 2.0])),
    "scatter_add_": lambda t: t.scatter_add_(0, kael.tensor([1, 1]), kael.tensor([1.0, 2.0])),
    "__setitem__": lambda t: t.__setitem__(0, 4.0),
}
RESULTS = {
    "add_": [2, 4],
    "sub_": [0, 2],
    "mul_": [2, 6],
    "div_": [0.5, 1.5],
    "fill_": [7, 7],
    "zero_": [0, 0],
    "copy_": [9, 9],
    "clamp_": [1, 1],
    "masked_fill_": [5, 3],
    "index_add_": [4, 3],
    "scatter_add_": [1, 6],
    "__setitem__": [4, 3],
}


@pytest.mark.parametrize("name", INPLACE)
def test_EveryInplaceOpBumpsTheVersion(name):
    t = kael.tensor([1.0, 3.0])
    INPLACE[name](t)
    assert t.version == 1
    assert t.tolist() == RESULTS[name]


@pytest.mark.parametrize("name", INPLACE)
def test_InplaceOnLeafRequiringGradThrows(name):
    x = leaf([1.0, 3.0])
    with pytest.raises(
        KaelError,
        match="a leaf tensor that requires grad is being used in the in-place operation " + name,
    ):
        INPLACE[name](x)
    assert x.tolist() == [1, 3]
    assert x.version == 0
    with kael.no_grad():
        INPLACE[name](x)
    assert x.tolist() == RESULTS[name]


@pytest.mark.parametrize("name", INPLACE)
def test_InplaceOnNonLeafThrows(name):
    y = leaf([1.0, 3.0]) * 1
    with pytest.raises(
        KaelError,
        match=name + " is not supported on a tensor with gradient history; use the out-of-place",
    ):
        INPLACE[name](y)
    assert y.tolist() == [1, 3]
    with kael.no_grad():
        INPLACE[name](y)


def test_InplaceWithSourceThatRequiresGradThrows():
    x, plain = leaf([1.0, 2.0]), kael.tensor([0.0, 0.0])
    sources = [
        ("add_", lambda: plain.add_(x)),
        ("copy_", lambda: plain.copy_(x)),
        ("__setitem__", lambda: plain.__setitem__(0, x[0])),
        ("index_add_", lambda: plain.index_add_(0, kael.tensor([0, 1]), x)),
        ("scatter_add_", lambda: plain.scatter_add_(0, kael.tensor([0, 1]), x)),
    ]
    for name, write in sources:
        with pytest.raises(
            KaelError, match=f"{name} is not supported with a source that requires grad"
        ):
            write()
    assert plain.tolist() == [0, 0]


def test_OptimizerIdiom():
    w = leaf([1.0, 2.0])
    (w * w).sum().backward()
    same = w
    with kael.no_grad():
        w -= 0.1 * w.grad
    assert w is same
    assert w.tolist() == pytest.approx([0.8, 1.6])
    assert w.requires_grad
    assert w.version == 1


def test_AlphaScalesWhatIsAdded():
    w = kael.tensor([1.0, 2.0], requires_grad=True)
    step = kael.tensor([10.0, 20.0])
    with kael.no_grad():
        w.add_(step, alpha=-0.1)
        assert w.tolist() == pytest.approx([0, 0])
        w.sub_(step, alpha=2)
    assert w.tolist() == pytest.approx([-20, -40])
    assert w.version == 2
    with pytest.raises(KaelTypeError, match="add_: a result of dtype float64 does not fit"):
        kael.tensor([1]).add_(kael.tensor([1]), alpha=0.5)
    with pytest.raises(KaelTypeError, match="sub_: alpha must be a number"):
        kael.tensor([1.0]).sub_(1, alpha="a")


def test_WriteIntoSharedMemoryIsRefused():
    base = kael.ones(1, 1)
    with pytest.raises(KaelError, match=r"elements of the tensor share memory.*clone"):
        base.expand(4, 5).add_(1)
    assert base.tolist() == [[1]]


def test_WriteIntoAnEmptyTensorIsNoWriteIntoSharedMemory():
    empty = kael.zeros(2, 0)
    empty.add_(1)
    empty[0] = 3.0
    assert empty.version == 2


def test_WriteIntoAnExpandedViewThatRepeatsNothing():
    base = kael.ones(3)
    base.expand(1, 3).add_(1)
    assert base.tolist() == [2, 2, 2]
    assert base.version == 1


def test_WriteIntoOverlappingWindowsIsRefused():
    with pytest.raises(KaelError, match=r"elements of the tensor share memory.*clone"):
        kael.ones(4).unfold(0, 2, 1).zero_()


@pytest.mark.parametrize("write", ["add_", "fill_"])
def test_WriteOfANumberBeyondTheDtypeIsRefused(write):
    small = kael.tensor([1], dtype="uint8")
    with pytest.raises(KaelValueError, match="300 does not fit into uint8"):
        getattr(small, write)(300)
    assert small.tolist() == [1]


def test_WriteOfTheWrongKindIsRefused():
    whole = kael.tensor([1, 2])
    with pytest.raises(KaelTypeError, match="add_: a result of dtype float64 does not fit"):
        whole.add_(0.5)
    with pytest.raises(KaelTypeError, match="div_"):
        whole.div_(2)
    with pytest.raises(KaelValueError, match=r"add_: shape \[3, 2\] does not broadcast"):
        whole.add_(kael.tensor([[1, 1], [1, 1], [1, 1]]))
    assert whole.tolist() == [1, 2]
    assert whole.version == 0


def test_NumpyIsReadOnlyForGood():
    x = kael.tensor([[1.0, 2.0], [3.0, 4.0]])
    for array in (x.numpy(), np.asarray(x), x[:, 1].numpy(), kael.tensor(2.0).numpy()):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    shared = x.numpy()
    x.add_(1)
    assert shared[0, 0] == 2.0
    own = np.array(x)
    own[0, 0] = 9
    assert x.tolist() == [[2, 3], [4, 5]]
    assert x[:, 1].numpy().tolist() == [3, 5]


def test_NumpyOnTheLeftReachesTheTensor():
    x = leaf([1.0, 2.0])
    for y in (np.float64(2.0) * x, np.array([2.0, 2.0]) * x, np.array(2.0) + x):
        assert isinstance(y, kael.Tensor)
        assert y.requires_grad
    with pytest.raises(TypeError):
        np.tanh(x)


def test_DeepcopyOfALeaf():
    x = leaf([1.0])
    (x * 3).sum().backward()
    other = copy.deepcopy(x)
    assert other.requires_grad
    assert other.grad.tolist() == [3]
    assert other.grad is not x.grad
    with pytest.raises(KaelError, match="only a leaf tensor can be deep-copied"):
        copy.deepcopy(x * 2)
    assert pickle.loads(pickle.dumps(x)).tolist() == [1]


def test_TensorIsACopy():
    data = np.array([1.0, 2.0])
    x = kael.tensor(data)
    data[0] = 9
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([1, 2], "int64"),
        ([1.0], "float64"),
        (True, "bool"),
        (np.float32(1), "float32"),
        ([], "float64"),
    ],
)
def test_DtypeOfData(data, dtype):
    assert str(kael.tensor(data).dtype) == dtype


def test_TensorRefusesWhatIsNoNumber():
    with pytest.raises(KaelValueError, match="ragged"):
        kael.tensor([[1.0], [1.0, 2.0]])
    for wrong in ("abc", {"a": 1}, 1j, [None]):
        with pytest.raises((KaelTypeError, KaelValueError)):
            kael.tensor(wrong)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([300], "int8"),
        ([-1], "uint8"),
        ([np.inf], "int64"),
        ([2.0**63], "int64"),
        (np.array([1e300]), "int32"),
    ],
)
def test_TensorRefusesWhatItsDtypeCannotHold(data, dtype):
    with pytest.raises(KaelValueError, match=f"does not fit into {dtype}"):
        kael.tensor(data, dtype=dtype)


def test_ElementwiseEqualityAndIdentityHash():
    x = kael.tensor([1.0, 2.0])
    assert (x == kael.tensor([1.0, 0.0])).tolist() == [True, False]
    assert x in {x}
    assert len({x, kael.tensor([1.0, 2.0])}) == 2
    assert (x == None) is False  # noqa: E711


def test_PlainPythonUse():
    x = kael.tensor([1.0, 2.0, 3.0])
    assert len(x) == 3
    assert [float(v) for v in x] == [1, 2, 3]
    assert float(x[1]) == 2.0
    assert int(kael.tensor(3)) == 3
    assert bool(kael.tensor([0.0])) is False
    assert x.stride() == (1,)
    assert kael.zeros(2, 3).T.stride() == (1, 3)
    assert not kael.zeros(2, 3).T.is_contiguous()
    assert kael.zeros(2, 3).T.contiguous().is_contiguous()
    with pytest.raises(KaelValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(KaelValueError, match="one element"):
        x.item()
    with pytest.raises(KaelTypeError, match="0-d"):
        len(kael.tensor(1.0))


def test_Repr():
    x = leaf([1.0, 2.0])
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward>)"
    assert repr(kael.tensor([1.0], dtype="float32")) == "tensor([1.], dtype=float32)"


def test_TensorsCanBeReferencedWeakly():
    x = kael.tensor([1.0])
    ref = weakref.ref(x)
    del x
    assert ref() is None


def test_UnaryPlusIsTheTensorItself():
    x = kael.tensor([1.0], requires_grad=True)
    assert +x is x
