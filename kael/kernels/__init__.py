"""Kernels: plain functions on NumPy arrays, without tensors or gradients' bookkeeping.

Every name here is a function of arrays and plain arguments. A backward takes the upstream
gradient `g` first, then what it reads. `dim` counts from either end; None is all dims.
They are called where NumPy's floating-point warnings are off: a guard of their own would take as
long as four additions of small arrays.
Results of 4 MiB and more lie in memory that is used again (`kael.kernels.buffers`); `apply` gives
a NumPy ufunc the same.

    rows, reductions, indexing, elementwise, gaussian   the NumPy versions
    compiled/                                           their numba twins
    tiers                                               which of the two runs
"""

from kael.kernels.axes import broadcast
from kael.kernels.buffers import POOL_FROM_BYTES, apply, copy, empty, pooled, zeros
from kael.kernels.elementwise import relu
from kael.kernels.gaussian import erf_backward
from kael.kernels.indexing import scatter
from kael.kernels.reductions import (
    amax,
    amin,
    cumsum,
    mean,
    mean_backward,
    norm,
    prod,
    sum,
    sum_backward,
    trace_norm,
)
from kael.kernels.samples import warmup
from kael.kernels.tiers import (
    abs_backward,
    clamp_backward,
    cross_entropy,
    cross_entropy_backward,
    cumsum_backward,
    div_backward_other,
    erf,
    extreme_backward,
    failure,
    gather,
    gather_backward,
    gelu,
    gelu_backward,
    index_add,
    index_select,
    index_select_backward,
    log_softmax,
    log_softmax_backward,
    logsumexp,
    logsumexp_backward,
    norm_backward,
    only,
    prod_backward,
    relu_backward,
    scatter_add,
    select,
    sigmoid,
    sigmoid_backward,
    softmax,
    softmax_backward,
    standardize,
    standardize_backward,
    tanh_backward,
    var,
    var_backward,
)

__all__ = [
    "POOL_FROM_BYTES",
    "abs_backward",
    "amax",
    "amin",
    "apply",
    "broadcast",
    "clamp_backward",
    "copy",
    "cross_entropy",
    "cross_entropy_backward",
    "cumsum",
    "cumsum_backward",
    "div_backward_other",
    "empty",
    "erf",
    "erf_backward",
    "extreme_backward",
    "failure",
    "gather",
    "gather_backward",
    "gelu",
    "gelu_backward",
    "index_add",
    "index_select",
    "index_select_backward",
    "log_softmax",
    "log_softmax_backward",
    "logsumexp",
    "logsumexp_backward",
    "mean",
    "mean_backward",
    "norm",
    "norm_backward",
    "only",
    "pooled",
    "prod",
    "prod_backward",
    "relu",
    "relu_backward",
    "scatter",
    "scatter_add",
    "select",
    "sigmoid",
    "sigmoid_backward",
    "softmax",
    "softmax_backward",
    "standardize",
    "standardize_backward",
    "sum",
    "sum_backward",
    "tanh_backward",
    "trace_norm",
    "var",
    "var_backward",
    "warmup",
    "zeros",
]
