"""What is declared, by name; a family is imported when one of its names is first asked for.

Importing every family costs as much as importing NumPy, so `kael/ops/names.py` says which family
declares a name; it is written by `python -m kael.ops.stubs` and checked for drift.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kael.ops.names import FAMILIES

if TYPE_CHECKING:
    from kael.ops.declare import Composite, Operation

REGISTRY: dict[str, Operation] = {}
ALIASES: dict[str, str] = {}
COMPOSITES: dict[str, Composite] = {}


def lookup(name: str) -> Operation | Composite | None:
    """Return the operation that a name or an alias stands for; None where there is none."""
    found = _declared(name)
    if found is None and name in FAMILIES:
        import_module(f"kael.ops.{FAMILIES[name]}")
        found = _declared(name)
    return found


def _declared(name: str) -> Operation | Composite | None:
    name = ALIASES.get(name, name)
    return REGISTRY.get(name) or COMPOSITES.get(name)


def load_all() -> None:
    """Import every family, so that the tables are complete."""
    for family in dict.fromkeys(FAMILIES.values()):
        import_module(f"kael.ops.{family}")
