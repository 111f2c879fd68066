"""The options of every command, each declared once, and how a command line becomes one of them.

A class here is a command line: its annotations are Typer's, its attributes the defaults. Typer
only parses; what the options do is the business of `kael_cli.commands`.
"""

import re
from inspect import Parameter, Signature, get_annotations
from typing import Annotated, Any, Literal, TypeVar

import typer

from kael.specs.spelling import did_you_mean
from kael_cli.exits import CommandError, Exit

Targets = Annotated[list[str], typer.Argument(metavar="TARGET...", show_default=False)]
Flag = typer.Option


class Options:
    """What every command takes."""

    output: Annotated[
        str | None,
        Flag("-o", "--output", metavar="FILE", help="Write to FILE, whole or not at all."),
    ] = None
    quiet: Annotated[bool, Flag("-q", "--quiet", help="Print less.")] = False
    verbose: Annotated[bool, Flag("-v", "--verbose", help="Print more; tracebacks too.")] = False
    color: Annotated[
        Literal["auto", "always", "never"], Flag("--color", help="When to colour.")
    ] = "auto"

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)
        self.command = ""


class TargetOptions(Options):
    """What every command on TARGETs takes."""

    targets: Targets
    input: Annotated[
        list[str] | None,
        Flag("-i", "--input", metavar="NAME=VALUE", help="An input with a gradient: x=[1,2]."),
    ] = None
    const: Annotated[
        list[str] | None,
        Flag("-c", "--const", metavar="NAME=VALUE", help="An input without a gradient."),
    ] = None
    seed: Annotated[
        int | None, Flag("--seed", metavar="N", help="Seeds every generator; 0 unless given.")
    ] = None
    dtype: Annotated[
        Literal["float32", "float64"] | None, Flag("--dtype", help="The default floating dtype.")
    ] = None
    max_elements: Annotated[
        int | None,
        Flag("--max-elements", metavar="N", min=1, help="Refuse a result with more elements."),
    ] = None


class ShowOptions(TargetOptions):
    """What the commands that only show take."""

    format: Annotated[Literal["text", "json"], Flag("--format", help="Output format.")] = "text"


class BackwardOptions(ShowOptions):
    """`kael backward`."""

    anomaly: Annotated[bool, Flag("--anomaly", help="Stop at a gradient that is NaN.")] = False


class TraceOptions(TargetOptions):
    """`kael trace`."""

    format: Annotated[Literal["text", "table", "json"], Flag("--format", help="Output format.")] = (
        "text"
    )
    anomaly: Annotated[bool, Flag("--anomaly", help="Stop at a gradient that is NaN.")] = False
    values: Annotated[bool, Flag("--values", help="Show the gradients themselves.")] = False
    only: Annotated[
        str | None, Flag("--only", metavar="NODE", help="Only nodes of this name, or a glob.")
    ] = None
    top: Annotated[
        int | None, Flag("--top", metavar="N", min=1, help="Only the N largest by norm.")
    ] = None


class AnomalyOptions(ShowOptions):
    """`kael anomaly`."""


class ExplainOptions(TargetOptions):
    """`kael explain`."""

    format: Annotated[
        Literal["text", "markdown", "json"], Flag("--format", help="Output format.")
    ] = "text"
    step: Annotated[
        bool, Flag("--step", help="One backward step at a time; Enter shows the next.")
    ] = False


class GraphOptions(ShowOptions):
    """`kael dot` and `kael tree`."""

    mermaid: Annotated[bool, Flag("--mermaid", help="Draw for Mermaid instead.")] = False
    max_nodes: Annotated[
        int | None, Flag("--max-nodes", metavar="N", min=1, help="Fold the graph to N nodes.")
    ] = None


class DotOptions(GraphOptions):
    """`kael dot`."""

    values: Annotated[bool, Flag("--values", help="Write what each node computed.")] = False
    grads: Annotated[bool, Flag("--grads", help="Write the gradient that arrived.")] = False
    norms: Annotated[bool, Flag("--norms", help="Write its norm on the edges.")] = False


