"""GradMode: whether operations record, thread by thread."""

import asyncio
import threading

import pytest

import kael
from kael.engine.grad_mode import state


@pytest.fixture
def x():
    return kael.tensor([1.0], requires_grad=True)


def test_DefaultIsOn():
    assert kael.is_grad_enabled()


def test_NoGradRecordsNothing(x):
    with kael.no_grad():
        y = x * 2
    assert (y.requires_grad, y.grad_fn) == (False, None)


def test_NestedGuardsRestoreInOrder():
    with kael.no_grad():
        with kael.enable_grad():
            assert kael.is_grad_enabled()
            with kael.no_grad():
                assert not kael.is_grad_enabled()
            assert kael.is_grad_enabled()
        assert not kael.is_grad_enabled()
    assert kael.is_grad_enabled()


def test_ExceptionRestoresState():
    with pytest.raises(ZeroDivisionError), kael.no_grad():
        raise ZeroDivisionError
    assert kael.is_grad_enabled()


def test_OneGuardCanNestInItself():
    guard = kael.no_grad()
    with guard:
        with guard:
            pass
        assert not kael.is_grad_enabled()
    assert kael.is_grad_enabled()


def test_SetGradEnabledActsAtOnceAndRestores():
    kael.set_grad_enabled(False)
    assert not kael.is_grad_enabled()
    with kael.set_grad_enabled(True):
        assert kael.is_grad_enabled()
    assert not kael.is_grad_enabled()
    kael.set_grad_enabled(True)


def test_DecoratesFunctions(x):
    @kael.no_grad()
    def with_parentheses():
        return x * 2

    @kael.no_grad
    def without():
        """Keep me."""
        return x * 2

    @kael.set_grad_enabled(False)
    def by_value():
        return x * 2

    for function in (with_parentheses, without, by_value):
        assert function().grad_fn is None
        assert kael.is_grad_enabled()
    assert without.__doc__ == "Keep me."


def test_DecoratesGenerators(x):
    closed = []

    @kael.no_grad()
    def numbers():
        try:
            got = yield x * 2
            while True:
                got = yield got * x
        finally:
            closed.append(kael.is_grad_enabled())

    made = numbers()
    assert next(made).grad_fn is None
    assert kael.is_grad_enabled()
    assert made.send(3.0).grad_fn is None
    assert kael.is_grad_enabled()
    made.close()
    assert closed == [False]
    assert kael.is_grad_enabled()


def test_DecoratesAsyncFunctions(x):
    inside = []

    @kael.no_grad()
    async def work():
        inside.append(kael.is_grad_enabled())
        await asyncio.sleep(0)
        inside.append(kael.is_grad_enabled())
        return x * 2

    async def other():
        for _ in range(3):
            assert kael.is_grad_enabled()
            await asyncio.sleep(0)

    async def both():
        result, _ = await asyncio.gather(work(), other())
        return result

    assert asyncio.run(both()).grad_fn is None
    assert inside == [False, False]
    assert kael.is_grad_enabled()


def test_IsThreadLocal(x):
    seen = {}

    def other():
        seen["other"] = kael.is_grad_enabled()
        seen["node"] = (x * 2).grad_fn is not None

    with kael.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == {"other": True, "node": True}


def test_BackwardKeepsTheCallersMode(x):
    class Recording(kael.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append(kael.is_grad_enabled())
            with kael.enable_grad():
                inner = kael.tensor([3.0], requires_grad=True)
                (inner * inner).backward()
            seen.append(kael.is_grad_enabled())
            return grad * 2 + inner.grad

    seen = []
    Recording.apply(x).backward()
    assert seen == [False, False]
    assert kael.is_grad_enabled()
    assert x.grad.tolist() == [8]


def test_ObserverSeesOperations(x):
    from kael.engine.grad_mode import observing

    names = []
    with observing(lambda op, inputs, arguments, output, node: names.append(op.name)):
        kael.tanh(x * 2).sum()
    kael.exp(x)
    assert names == ["mul", "tanh", "sum"]
    assert state.here.observer is None
