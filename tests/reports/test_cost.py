# ruff: noqa: E501 (a table reads best with one row a line)
"""What the first use costs: no compiler for help and small inputs, and caches that may fail.

Which modules each command imports is held in `tests/cli`, the tiers of kernels in `tests/kernels`.
"""

import os
import subprocess
import sys

import pytest

COMPILERS = {"numba", "llvmlite", "torch", "scipy"}
SPEC = "inputs: {x: [1, 2], w: [0.5, -1]}\noutput: tanh(x*w + x).sum()\n"


def run(*arguments, folder, **variables):
    code = (
        "import sys\n"
        "from kael_cli.main import main\n"
        "code = main(sys.argv[1:])\n"
        "print('MODULES', code, *sorted(sys.modules), file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **variables},
        check=False,
    )
    *notes, last = ran.stderr.splitlines()
    _, code, *modules = last.split()
    return int(code), ran.stdout, notes, set(modules)


# G1: the first use. source: fast_hdbscan #26, ctapipe #1102, tsdate #368, chimeraboost #34


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",), ("--version",), ("gradcheck", "--help"), ("gradcheck", "case.yaml"), ("check", "case.yaml"),
        ("backward", "case.yaml"), ("anomaly", "case.yaml"), ("dot", "case.yaml"), ("tree", "case.yaml"),
        ("explain", "case.yaml"), ("ops", "softmax"), ("faults", "factor"),
        ("gradcheck", "norm(softmax(x, dim=0))", "-i", "x=randn(64)"),
        ("backward", "logsumexp(standardize(x, 1), dim=(0, 1))", "-i", "x=randn(32,32)"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_small_work_runs_without_a_compiler(arguments, tmp_path):
    (tmp_path / "case.yaml").write_text(SPEC, encoding="utf-8")
    code, out, notes, modules = run(*arguments, folder=tmp_path)
    assert (code, notes) == (0, [])
    assert out
    assert not modules & COMPILERS


def test_an_import_of_the_library_loads_no_compiler(tmp_path):
    program = "import sys, kael; kael.tensor([1.0]).sum(); print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert ran.stderr == ""
    assert not set(ran.stdout.split()) & COMPILERS


LARGE = ("backward", "sum(softmax(x, dim=1) * x)", "-i", "x=randn(256,1024)", "--format", "json")


def test_a_cache_that_cannot_be_written_breaks_nothing_and_says_nothing(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("no folder")
    code, out, notes, modules = run(*LARGE, folder=tmp_path, NUMBA_CACHE_DIR=str(nowhere / "cache"))
    assert (code, notes) == (0, [])
    assert "numba" in modules
    switched_off = run(*LARGE, folder=tmp_path, NUMBA_DISABLE_JIT="1")
    assert switched_off[0] == 0
    assert switched_off[2] == []
    assert out[:80] == switched_off[1][:80]
