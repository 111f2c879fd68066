"""Threads: separate graphs, and backwards that meet in the same leaves."""

import threading

import numpy as np

import kael


def run_all(*targets):
    errors = []

    def guarded(target):
        try:
            target()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_SeparateGraphs():
    results = {}

    def work(name, factor):
        x = kael.tensor(np.ones(100), requires_grad=True)
        for _ in range(200):
            kael.tanh(x * factor).sum().backward()
        results[name] = x.grad.numpy()[0]

    run_all(lambda: work("a", 2.0), lambda: work("b", 3.0))
    for name, factor in (("a", 2.0), ("b", 3.0)):
        assert np.isclose(results[name], 200 * factor * (1 - np.tanh(factor) ** 2))


def test_SameLeavesGetTheWholeSum():
    x = kael.tensor(np.zeros(1000), requires_grad=True)

    def work():
        for _ in range(300):
            (x * 1.0 + x * 2.0).sum().backward()

    run_all(work, work, work)
    assert np.all(x.grad.numpy() == 3 * 300 * 3.0)


def test_GeneratorsAreOneAThread():
    draws = {}

    def work(name):
        kael.manual_seed(7)
        draws[name] = kael.randn(50).tolist()

    run_all(lambda: work("a"), lambda: work("b"))
    assert draws["a"] == draws["b"]
