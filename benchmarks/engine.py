"""The engine against PyTorch, as ratios measured in one run with one thread each.

    python benchmarks/engine.py

Needs PyTorch (not a dependency). Each pair is timed alternately; the medians' ratio is printed
with the goal. The chain's memory is peak resident memory of a process of its own.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

LONG = 1_000_000


def kael_perceptron() -> Callable[[], None]:
    """Two layers on a 6x4 input: forward and backward."""
    import kael

    x, targets, w1, b1, w2, b2 = perceptron_arrays()
    inputs, index = kael.tensor(x), kael.tensor(targets)
    leaves = [kael.tensor(a, requires_grad=True) for a in (w1, b1, w2, b2)]

    def run() -> None:
        w1, b1, w2, b2 = leaves
        hidden = kael.tanh(inputs @ w1 + b1)
        logits = kael.log_softmax(hidden @ w2 + b2, dim=1)
        (-kael.gather(logits, 1, index).mean()).backward()

    return run


def torch_perceptron() -> Callable[[], None]:
    """The same in PyTorch."""
    import torch

    x, targets, w1, b1, w2, b2 = perceptron_arrays()
    inputs, index = torch.tensor(x), torch.tensor(targets)
    leaves = [torch.tensor(a, requires_grad=True) for a in (w1, b1, w2, b2)]

    def run() -> None:
        w1, b1, w2, b2 = leaves
        hidden = torch.tanh(inputs @ w1 + b1)
        logits = torch.log_softmax(hidden @ w2 + b2, dim=1)
        (-torch.gather(logits, 1, index).mean()).backward()

    return run


def perceptron_arrays() -> list[np.ndarray]:
    """Inputs, targets and parameters of the perceptron."""
    rng = np.random.default_rng(0)
    shapes = ((6, 4), (4, 5), (5,), (5, 3), (3,))
    x, w1, b1, w2, b2 = (rng.standard_normal(shape) for shape in shapes)
    return [x, rng.integers(0, 3, (6, 1)), w1, b1, w2, b2]


def elementwise_chain(library: str) -> Callable[[], None]:
    """100 elementwise operations on 16 elements: tanh, times a number, plus the input, sin."""
    values = np.random.default_rng(0).standard_normal(16)
    if library == "kael":
        import kael as lib

        x = lib.tensor(values, requires_grad=True)
        ones = lib.ones(16)
    else:
        import torch as lib

        x = lib.tensor(values, requires_grad=True)
        ones = lib.ones(16, dtype=lib.float64)

    def run() -> None:
        y = x
        for _ in range(25):
            y = lib.sin(lib.tanh(y) * 0.9 + x)
        y.backward(ones)

    return run


def additions(library: str, count: int) -> Callable[[], None]:
    """A chain of `count` additions: forward, backward, freed."""
    values = np.ones(16)
    if library == "kael":
        import kael as lib
    else:
        import torch as lib
    x = lib.tensor(values, requires_grad=True)

    def run() -> None:
        y = x
        for _ in range(count):
            y = y + 1.0
        y.sum().backward()

    return run


def median_ratio(ours: Callable[[], None], theirs: Callable[[], None], runs: int, inner: int):
    """Return the median of both sides' times per call, measured alternately."""
    for _ in range(3):
        ours()
        theirs()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for side, run in enumerate((ours, theirs)):
            start = time.perf_counter()
            for _ in range(inner):
                run()
            times[side].append((time.perf_counter() - start) / inner)
    return statistics.median(times[0]), statistics.median(times[1])


def peak_bytes_a_node(library: str, count: int) -> float:
    """Return how much a chain adds to the peak memory of a process, per node."""
    # A fresh process: a child starts with its parent's peak, so this one must stay small.
    command = [sys.executable, os.path.abspath(__file__), "--memory", library, str(count)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def chain_memory(library: str, count: int) -> float:
    """Measure in this process; run through `peak_bytes_a_node`."""
    additions(library, 10)()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    additions(library, count)()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / count


def main() -> None:
    """Print one line a comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", type=int, default=LONG, help="length of the long chain")
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(chain_memory(options.memory[0], int(options.memory[1])))
        return
    long = options.long
    mine, other = peak_bytes_a_node("kael", long), peak_bytes_a_node("torch", long)
    print(f"{'bytes a node':20} kael {mine:12.1f}     torch {other:12.1f}     "
          f"ratio {mine / other:.2f}  goal 0.4")  # fmt: skip
    import torch

    torch.set_num_threads(1)
    print(f"kael against PyTorch {torch.__version__}, one thread, medians of alternating runs")
    rows = [
        ("perceptron 6x4", kael_perceptron(), torch_perceptron(), 30, 50, 0.45),
        ("100 elementwise", elementwise_chain("kael"), elementwise_chain("torch"), 30, 10, 0.5),
        (f"{long} additions", additions("kael", long), additions("torch", long), 3, 1, 0.75),
    ]
    for name, ours, theirs, runs, inner, goal in rows:
        mine, other = median_ratio(ours, theirs, runs, inner)
        print(f"{name:20} kael {mine * 1e6:12.1f} us  torch {other * 1e6:12.1f} us  "
              f"ratio {mine / other:.2f}  goal {goal}")  # fmt: skip
    short, tall = additions("kael", long // 10), additions("kael", long)
    first, second = median_ratio(short, tall, 3, 1)
    print(f"{'growth':20} {long // 10} to {long}: {second / first:.1f} times the time")


if __name__ == "__main__":
    main()
