"""Where compiled kernels overtake NumPy: the numbers behind the sizes in `kael/kernels/tiers.py`.

    python benchmarks/crossover.py            every kernel, float64
    python benchmarks/crossover.py softmax    kernels whose name starts so
    python benchmarks/crossover.py --dtype float32

One thread, medians, the two tiers in turn; the compiled kernels are compiled and loaded before the
clock starts. "crosses" is the smallest size from which the compiled version stays ahead. Two more
tables: what a second thread gains, and what reused memory gains.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numba
import numpy as np

from kael import kernels
from kael.kernels import buffers, samples, tiers
from kael.kernels.compiled import jit

COLUMNS = 64
EXPONENTS = range(8, 23, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix", nargs="?", default="")
    parser.add_argument("--dtype", default="float64")
    options = parser.parse_args()
    list(kernels.warmup())
    crossover_table(options.prefix, options.dtype)
    if not options.prefix:
        threads_table()
        buffers_table()


def crossover_table(prefix: str, dtype: str) -> None:
    numba.config.NUMBA_NUM_THREADS = 1
    sizes = "".join(f"{'2**' + str(e):>14}" for e in EXPONENTS)
    print(f"microseconds NumPy/compiled, {dtype}, by number of entries\n{'':<24}{sizes}   crosses")
    rng = np.random.default_rng(0)
    grids = [rng.standard_normal((2, 2**e // COLUMNS, COLUMNS)).astype(dtype) for e in EXPONENTS]
    calls = [samples.sample_calls(*grid) for grid in grids]
    for name in calls[0]:
        if not name.startswith(prefix):
            continue
        pairs = [measure_tiers(name, call[name]) for call in calls]
        cells = "".join(f"{f'{a:.4g}/{b:.4g}':>14}" for a, b in pairs)
        print(f"{name:<24}{cells}   {crossing(pairs)}")


def measure_tiers(name: str, arguments: tuple[Any, ...]) -> tuple[float, float]:
    def run(tier: tiers.Tier) -> Callable[[], object]:
        def call() -> None:
            with kernels.only(tier):
                getattr(tiers, name)(*arguments)

        return call

    numpy_us, compiled_us = medians(run("numpy"), run("numba"))
    return numpy_us, compiled_us


def crossing(pairs: list[tuple[float, float]]) -> str:
    ahead = [b < a for a, b in pairs]
    from_here = [all(ahead[k:]) for k in range(len(ahead))]
    return f"2**{EXPONENTS[from_here.index(True)]}" if any(from_here) else "never"


def threads_table() -> None:
    print("\nmicroseconds with one thread/two threads, softmax float64")
    jit.THREADS_FROM = 2
    for exponent in EXPONENTS:
        x = np.ones((2**exponent // COLUMNS, COLUMNS))

        def run(threads: int, x: np.ndarray = x) -> None:
            numba.config.NUMBA_NUM_THREADS = threads
            with kernels.only("numba"):
                kernels.softmax(x, 1)

        one, two = medians(lambda: run(1), lambda: run(2))
        print(f"  2**{exponent:<4}{one:>12.4g} {two:>12.4g}")


def buffers_table() -> None:
    print("\nmicroseconds of a sum of two arrays into fresh/reused memory")
    for exponent in range(18, 28):
        a = np.ones(2**exponent // 8)
        pool, buffers.POOL_FROM_BYTES = buffers.POOL_FROM_BYTES, 0
        fresh, reused = medians(lambda: np.add(a, a), lambda: buffers.apply(np.add, a, a))  # noqa: B023
        buffers.POOL_FROM_BYTES = pool
        print(f"  2**{exponent} bytes{fresh:>12.4g} {reused:>12.4g}")


def medians(*calls: Callable[[], object], seconds: float = 0.06) -> list[float]:
    """Microseconds of each call, run in turn so that a slow moment hits all of them."""
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for call, kept in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    return [statistics.median(kept) * 1e6 for kept in times]


if __name__ == "__main__":
    main()
