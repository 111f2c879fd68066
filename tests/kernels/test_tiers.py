"""The two tiers agree, and the tier is chosen as `kael.kernels.tiers` says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kael import kernels
from kael.kernels import samples, tiers

NAMES = sorted(samples.sample_calls(np.ones((2, 2)), np.ones((2, 2))))


def both(name: str, arguments: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    with kernels.only("numpy"):
        plain = np.asarray(getattr(tiers, name)(*arguments))
    with kernels.only("numba"):
        compiled = np.asarray(getattr(tiers, name)(*arguments))
    assert kernels.failure() is None
    return plain, compiled


def strided(x: np.ndarray, how: str) -> np.ndarray:
    if how == "transposed":
        return np.ascontiguousarray(x.T).T
    if how == "reversed":
        return np.ascontiguousarray(x[::-1])[::-1]
    return np.repeat(x, 2, axis=1)[:, ::2] if how == "stepped" else x


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, derandomize=True, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 19)),
    dtype=st.sampled_from(["float64", "float32"]),
    how=st.sampled_from(["plain", "transposed", "reversed", "stepped"]),
    seed=st.integers(0, 2**16),
)
def test_tiers_are_equal(
    name: str, shape: tuple[int, int], dtype: str, how: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x, g = (strided(rng.standard_normal(shape).astype(dtype), how) for _ in range(2))
    plain, compiled = both(name, samples.sample_calls(x, g)[name])
    assert compiled.dtype == plain.dtype == np.dtype(dtype)
    assert compiled.shape == plain.shape
    # Over one column the variance is eps alone, and both sides are rounding noise times 300.
    tolerance = 1e-11 if dtype == "float64" else 2e-4
    np.testing.assert_allclose(compiled, plain, rtol=tolerance, atol=tolerance)


EDGES = {
    "all -inf": [-np.inf, -np.inf, -np.inf],
    "one -inf": [-np.inf, 0.0, 1.0],
    "+inf": [np.inf, 0.0, 1.0],
    "nan": [np.nan, 0.0, 1.0],
    "nan and inf": [np.nan, np.inf, -np.inf],
    "huge": [1000.0, 999.0, -1000.0],
    "zeros": [0.0, 0.0, 0.0],
    "one zero": [2.0, 0.0, 3.0],
    "ties": [3.0, 3.0, 1.0],
    "largest": [1.7e308, 1.7e308, -1.7e308],
    "smallest": [5e-324, 0.0, -5e-324],
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("name", NAMES)
def test_tiers_are_equal_at_edges(name: str, edge: str) -> None:
    x = np.array([EDGES[edge], [0.5, -0.5, 0.25]])
    g = np.array([[1.0, -2.0, 3.0], [0.0, 1.0, -1.0]])
    plain, compiled = both(name, samples.sample_calls(x, g)[name])
    np.testing.assert_allclose(compiled, plain, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_left_as_they_were(name: str) -> None:
    rng = np.random.default_rng(0)
    arguments = samples.sample_calls(rng.standard_normal((3, 4)), rng.standard_normal((3, 4)))[name]
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    both(name, arguments)
    for old, new in zip(before, arguments, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize(
    "name", ["softmax", "logsumexp", "cumsum_backward", "var", "prod_backward"]
)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_any_dim(name: str, dim: int) -> None:
    x = np.random.default_rng(1).standard_normal((4, 3, 5))
    arguments = (x.sum(axis=dim), x, dim) if name == "prod_backward" else (x, dim)
    plain, compiled = both(name, arguments)
    np.testing.assert_allclose(compiled, plain, rtol=1e-12)


def test_threads_do_not_change_a_bit() -> None:
    x = np.random.default_rng(2).standard_normal((512, 1024))
    code = (
        "import sys, numpy as np; from kael import kernels;"
        "x = np.random.default_rng(2).standard_normal((512, 1024));"
        "sys.stdout.buffer.write(kernels.log_softmax(x, 1).tobytes())"
    )
    for threads in ("1", "2"):
        done = run_python(code, NUMBA_NUM_THREADS=threads)
        assert done.stdout == kernels.log_softmax(x, 1).tobytes(), done.stderr


def run_python(code: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **variables},
        capture_output=True,
        check=True,
        timeout=120,
    )


REPORT = (
    "import json, sys, numpy as np; from kael import kernels;"
    "x = np.linspace(-3, 3, 1 << 18).reshape(-1, 64);"
    "total = float(kernels.softmax(x, 1).sum());"
    "print(json.dumps([total, kernels.failure(), 'numba' in sys.modules]))"
)


def report(code: str = REPORT, **variables: str) -> tuple[float, str | None, bool]:
    total, failure, has_numba = json.loads(run_python(code, **variables).stdout)
    return total, failure, has_numba


def test_small_inputs_import_no_compiler() -> None:
    small = REPORT.replace("1 << 18", "1 << 10")
    assert report(small) == (16.0, None, False)
    names = "print([m for m in ('numba', 'scipy', 'concurrent.futures') if m in sys.modules])"
    assert run_python(f"import sys, kael.kernels; {names}").stdout == b"[]\n"


def test_large_inputs_are_compiled() -> None:
    assert report() == (pytest.approx(4096), None, True)


def test_switched_off_compiler_falls_back_to_numpy() -> None:
    total, failure, _ = report(NUMBA_DISABLE_JIT="1")
    assert total == pytest.approx(4096)
    assert failure is not None
    assert "NUMBA_DISABLE_JIT" in failure


def test_missing_compiler_falls_back_to_numpy() -> None:
    total, failure, _ = report("import sys; sys.modules['numba'] = None;" + REPORT)
    assert total == pytest.approx(4096)
    assert failure is not None
    assert failure.startswith("ModuleNotFoundError")


def test_unwritable_cache_folder_still_compiles() -> None:
    assert report(NUMBA_CACHE_DIR="/dev/null/none") == (pytest.approx(4096), None, True)


def test_no_cache_folder_at_all_still_compiles() -> None:
    nowhere = "from numba.core import caching; caching.CacheImpl._locator_classes = [];"
    assert report(nowhere + REPORT) == (pytest.approx(4096), None, True)


def test_damaged_cache_falls_back_to_numpy(tmp_path: Any) -> None:
    assert report(NUMBA_CACHE_DIR=str(tmp_path))[1] is None
    damaged = list(tmp_path.rglob("*.nbi"))
    assert damaged
    for path in damaged:
        path.write_bytes(b"not an index")
    total, _, _ = report(NUMBA_CACHE_DIR=str(tmp_path))
    assert total == pytest.approx(4096)


def test_several_processes_may_compile_at_once(tmp_path: Any) -> None:
    jobs = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", REPORT],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for job in jobs:
        out, _ = job.communicate(timeout=120)
        assert json.loads(out) == [pytest.approx(4096), None, True]


def test_the_choice_depends_on_size(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    monkeypatch.setattr(tiers, "_run_compiled", lambda plain, *_: used.append(plain.__name__))
    kernels.softmax(np.zeros((1, (1 << 17) - 1)), 1)
    assert used == []
    kernels.softmax(np.zeros((1, 1 << 17)), 1)
    assert used == ["softmax"]


def test_warmup_names_every_kernel_in_both_dtypes() -> None:
    names = [name for name, seconds in kernels.warmup() if seconds >= 0]
    assert names == [f"{n} {d}" for d in ("float64", "float32") for n in samples.sample_calls(
        np.ones((2, 2)), np.ones((2, 2)))]  # fmt: skip


def test_a_wrong_argument_does_not_switch_the_compiler_off() -> None:
    with kernels.only("numba"), pytest.raises(ValueError, match="broadcast"):
        kernels.softmax_backward(np.ones((2, 3)), np.ones((2, 4)), 1)
    assert kernels.failure() is None
