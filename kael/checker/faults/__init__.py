"""What can be wrong with a gradient: one module a diagnosis, named for its code.

A module's docstring is its manual page, which `kael faults CODE` prints and the pages under
`docs/faults/` repeat. `found` looks at the evidence of one input and tells the diagnosis, or
None; the modules are asked in the order of their `RANK`, and those without `found` are told by
whoever sees the fault itself. Adding a diagnosis is adding a module here and its cases under
`tests/faults/`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from types import ModuleType

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

Condition = Callable[[Evidence], Diagnosis | None]

__all__ = ["codes", "conditions", "module", "page", "summary"]


def codes() -> list[str]:
    """Every code, in the order of the alphabet."""
    return sorted(
        found.name.replace("_", "-") for found in pkgutil.iter_modules(__path__) if not found.ispkg
    )


def module(code: str) -> ModuleType:
    """The module of a code."""
    return importlib.import_module(f"{__name__}.{code.replace('-', '_')}")


def page(code: str) -> str:
    """The manual page of a code, Markdown without a title."""
    return inspect.cleandoc(module(code).__doc__ or "") + "\n"


def summary(code: str) -> str:
    """The first sentence of the page."""
    return page(code).partition("\n\n")[0].replace("\n", " ").strip()


@functools.cache
def conditions() -> list[Condition]:
    """The rules that look at the evidence of one input, the most telling ones first."""
    modules = [module(code) for code in codes()]
    ranked = sorted((one for one in modules if hasattr(one, "found")), key=lambda one: one.RANK)
    return [one.found for one in ranked]
