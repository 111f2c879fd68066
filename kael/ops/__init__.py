"""The operations: one module a family, each operation declared once.

`kael.ops` imports every family and attaches methods and operators to `Tensor`.
"""

from kael.ops import (
    activation,
    compare,
    contract,
    index,
    linalg,
    loss,
    math,
    nn,
    positions,
    reduce,
    scan,
    sort,
    special,
    view,
)
from kael.ops.attach import attach
from kael.ops.declare import ALIASES, COMPOSITES, REGISTRY, Composite, Operation, lookup

__all__ = [
    "ALIASES",
    "COMPOSITES",
    "REGISTRY",
    "Composite",
    "Operation",
    "activation",
    "compare",
    "contract",
    "index",
    "linalg",
    "lookup",
    "loss",
    "math",
    "nn",
    "positions",
    "reduce",
    "scan",
    "sort",
    "special",
    "view",
]

attach()
