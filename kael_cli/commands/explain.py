"""`kael explain`: the worked example of a spec, by hand."""

import sys
from typing import Any

from kael.inspect import explain as example
from kael.specs.expression import Expression
from kael.specs.model import Instance
from kael.specs.runner import claims_of, recorded
from kael_cli.options import ExplainOptions
from kael_cli.output import Output
from kael_cli.showing import only_one, show

OPTIONS = ExplainOptions

KEYS = ("nodes", "edges", "output", "inputs", "forward", "counts", "steps", "checks")
NOTHING: dict[str, Any] = {key: None if key == "output" else [] for key in KEYS}
"""What the document of a spec that cannot be explained has under the keys of one that can."""


def run(options: ExplainOptions) -> int:
    """Print the worked example of the one target."""

    def text(instance: Instance, output: Output) -> None:
        explained = _explained(instance, options)
        if options.step:
            _stepwise(explained, output)
        else:
            render = example.markdown if options.format == "markdown" else example.text
            output.write(render(explained))

    def row(instance: Instance) -> dict[str, Any]:
        return example.document(_explained(instance, options))

    return show(options, text, row, NOTHING, admit=only_one)


def _explained(instance: Instance, options: ExplainOptions) -> example.Explanation:
    evaluated = recorded(instance, options.seed or 0)
    assert evaluated.recorder is not None
    claims = []
    for name, value in claims_of(evaluated).items():
        claim = instance.spec.derivatives[name]
        shown = (
            claim.text
            if isinstance(claim, Expression)
            else f"{getattr(claim, '__name__', 'a function')}(…)"
        )
        claims.append(example.Claim(name, shown, value))
    try:
        return example.explain(
            evaluated.recorder,
            evaluated.output,
            evaluated.names,
            inputs=list(evaluated.leaves),
            upstream=evaluated.upstream(ones=True),
            claims=claims,
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise evaluated.failure(error) from error


def _stepwise(explained: example.Explanation, output: Output) -> None:
    """Write the tables, then one backward step after the other; on a terminal Enter shows each."""
    waits = sys.stdin.isatty() and sys.stdout.isatty()
    whole = example.text(explained)
    output.write(whole[: whole.index("\nBackward pass")] + "\n")
    for row in explained.backward:
        if waits:
            input()
        cells = zip(example.BACKWARD, example.backward_cells(row), strict=True)
        output.write("".join(f"{head}: {cell}\n" for head, cell in cells if cell) + "\n")
