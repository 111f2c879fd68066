"""The engine against PyTorch, as ratios measured in one run with one thread each.

    python benchmarks/engine.py

Needs PyTorch (not a dependency). Each pair is timed alternately; the medians' ratio is printed
with the goal. Long chains run in processes of their own, where the collector meets no other
library's objects; their memory is such a process's peak.
"""

import argparse
import importlib
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

LONG = 1_000_000


def perceptron(library: str) -> Callable[[], None]:
    """Two layers on a 6x4 input: forward and backward."""
    lib = importlib.import_module(library)
    x, targets, w1, b1, w2, b2 = perceptron_arrays()
    inputs, index = lib.tensor(x), lib.tensor(targets)
    leaves = [lib.tensor(a, requires_grad=True) for a in (w1, b1, w2, b2)]

    def run() -> None:
        w1, b1, w2, b2 = leaves
        hidden = lib.tanh(inputs @ w1 + b1)
        logits = lib.log_softmax(hidden @ w2 + b2, dim=1)
        (-lib.gather(logits, 1, index).mean()).backward()

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


def chain_alone(library: str, count: int) -> tuple[float, float]:
    """Return a chain's seconds and bytes a node, measured in a process of its own."""
    # A child starts with its parent's peak memory, so this process must stay small meanwhile.
    command = [sys.executable, os.path.abspath(__file__), "--chain", library, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, grown = map(float, done.stdout.split())
    return seconds, grown


def chain_here(library: str, count: int) -> tuple[float, float]:
    """Measure in this process; run through `chain_alone`."""
    additions(library, 10)()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    additions(library, count)()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    # The second time, when the process has its memory: PyTorch's first pays for three times more.
    start = time.perf_counter()
    additions(library, count)()
    return time.perf_counter() - start, grown * 1024 / count


def long_chains(long: int) -> None:
    """Print time, memory and growth of long chains, both sides in turn."""
    sides = ("kael", "torch")
    found = [[chain_alone(library, long) for library in sides] for _ in range(5)]
    # Growth compares the fastest runs: each side's, whoever else used the machine meanwhile.
    short = min(chain_alone("kael", long // 10)[0] for _ in range(5))
    growth = min(pair[0][0] for pair in found) / short
    mine, other = (statistics.median(pair[side][0] for pair in found) for side in (0, 1))
    print(f"{f'{long} additions':20} kael {mine * 1e6:12.1f} us  torch {other * 1e6:12.1f} us  "
          f"ratio {mine / other:.2f}  goal 0.75")  # fmt: skip
    print(f"{'growth':20} {long // 10} to {long}: {growth:.1f} times the time")
    mine, other = (statistics.median(pair[side][1] for pair in found) for side in (0, 1))
    print(f"{'bytes a node':20} kael {mine:12.1f}     torch {other:12.1f}     "
          f"ratio {mine / other:.2f}  goal 0.4")  # fmt: skip


def main() -> None:
    """Print one line a comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", type=int, default=LONG, help="length of the long chain")
    parser.add_argument("--chain", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.chain:
        print(*chain_here(options.chain[0], int(options.chain[1])))
        return
    long_chains(options.long)
    import torch

    torch.set_num_threads(1)
    print(f"kael against PyTorch {torch.__version__}, one thread, medians of alternating runs")
    rows = [
        ("perceptron 6x4", perceptron("kael"), perceptron("torch"), 30, 50, 0.45),
        ("100 elementwise", elementwise_chain("kael"), elementwise_chain("torch"), 30, 10, 0.5),
    ]
    for name, ours, theirs, runs, inner, goal in rows:
        mine, other = median_ratio(ours, theirs, runs, inner)
        print(f"{name:20} kael {mine * 1e6:12.1f} us  torch {other * 1e6:12.1f} us  "
              f"ratio {mine / other:.2f}  goal {goal}")  # fmt: skip


if __name__ == "__main__":
    main()
