"""Writes what type checkers see of the attached names: `python -m kael.ops.stubs`.

Functions of `kael` and methods of `Tensor` come from the declarations, so their types do too:
`kael/__init__.pyi` and `kael/methods.pyi`. `--check` exits with 1 where a file is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import kael
from kael.ops import ALIASES, COMPOSITES, REGISTRY, Composite, Operation
from kael.ops.attach import OPERATORS, REFLECTED
from kael.ops.inplace import METHODS

ROOT = Path(kael.__file__).parent

_HEADER = '"""Written by `python -m kael.ops.stubs` from the declarations; do not edit."""\n'
_LISTS = {"split", "chunk", "unbind"}


def declared() -> Iterator[tuple[str, Operation | Composite]]:
    """Yield every name that stands for an operation, aliases too, in order."""
    known = {**REGISTRY, **COMPOSITES}
    names = {**{name: name for name in known}, **ALIASES}
    for name in sorted(names):
        if names[name].isidentifier():
            yield name, known[names[name]]


def parameters(op: Operation | Composite, first: str | None = None) -> str:
    """Return the parameter list of a stub; `first` replaces the first parameter."""
    parts = [] if first is None else [first]
    names = op.parameters if first is None else op.parameters[1:]
    for name in names:
        if name == op.rest:
            parts.append(f"*{name}: Any")
        else:
            default = " = ..." if name in op.defaults else ""
            kind = "bool" if isinstance(op.defaults.get(name), bool) else "Any"
            parts.append(f"{name}: {kind}{default}")
    return ", ".join(parts)


def returned(name: str) -> str:
    """Return the type an operation gives."""
    return "list[Tensor]" if name in _LISTS else "Tensor"


def functions_stub() -> str:
    """Return the text of `kael/__init__.pyi`."""
    lines = [
        _HEADER,
        "from typing import Any\n",
        "from kael import autograd as autograd, debug as debug, micrograd as micrograd",
        "from kael import ops as ops",
        "from kael.dtypes import DType",
        "from kael.version import __version__ as __version__",
    ]
    for name, module in sorted(kael._HOME.items(), key=lambda item: (item[1], item[0])):
        lines.append(f"from {module} import {name} as {name}")
    lines += ["", "float: DType", "double: DType", "bool: DType", ""]
    lines += [
        f"def {name}({parameters(op).replace('bool', 'Any')}) -> {returned(op.name)}: ..."
        for name, op in declared()
        if getattr(op, "is_function", True)
    ]
    return "\n".join(lines) + "\n"


def methods_stub() -> str:
    """Return the text of `kael/methods.pyi`."""
    lines = [
        _HEADER,
        "from collections.abc import Iterator",
        "from typing import Any\n",
        "from kael.tensors import Tensor\n",
        "class Methods:",
        "    @property",
        "    def T(self) -> Tensor: ...",
        "    @property",
        "    def mT(self) -> Tensor: ...",
        "    def __iter__(self) -> Iterator[Tensor]: ...",
        "    def __getitem__(self, items: Any) -> Tensor: ...",
        "    def backward(self, gradient: Any = ..., retain_graph: bool = ...) -> None: ...",
        "    def retain_grad(self) -> None: ...",
        "    def __neg__(self) -> Tensor: ...",
        "    def __abs__(self) -> Tensor: ...",
        "    def __invert__(self) -> Tensor: ...",
    ]
    dunders = [*OPERATORS, *(f"__r{stem}__" for stem in REFLECTED)]
    for dunder in dunders:
        ignore = "  # type: ignore[override]" if dunder in ("__eq__", "__ne__") else ""
        lines.append(f"    def {dunder}(self, other: Any) -> Tensor: ...{ignore}")
    for name, method in METHODS.items():
        code = method.__code__
        count = code.co_argcount
        defaults = len(method.__defaults__ or ())
        arguments = [
            f"{argument}: Any{' = ...' if at >= count - defaults else ''}"
            for at, argument in enumerate(code.co_varnames[:count])
            if at
        ]
        result = "None" if name == "__setitem__" else "Tensor"
        lines.append(
            f"    def {name}(self, {', '.join(arguments)}) -> {result}: ...".replace(
                "(self, )", "(self)"
            )
        )
    for name, op in declared():
        if op.method and name not in ("T", "mT"):
            lines.append(f"    def {name}({parameters(op, 'self')}) -> {returned(op.name)}: ...")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the stubs, or compare them with what is there."""
    stale = []
    for name, text in (("__init__.pyi", functions_stub()), ("methods.pyi", methods_stub())):
        path = ROOT / name
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"stale: {', '.join(stale)}; run python -m kael.ops.stubs")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
