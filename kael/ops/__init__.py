"""The operations: one module a family, each operation declared once.

Importing `kael.ops` gives `Tensor` its operators and methods; a family is imported when one of
its names is first used. `REGISTRY`, `ALIASES` and `COMPOSITES` are complete: asking for them here
imports every family.
"""

from typing import TYPE_CHECKING, Any

from kael.ops.attach import attach
from kael.ops.declare import Composite, Operation
from kael.ops.registry import load_all, lookup

if TYPE_CHECKING:
    from kael.ops.registry import ALIASES, COMPOSITES, REGISTRY

__all__ = ["ALIASES", "COMPOSITES", "REGISTRY", "Composite", "Operation", "lookup"]


def __getattr__(name: str) -> Any:
    if name not in ("ALIASES", "COMPOSITES", "REGISTRY"):
        raise AttributeError(f"module 'kael.ops' has no attribute {name!r}")
    from kael.ops import registry

    load_all()
    return getattr(registry, name)


attach()