class GradcheckOptions(TargetOptions):
    """`kael gradcheck`, and but for its targets `kael check`."""

    format: Annotated[
        Literal["text", "json", "junit", "github"], Flag("--format", help="Output format.")
    ] = "text"
    anomaly: Annotated[bool, Flag("--anomaly", help="Stop at a gradient that is NaN.")] = False
    mode: Annotated[
        Literal["projection", "full", "adaptive", "complex", "fast"] | None,
        Flag("--mode", help="How the numeric side differentiates."),
    ] = None
    eps: Annotated[float | None, Flag("--eps", metavar="E", help="The first step.")] = None
    atol: Annotated[float | None, Flag("--atol", metavar="A", help="Absolute tolerance.")] = None
    rtol: Annotated[float | None, Flag("--rtol", metavar="R", help="Relative tolerance.")] = None
    samples: Annotated[
        int | None, Flag("--samples", metavar="N", min=0, help="Check at N random points more.")
    ] = None
    max_evaluations: Annotated[
        int | None,
        Flag("--max-evaluations", metavar="N", min=1, help="Evaluate each spec at most N times."),
    ] = None
    branches: Annotated[
        bool, Flag("--branches", help="List which side of each branch the cases visit.")
    ] = False
    require_branches: Annotated[
        bool, Flag("--require-branches", help="Fail where no case visits a side of a branch.")
    ] = False
    mutate: Annotated[
        bool,
        Flag("--mutate", help="List mutants of claims and formulas that no case notices."),
    ] = False
    select: Annotated[
        str | None,
        Flag("-k", metavar="EXPR", help="Only specs whose name matches: 'loss and not large'."),
    ] = None
    tag: Annotated[
        list[str] | None, Flag("--tag", metavar="TAG", help="Only specs with this tag.")
    ] = None
    exit_first: Annotated[
        bool, Flag("-x", "--exitfirst", help="Stop at the first result that does not hold.")
    ] = False
    allow_inconclusive: Annotated[
        bool, Flag("--allow-inconclusive", help="An inconclusive verdict does not fail the run.")
    ] = False


class CheckOptions(GradcheckOptions):
    """`kael check`: its paths may be left out."""

    targets: Annotated[
        list[str],
        typer.Argument(metavar="[PATH...]", show_default=False, default_factory=list),
    ]


class OpsOptions(Options):
    """`kael ops`."""

    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False)] = None
    format: Annotated[
        Literal["text", "json", "markdown"], Flag("--format", help="Output format.")
    ] = "text"


class FaultsOptions(Options):
    """`kael faults`."""

    code: Annotated[str | None, typer.Argument(metavar="[CODE]", show_default=False)] = None
    format: Annotated[Literal["text", "json"], Flag("--format", help="Output format.")] = "text"


class WarmupOptions(Options):
    """`kael warmup`."""

    format: Annotated[Literal["text", "json"], Flag("--format", help="Output format.")] = "text"


Declared = TypeVar("Declared", bound=Options)


def parse(
    name: str, summary: str, declared: type[Declared], arguments: list[str]
) -> Declared | int:
    """Return the options of `kael name arguments`, or an exit code where help was all it asked."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    # A fixed width: help that is piped or kept in documentation is the same everywhere.
    settings = {"terminal_width": 96, "help_option_names": ["-h", "--help"]}
    app.command(help=summary, context_settings=settings)(_parser(declared))
    command = typer.main.get_command(app)
    try:
        options = command.main(arguments, prog_name=f"kael {name}", standalone_mode=False)
    except typer.TyperException as error:
        raise CommandError(f"kael {name}: {_explained(error, command)}") from None
    if not isinstance(options, declared):
        return int(options or Exit.HOLDS)
    options.command = name
    return options


def _parser(declared: type[Declared]) -> Any:
    """A function whose signature is the declared options, as Typer wants it."""

    def build(**values: Any) -> Declared:
        return declared(**values)

    annotations: dict[str, Any] = {}
    for cls in declared.__mro__:
        # a command's own options come first in its help, the common ones last
        annotations = {**annotations, **get_annotations(cls), **annotations}
    build.__annotations__ = annotations
    build.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=getattr(declared, name, Parameter.empty),
                annotation=annotation,
            )
            for name, annotation in annotations.items()
        ]
    )
    return build


def _explained(error: typer.TyperException, command: Any) -> str:
    option = getattr(error, "option_name", None)
    known = [word for param in command.params for word in param.opts]
    if option is None or option in known:
        return _plainly(error.format_message())
    hint = did_you_mean(option, [word for word in known if word.startswith("--")])
    if len(option) == 2 and not hint:
        hint = "; a target that begins with '-' goes after '--'"
    return f"unknown option '{option}'{hint}"


def _plainly(message: str) -> str:
    """The parser's sentence as one of ours, without the names of Python's types."""
    message = message[:1].lower() + message[1:].rstrip(".")
    message = re.sub(r"is not a valid int(eger)?( range)?$", "is not an integer", message)
    message = re.sub(r"is not a valid float( range)?$", "is not a number", message)
    return re.sub(r"is not in the range x>=(\S+)$", r"is below \1", message)
