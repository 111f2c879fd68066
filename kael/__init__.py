"""kael shows and verifies gradients, on a define-by-run autograd engine.

>>> import kael
>>> x = kael.tensor([1.0, 2.0], requires_grad=True)
>>> w = kael.tensor([0.5, -1.0], requires_grad=True)
>>> kael.tanh(x * w + x).sum().backward()
>>> w.grad
tensor([0.180707, 2.      ])

Names are loaded when first used; operations come from their declarations in `kael.ops`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kael.version import __version__

if TYPE_CHECKING:
    from kael import autograd, debug, micrograd, ops

_FACES = ("autograd", "debug", "micrograd", "ops")
_LAYERS = (
    "checker",
    "dtypes",
    "engine",
    "errors",
    "inspect",
    "kernels",
    "shapes",
    "specs",
    "tensors",
)
_FROM = {
    "kael.tensors": ("Tensor", "tensor"),
    "kael.errors": ("KaelError", "KaelIndexError", "KaelTypeError", "KaelValueError"),
    "kael.dtypes": (
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "set_default_dtype",
    ),
    "kael.engine.grad_mode": ("enable_grad", "is_grad_enabled", "no_grad", "set_grad_enabled"),
    "kael.ops.create": (
        "arange",
        "eye",
        "full",
        "full_like",
        "linspace",
        "manual_seed",
        "ones",
        "ones_like",
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "zeros",
        "zeros_like",
    ),
    "kael.specs.inputs": ("Input",),
    "kael.specs.python_loader": ("spec",),
}
_HOME = {name: module for module, names in _FROM.items() for name in names}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAYERS or name in _FACES:
        return import_module(f"kael.{name}")
    # Methods and operators are attached by the layer above the tensors: it comes first.
    import_module("kael.ops")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in ("float", "double", "bool"):
        from kael import dtypes

        value = {"float": dtypes.float32, "double": dtypes.float64, "bool": dtypes.bool_}[name]
    else:
        from kael.ops import lookup

        found = lookup(name)
        if found is None or not found.is_function:
            kael = sys.modules[__name__]
            raise AttributeError(f"module 'kael' has no attribute {name!r}", name=name, obj=kael)
        value = found.function
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from kael.ops import ALIASES, COMPOSITES, REGISTRY

    functions = [name for name, op in REGISTRY.items() if op.is_function]
    aliases = [name for name, of in ALIASES.items() if of in functions or of in COMPOSITES]
    return sorted({"__version__", *_FACES, *_HOME, *functions, *aliases, *COMPOSITES})


__all__ = ["__version__", "autograd", "debug", "micrograd", "ops"]
