"""Long chains and large tensors: no recursion, little memory, freed as the walk goes."""

import gc
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import kael


def chain(length, x):
    y = x
    for _ in range(length):
        y = y + 1.0
    return y


def test_DeepChainBackwardAndDestruction():
    x = kael.tensor([1.0], requires_grad=True)
    chain(10_000, x).backward()
    assert x.grad.tolist() == [1]


def test_DeepChainDestructionWithoutBackward():
    x = kael.tensor([1.0], requires_grad=True)
    y = chain(50_000, x)
    del y
    assert x.grad is None


def test_DeepDiamondsDestructionWithoutBackward():
    y = kael.tensor([1.0], requires_grad=True)
    for _ in range(20_000):
        y = y * y
    del y


@pytest.mark.parametrize("length", [1_000_000])
def test_MillionNodes(length):
    # In a process of its own with a small C stack and Python's default recursion limit.
    code = f"""
import resource, kael
resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
x = kael.tensor([1.0], requires_grad=True)
y = (x + 1.0) * 1.0
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range({length}):
    y = y + 1.0
y.backward()
del y
print(x.grad.item(), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    grad, grown = done.stdout.split()
    assert float(grad) == 1
    assert float(grown) / length < 1000


def test_PeakMemoryFallsAsNodesRun():
    size, length = 50_000, 20
    live = []

    class Watch:
        def before(self, node, upstream):
            live.append(tracemalloc.get_traced_memory()[0])

        def after(self, node, upstream, gradients):
            pass

    x = kael.tensor(np.full(size, 0.1), requires_grad=True)
    gc.collect()
    tracemalloc.start()
    try:
        y = x
        for _ in range(length):
            y = kael.tanh(y)
        loss = y.sum()
        del y
        kael.autograd.backward(loss, watch=Watch())
    finally:
        tracemalloc.stop()
    one = size * 8
    full, end = live[1], live[length]
    assert full > length * one
    assert end < full - (length - 4) * one
