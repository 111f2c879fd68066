"""Forward plus backward of large operations, as ratios to PyTorch: the goals and where we stand.

    python benchmarks/ops.py
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1 python benchmarks/ops.py

float64, one thread each, medians of runs taken in turn in one process. Most of PyTorch's time on
such arrays is page faults; the second command gives it huge pages, which is the fair opponent.
PyTorch is needed only here.
"""

from __future__ import annotations

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import kael

ROUNDS = 9
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'':<44}{'kael ms':>9}{'torch ms':>9}{'ratio':>7}{'goal':>6}")
    for title, goal, make in CASES:
        ours, theirs = (statistics.median(times) for times in in_turn(make()))
        print(f"{title:<44}{ours * 1e3:>9.1f}{theirs * 1e3:>9.1f}{ours / theirs:>7.2f}{goal:>6}")


def in_turn(calls: Pair) -> list[list[float]]:
    times: list[list[float]] = [[], []]
    for call in calls:
        call()
    for _ in range(ROUNDS):
        for call, kept in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    return times


def steps(
    arrays: list[np.ndarray], ours: Callable[..., Any], theirs: Callable[..., Any], upstream: Any
) -> Pair:
    """One forward and backward with gradients made anew, for each of the two."""
    mine = [kael.tensor(a, requires_grad=True) for a in arrays]
    other = [torch.tensor(a, requires_grad=True) for a in arrays]
    seed = () if upstream is None else (kael.tensor(upstream),)
    torch_seed = () if upstream is None else (torch.tensor(upstream),)

    def step_ours() -> None:
        for leaf in mine:
            leaf.zero_grad()
        ours(*mine).backward(*seed)

    def step_theirs() -> None:
        for leaf in other:
            leaf.grad = None
        theirs(*other).backward(*torch_seed)

    return step_ours, step_theirs


def rows(ours: Callable[..., Any], theirs: Callable[..., Any], reduces: bool = False) -> Pair:
    rng = np.random.default_rng(0)
    upstream = rng.standard_normal(4096 if reduces else (4096, 1024))
    return steps([rng.standard_normal((4096, 1024))], ours, theirs, upstream)


def fused() -> Pair:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(10**7) for _ in range(3)]
    return steps(
        arrays,
        lambda a, b, c: kael.sum(kael.tanh(a * b + c) * kael.sigmoid(a)),
        lambda a, b, c: torch.sum(torch.tanh(a * b + c) * torch.sigmoid(a)),
        None,
    )


def cross_entropy() -> Pair:
    targets = np.random.default_rng(1).integers(0, 1024, 4096)
    ours, theirs = kael.tensor(targets), torch.tensor(targets)
    return rows(
        lambda x: kael.cross_entropy_losses(x, ours),
        lambda x: torch.nn.functional.cross_entropy(x, theirs, reduction="none"),
        reduces=True,
    )


def index_select() -> Pair:
    rng = np.random.default_rng(0)
    index = rng.integers(0, 10**5, 10**6)
    ours, theirs = kael.tensor(index), torch.tensor(index)
    return steps(
        [rng.standard_normal((10**5, 8))],
        lambda x: kael.index_select(x, 0, ours),
        lambda x: torch.index_select(x, 0, theirs),
        rng.standard_normal((10**6, 8)),
    )


def matmul() -> Pair:
    """Against NumPy's three products, not PyTorch's."""
    rng = np.random.default_rng(0)
    a, b, g = rng.standard_normal((3, 1024, 1024))
    ours, _ = steps([a, b], lambda x, y: x @ y, torch.matmul, g)
    return ours, lambda: (a @ b, g @ b.T, a.T @ g)


CASES: list[tuple[str, float, Callable[[], Pair]]] = [
    ("sum(tanh(a*b + c) * sigmoid(a)), 1e7", 0.4, fused),
    ("softmax 4096x1024", 0.45, lambda: rows(lambda x: x.softmax(1), lambda x: x.softmax(1))),
    (
        "log_softmax 4096x1024",
        0.45,
        lambda: rows(lambda x: x.log_softmax(1), lambda x: x.log_softmax(1)),
    ),
    (
        "standardize 4096x1024",
        0.45,
        lambda: rows(
            lambda x: kael.standardize(x, 1),
            lambda x: torch.nn.functional.layer_norm(x, (1024,)),
        ),
    ),
    (
        "logsumexp 4096x1024",
        0.3,
        lambda: rows(lambda x: x.logsumexp(1), lambda x: x.logsumexp(1), reduces=True),
    ),
    ("cross entropy 4096x1024", 0.25, cross_entropy),
    ("index_select 1e6 of 1e5x8", 0.4, index_select),
    ("matmul 1024 (to NumPy's three products)", 1.05, matmul),
]


if __name__ == "__main__":
    main()
