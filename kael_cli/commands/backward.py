"""`kael backward`: the value, and each input's gradient."""

from typing import Any

import numpy as np

from kael.engine.hooks import anomaly_enabled
from kael.inspect.numbers import array_text
from kael.specs.model import Instance
from kael.specs.runner import Evaluated, recorded
from kael.tensors import Tensor
from kael_cli.options import BackwardOptions
from kael_cli.output import Output
from kael_cli.showing import show

OPTIONS = BackwardOptions

WRITTEN_OUT = 64
"""How many elements are written out; a larger array is summarised unless -v asks for all."""


def run(options: BackwardOptions) -> int:
    """Print the value and the gradients of each target."""
    anomaly = options.anomaly or anomaly_enabled()

    def evaluate(instance: Instance) -> Evaluated:
        watched = anomaly and not instance.spec.outside
        evaluated = (recorded if watched else Evaluated)(instance, options.seed or 0)
        evaluated.backward(anomaly=anomaly)
        return evaluated

    def text(instance: Instance, output: Output) -> None:
        evaluated = evaluate(instance)
        output.write(_table(evaluated, full=options.verbose))
        note = _not_finite(evaluated)
        if note:
            output.note(f"{instance.title}: {note}; `kael anomaly` finds where it comes from")

    def row(instance: Instance) -> dict[str, Any]:
        evaluated = evaluate(instance)
        grads = {
            name: None if leaf.grad is None else _array(leaf.grad)
            for name, leaf in evaluated.leaves.items()
        }
        return {"output": _array(evaluated.output), "grads": grads}

    return show(options, text, row, {"output": None, "grads": {}})


def _table(evaluated: Evaluated, *, full: bool) -> str:
    rows: list[tuple[str, Tensor | None]] = [("value", evaluated.output)]
    rows += [(f"grad {name}", leaf.grad) for name, leaf in evaluated.leaves.items()]
    facts = [(name, "" if tensor is None else _shape(tensor), tensor) for name, tensor in rows]
    first = max(len(name) for name, _, _ in facts)
    second = max(len(shape) for _, shape, _ in facts)
    text = ""
    for name, shape, tensor in facts:
        values = "none" if tensor is None else _values(tensor, full=full)
        text += f"{name:<{first}}  {shape:<{second}}  {values}\n"
    return text


def _values(tensor: Tensor, *, full: bool) -> str:
    array = tensor.numpy()
    text = array_text(array, most=array.size if full else WRITTEN_OUT)
    # the shape has a column of its own
    return text.removeprefix(f"shape={list(array.shape)} ").removesuffix(
        f", shape={list(array.shape)}"
    )


def _shape(tensor: Tensor) -> str:
    dtype = "" if tensor.dtype == np.float64 else f" {tensor.dtype}"
    return f"shape={list(tensor.shape)}{dtype}"


def _not_finite(evaluated: Evaluated) -> str:
    """Say where NaN or an infinity is."""
    tensors = {"the value": evaluated.output}
    for name, leaf in evaluated.leaves.items():
        if leaf.grad is not None:
            tensors[f"the gradient of {name}"] = leaf.grad
    where = [name for name, tensor in tensors.items() if not np.isfinite(tensor.numpy()).all()]
    return f"{' and '.join(where)} {'is' if len(where) == 1 else 'are'} not finite" if where else ""


def _array(tensor: Tensor) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype),
        "value": tensor.numpy(),
    }
