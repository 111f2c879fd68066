"""`kael backward`: the value, and each input's gradient."""

from typing import Any

import numpy as np

from kael.engine.hooks import anomaly_enabled
from kael.specs.model import Instance
from kael.specs.runner import Evaluated
from kael.specs.runner import run as run_instance
from kael.tensors import Tensor
from kael_cli.numerals import shown
from kael_cli.options import BackwardOptions
from kael_cli.output import Output
from kael_cli.showing import show

OPTIONS = BackwardOptions


def run(options: BackwardOptions) -> int:
    """Print the value and the gradients of each target."""
    anomaly = options.anomaly or anomaly_enabled()

    def evaluate(instance: Instance) -> Evaluated:
        return run_instance(instance, seed=options.seed or 0, anomaly=anomaly)

    def text(instance: Instance, output: Output) -> None:
        evaluated = evaluate(instance)
        output.write(_table(evaluated, full=options.verbose))
        note = _not_finite(evaluated)
        if note:
            output.note(f"{instance.title}: {note}")

    def row(instance: Instance) -> dict[str, Any]:
        evaluated = evaluate(instance)
        grads = {
            name: None if leaf.grad is None else _array(leaf.grad)
            for name, leaf in evaluated.leaves.items()
        }
        return {"output": _array(evaluated.output), "grads": grads}

    return show(options, text, row)


def _table(evaluated: Evaluated, *, full: bool) -> str:
    rows: list[tuple[str, Tensor | None]] = [("value", evaluated.output)]
    rows += [(f"grad {name}", leaf.grad) for name, leaf in evaluated.leaves.items()]
    facts = [(name, "" if tensor is None else _shape(tensor), tensor) for name, tensor in rows]
    first = max(len(name) for name, _, _ in facts)
    second = max(len(shape) for _, shape, _ in facts)
    text = ""
    for name, shape, tensor in facts:
        start = f"{name:<{first}}  {shape:<{second}}  "
        values = "none" if tensor is None else shown(tensor.numpy(), indent=len(start), full=full)
        text += f"{start}{values}\n"
    return text


def _shape(tensor: Tensor) -> str:
    dtype = "" if tensor.dtype == np.float64 else f" {tensor.dtype}"
    return f"shape={list(tensor.shape)}{dtype}"


def _not_finite(evaluated: Evaluated) -> str:
    """Say where NaN or an infinity is; `kael anomaly` says where it comes from."""
    where = [
        name
        for name, tensor in (
            ("the value", evaluated.output),
            *((f"the gradient of {n}", leaf.grad) for n, leaf in evaluated.leaves.items()),
        )
        if tensor is not None and not np.isfinite(tensor.numpy()).all()
    ]
    return f"{' and '.join(where)} is not finite" if where else ""


def _array(tensor: Tensor) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype),
        "value": tensor.numpy(),
    }
