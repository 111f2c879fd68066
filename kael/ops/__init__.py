"""The operations: one module a family, each operation declared once.

`kael.ops` imports every family and attaches methods and operators to `Tensor`.
"""

from kael.ops import math as _math
from kael.ops.declare import ALIASES, COMPOSITES, REGISTRY, Composite, Operation, lookup

__all__ = ["ALIASES", "COMPOSITES", "REGISTRY", "Composite", "Operation", "lookup"]
