"""`kael trace`: backward, one line a node."""

from io import StringIO
from typing import Any

from kael.engine.hooks import Trace, anomaly_enabled
from kael.specs.model import Instance
from kael.specs.runner import Steps
from kael.specs.runner import run as run_instance
from kael_cli.options import TraceOptions
from kael_cli.output import Output
from kael_cli.showing import show

OPTIONS = TraceOptions


def run(options: TraceOptions) -> int:
    """Print the trace of each target."""
    settings: Any = {
        "seed": options.seed or 0,
        "anomaly": options.anomaly or anomaly_enabled(),
    }

    def text(instance: Instance, output: Output) -> None:
        lines = StringIO()
        try:
            run_instance(instance, watch=Trace(lines), **settings)
        finally:
            # what was walked before an anomaly leads to it
            output.write(lines.getvalue())

    def row(instance: Instance) -> dict[str, Any]:
        steps = Steps()
        evaluated = run_instance(instance, watch=steps, **settings)
        return {
            "steps": [
                {
                    "step": number,
                    "node": step.node,
                    "name": step.name,
                    "shape": step.shape,
                    "norm": step.norm,
                    "expr": step.expr,
                }
                for number, step in enumerate(steps.named(evaluated), 1)
            ]
        }

    return show(options, text, row)
