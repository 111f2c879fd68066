"""The one place that decides whether NumPy or compiled code runs.

Below a measured number of entries NumPy runs: no compiler is imported, and a fresh machine with an
empty cache pays nothing. From it on the compiled twin runs, unless numba is missing, switched off
(NUMBA_DISABLE_JIT) or fails, in which case NumPy always does. The choice depends on sizes and
dtypes alone, so equal inputs give equal bits whatever ran before.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Literal, ParamSpec

from kael.errors import KaelError
from kael.kernels import elementwise, gaussian, indexing, reductions, rows
from kael.kernels.axes import Array

P = ParamSpec("P")
Tier = Literal["auto", "numpy", "numba"]

_tier: Tier = "auto"
_failure: str | None = None

on_change: list[Callable[[], None]] = []
"""Called when the tier changes: who has chosen kernels by size must choose again."""


def settled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the NumPy version of a kernel, for operands known to be small: nothing to choose.

    A function that has kernels as keyword-only defaults gets their NumPy versions; one that has no
    tiers comes back as it is.
    """
    inner = getattr(kernel, "__kwdefaults__", None)
    if not inner:
        return getattr(kernel, "plain", kernel)
    assert isinstance(kernel, FunctionType)
    chosen = FunctionType(kernel.__code__, kernel.__globals__, kernel.__name__)
    chosen.__kwdefaults__ = {name: settled(used) for name, used in inner.items()}
    return chosen


def is_forced() -> bool:
    """Tell whether one tier runs at any size, so that sizes choose nothing."""
    return _tier != "auto"


@contextmanager
def only(tier: Tier) -> Iterator[None]:
    """Run every kernel in one tier, at any size, inside a `with` block: for tests and benchmarks.

    With "numba" kernels still leave to NumPy what they have no compiled version for.
    """
    global _tier
    before, _tier = _tier, tier
    try:
        for forget in on_change:
            forget()
        yield
    finally:
        _tier = before
        for forget in on_change:
            forget()


def failure() -> str | None:
    """Why compiled kernels are not used, or None while nothing speaks against them."""
    return _failure


def two_tiers(
    plain: Callable[P, Array],
    *,
    entries: int,
    entries_float32: int | None = None,
    sized_by: int = 0,
) -> Callable[P, Array]:
    """`plain`, or its compiled twin when argument `sized_by` has at least `entries` entries.

    `entries_float32` is for kernels that compute in float64, where NumPy's float32 is faster.
    """
    limits = {"f": entries_float32 or entries}

    @functools.wraps(plain)
    def run(*args: P.args, **kwargs: P.kwargs) -> Array:
        if _tier == "auto":
            array: Any = args[sized_by]
            size = array.size
            if size < entries or size < limits.get(array.dtype.char, entries):
                return plain(*args, **kwargs)
        elif _tier == "numpy":
            return plain(*args, **kwargs)
        out = _run_compiled(plain, args, kwargs)
        return plain(*args, **kwargs) if out is None else out

    marked: Any = run
    marked.plain = plain
    return run


def _run_compiled(plain: Callable[..., Array], args: Any, kwargs: Any) -> Array | None:
    """The twin's result; None where there is none, or where the compiler cannot work."""
    global _failure
    if _failure is not None:
        return None
    try:
        twin = _twin(plain.__module__.rpartition(".")[2], plain.__name__)
        out: Array | None = twin(*args, **kwargs)
    except (KaelError, MemoryError):
        raise
    except (ValueError, TypeError, IndexError):  # arguments that do not fit: NumPy says it better
        return None
    except Exception as error:  # a full disk, a damaged cache, a broken install: NumPy can do it
        _failure = f"{type(error).__name__}: {error}"
        return None
    return out


@functools.cache
def _twin(module: str, name: str) -> Callable[..., Array | None]:
    import numba

    config: Any = numba.config
    if config.DISABLE_JIT:
        raise RuntimeError("NUMBA_DISABLE_JIT is set")
    twin: Callable[..., Array | None] = getattr(
        importlib.import_module(f"kael.kernels.compiled.{module}"), name
    )
    return twin


# From these sizes the compiled version saves 50 microseconds and more in each call; it is faster
# from far smaller ones on, but never by what loading the compiler costs (a third of a second).
# benchmarks/crossover.py prints both times at each size.
softmax = two_tiers(rows.softmax, entries=1 << 17)
softmax_backward = two_tiers(
    rows.softmax_backward, entries=1 << 17, entries_float32=1 << 20, sized_by=1
)
log_softmax = two_tiers(rows.log_softmax, entries=1 << 17, entries_float32=1 << 19)
log_softmax_backward = two_tiers(
    rows.log_softmax_backward, entries=1 << 17, entries_float32=1 << 21, sized_by=1
)
logsumexp = two_tiers(rows.logsumexp, entries=1 << 17, entries_float32=1 << 21)
logsumexp_backward = two_tiers(rows.logsumexp_backward, entries=1 << 17, sized_by=1)
cross_entropy = two_tiers(rows.cross_entropy, entries=1 << 17, entries_float32=1 << 21)
cross_entropy_backward = two_tiers(rows.cross_entropy_backward, entries=1 << 17, sized_by=1)
standardize = two_tiers(rows.standardize, entries=1 << 17, entries_float32=1 << 20)
standardize_backward = two_tiers(rows.standardize_backward, entries=1 << 17, sized_by=1)

index_select = two_tiers(indexing.index_select, entries=1 << 21, sized_by=2)
index_select_backward = two_tiers(indexing.index_select_backward, entries=1 << 15)
index_add = two_tiers(indexing.index_add, entries=1 << 15, sized_by=3)
gather = two_tiers(indexing.gather, entries=1 << 17, sized_by=2)
gather_backward = two_tiers(indexing.gather_backward, entries=1 << 15)
scatter_add = two_tiers(indexing.scatter_add, entries=1 << 15, sized_by=2)

prod_backward = two_tiers(reductions.prod_backward, entries=1 << 16, sized_by=1)
extreme_backward = two_tiers(reductions.extreme_backward, entries=1 << 17, sized_by=1)
var = two_tiers(reductions.var, entries=1 << 17)
var_backward = two_tiers(reductions.var_backward, entries=1 << 17, sized_by=1)
norm_backward = two_tiers(reductions.norm_backward, entries=1 << 17, sized_by=1)
cumsum_backward = two_tiers(reductions.cumsum_backward, entries=1 << 16)

sigmoid = two_tiers(elementwise.sigmoid, entries=1 << 17, entries_float32=1 << 21)
sigmoid_backward = two_tiers(elementwise.sigmoid_backward, entries=1 << 18, sized_by=1)
tanh_backward = two_tiers(elementwise.tanh_backward, entries=1 << 19, sized_by=1)
relu_backward = two_tiers(elementwise.relu_backward, entries=1 << 16, sized_by=1)
abs_backward = two_tiers(elementwise.abs_backward, entries=1 << 16, sized_by=1)
clamp_backward = two_tiers(elementwise.clamp_backward, entries=1 << 16, sized_by=1)
select = two_tiers(elementwise.select, entries=1 << 16, sized_by=1)
div_backward_other = two_tiers(elementwise.div_backward_other, entries=1 << 17, sized_by=2)

erf = two_tiers(gaussian.erf, entries=1 << 15)
gelu = two_tiers(gaussian.gelu, entries=1 << 15)
gelu_backward = two_tiers(gaussian.gelu_backward, entries=1 << 15, sized_by=1)
