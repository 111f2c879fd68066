"""`kael trace`: backward, one line a node."""

from io import StringIO
from typing import Any

from kael.engine.hooks import Trace, anomaly_enabled
from kael.specs.model import Instance
from kael.specs.runner import Evaluated, recorded, require_graph
from kael_cli.options import TraceOptions
from kael_cli.output import Output
from kael_cli.showing import show

OPTIONS = TraceOptions


def run(options: TraceOptions) -> int:
    """Print the trace of each target."""
    anomaly = options.anomaly or anomaly_enabled()
    plain = options.format == "text" and not (options.values or options.only or options.top)

    def walked(instance: Instance) -> list[Any]:
        from kael.inspect.trace import Tracer, selected

        evaluated = recorded(instance, options.seed or 0)
        tracer = Tracer(evaluated.names, evaluated.recorder)
        evaluated.backward(tracer, anomaly=anomaly)
        return selected(tracer.rows, options.only, options.top)

    def text(instance: Instance, output: Output) -> None:
        if not plain:
            output.write(_rendered(walked(instance), options))
            return
        require_graph(instance)
        seed = options.seed or 0
        evaluated = recorded(instance, seed) if anomaly else Evaluated(instance, seed)
        lines = StringIO()
        try:
            evaluated.backward(Trace(lines), anomaly=anomaly)
        finally:
            # what was walked before an anomaly leads to it
            output.write(lines.getvalue())

    def row(instance: Instance) -> dict[str, Any]:
        from kael.inspect.trace import records

        return {"steps": records(walked(instance), values=options.values)}

    return show(options, text, row, {"steps": []})


def _rendered(rows: list[Any], options: TraceOptions) -> str:
    from kael.inspect.trace import lines, table

    if options.format == "table":
        shown = table(rows, values=options.values)
    else:
        shown = lines(rows, values=options.values)
    return "".join(f"{line}\n" for line in shown)
