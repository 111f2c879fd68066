"""What a gradient check costs, side by side: kael, PyTorch in both modes, JAX and autograd.

    python benchmarks/gradcheck.py [--repeat N]

Each row is one function; each column the median time of a check of it in milliseconds, and kael's
share of PyTorch's default, which compares the whole Jacobian and none of the other properties.
`kael` checks a Python function, `expression` the same as a formula whose perturbations may be
evaluated together. What is not installed is left out. The goals stand in the last column.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import kael
from kael.autograd import gradcheck

REPEAT = 25


def timed(run: Callable[[], Any], repeat: int) -> float:
    """The median of some runs in milliseconds, after one that warms up; fewer if it is slow."""
    start = time.perf_counter()
    assert run()
    if time.perf_counter() - start > 2:
        return 1e3 * (time.perf_counter() - start)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


class Case:
    """One function in every library's words."""

    def __init__(
        self,
        name: str,
        function: Callable[[Any], Callable[..., Any]],
        inputs: list[np.ndarray[Any, Any]],
        goal: str,
        slow_for_others: bool = False,
    ) -> None:
        self.name, self.function, self.inputs, self.goal = name, function, inputs, goal
        self.slow_for_others = slow_for_others


def gate(library: Any) -> Callable[..., Any]:
    return lambda x, w: library.tanh(x * w + x)


def gate_sum(library: Any) -> Callable[..., Any]:
    return lambda x, w: library.tanh(x * w + x).sum()


def perceptron(library: Any) -> Callable[..., Any]:
    def run(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
        hidden = library.tanh(x @ w1 + b1)
        return ((hidden @ w2) ** 2).mean()

    return run


def softmax(library: Any) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        e = library.exp(x)
        return e / e.sum(1).reshape(16, 1)

    return run


def cases() -> list[Case]:
    rng = np.random.default_rng(0)
    draw = rng.standard_normal
    made = []
    for n, goal in ((4, "0.5"), (64, "0.03 expression, 0.15 function"), (1024, "0.2")):
        made.append(Case(f"gate n={n}", gate, [draw(n), draw(n)], goal, n > 500))
    for n, goal in ((64, ""), (1024, ""), (16384, "0.01")):
        made.append(Case(f"gate sum n={n}", gate_sum, [draw(n), draw(n)], goal, n > 5000))
    weights = [draw((6, 4)), draw((4, 5)), draw(5), draw((5, 3))]
    made.append(Case("perceptron", perceptron, weights, "0.2"))
    made.append(Case("softmax 16x16", softmax, [draw((16, 16))], "0.15"))
    return made


def of_kael(case: Case, **options: Any) -> Callable[[], bool]:
    inputs = [kael.tensor(x, requires_grad=True) for x in case.inputs]
    function = case.function(kael)
    return lambda: bool(gradcheck(function, inputs, **options))


def of_torch(case: Case, fast: bool) -> Callable[[], bool]:
    import torch

    torch.set_num_threads(1)
    inputs = [torch.tensor(x, requires_grad=True) for x in case.inputs]
    function = case.function(torch)
    return lambda: bool(torch.autograd.gradcheck(function, inputs, fast_mode=fast))


def of_jax(case: Case) -> Callable[[], bool]:
    import jax
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    function = case.function(jax.numpy)
    return lambda: check_grads(function, tuple(case.inputs), order=1, modes=["rev"]) is None


def of_autograd(case: Case) -> Callable[[], bool]:
    import autograd.numpy
    from autograd.test_util import check_grads

    function = case.function(autograd.numpy)
    check = check_grads(function, modes=["rev"], order=1)
    return lambda: check(*case.inputs) is None


def row(case: Case, repeat: int) -> dict[str, float]:
    times = {
        "kael": timed(of_kael(case), repeat),
        "expression": timed(of_kael(case, replayable=True), repeat),
        "kael fast": timed(of_kael(case, mode="fast"), repeat),
    }
    if importlib.util.find_spec("torch"):
        times["torch"] = timed(of_torch(case, False), 1 if case.slow_for_others else repeat)
        times["torch fast"] = timed(of_torch(case, True), repeat)
    if importlib.util.find_spec("jax"):
        times["jax"] = timed(of_jax(case), repeat)
    if importlib.util.find_spec("autograd"):
        times["autograd"] = timed(of_autograd(case), repeat)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=REPEAT)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for case in cases():
        if given.only not in case.name:
            continue
        times = row(case, given.repeat)
        shown = "  ".join(f"{name} {value:8.2f}" for name, value in times.items())
        shares = ""
        if "torch" in times:
            function, formula = times["kael"] / times["torch"], times["expression"] / times["torch"]
            shares = f"share {function:.3f}, expression {formula:.3f}"
        print(f"{case.name:18} {shown}  {shares}  (goal {case.goal or '-'})", flush=True)


if __name__ == "__main__":
    main()
