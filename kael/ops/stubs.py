"""Writes what type checkers see of the attached names: `python -m kael.ops.stubs`.

Functions of `kael` and methods of `Tensor` come from the declarations, so their types do too:
`kael/__init__.pyi` and `kael/methods.pyi`. So does the table of which family declares a name,
`kael/ops/names.py`. `--check` exits with 1 where a file is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import kael
from kael.ops import ALIASES, COMPOSITES, REGISTRY, Composite, Operation
from kael.ops.attach import COMPARISONS, IN_PLACE_OPERATORS, OPERATORS, SIGNS
from kael.ops.inplace import METHODS

ROOT = Path(kael.__file__).parent

_HEADER = '"""Written by `python -m kael.ops.stubs` from the declarations; do not edit."""\n'
_LISTS = {"split", "chunk", "unbind"}


def declared() -> Iterator[tuple[str, Operation | Composite]]:
    """Yield every name that stands for an operation, aliases too, in order."""
    known: dict[str, Operation | Composite] = {**REGISTRY, **COMPOSITES}
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
    homes: dict[str, str] = vars(kael)["_HOME"]
    for name, module in sorted(homes.items(), key=lambda item: (item[1], item[0])):
        lines.append(f"from {module} import {name} as {name}")
    lines += ["", "float: DType", "double: DType", "bool: DType", ""]
    lines += [
        f"def {name}({parameters(op).replace('bool', 'Any')}) -> {returned(op.name)}: ..."
        for name, op in declared()
        if op.is_function
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
        "    def backward(",
        "        self, gradient: Any = ..., retain_graph: bool = ..., create_graph: bool = ...",
        "    ) -> None: ...",
        "    def retain_grad(self) -> None: ...",
        *(f"    def {dunder}(self) -> Tensor: ..." for dunder in ("__pos__", *SIGNS)),
    ]
    dunders = [f"__{stem}__" for stem in (*OPERATORS, *COMPARISONS)]
    dunders += [f"__r{stem}__" for stem in OPERATORS]
    dunders += [dunder for dunder in IN_PLACE_OPERATORS if dunder != "__setitem__"]
    for dunder in dunders:
        ignore = "  # type: ignore[override]" if dunder in ("__eq__", "__ne__") else ""
        lines.append(f"    def {dunder}(self, other: Any) -> Tensor: ...{ignore}")
    for name, method in METHODS.items():
        if name.startswith("__i"):
            continue
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


def families_table() -> str:
    """Return the text of `kael/ops/names.py`."""
    modules = {name: op.module.rsplit(".", 1)[1] for name, op in declared()}
    lines = [
        _HEADER,
        "FAMILIES: dict[str, str] = {",
        *(f'    "{name}": "{modules[name]}",' for name in sorted(modules)),
        "}",
        "",
        "IN_PLACE = frozenset(",
        "    {",
        *(f'        "{name}",' for name in sorted(METHODS) if not name.startswith("__")),
        "    }",
        ")",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the files, or compare them with what is there."""
    load_modules()
    stale = []
    texts = {
        "__init__.pyi": functions_stub(),
        "methods.pyi": methods_stub(),
        "ops/names.py": families_table(),
    }
    for name, text in texts.items():
        path = ROOT / name
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"stale: {', '.join(stale)}; run python -m kael.ops.stubs")
    return 1 if stale else 0


def load_modules() -> None:
    """Import every module beside this one: a new family is not yet in the table."""
    for path in sorted(ROOT.glob("ops/*.py")):
        if path.stem not in ("__init__", "stubs"):
            import_module(f"kael.ops.{path.stem}")


if __name__ == "__main__":
    raise SystemExit(main())
