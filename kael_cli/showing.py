"""The loop of the commands that show (`backward`, `trace`): each result under its name, in order.

A target that cannot be shown is told on stderr and does not stop the others; the exit code is
then 2. In JSON it is a result with an error.
"""

from collections.abc import Callable
from typing import Any

from kael.errors import KaelError
from kael.specs.model import Instance
from kael.specs.place import SpecError
from kael.specs.runner import AnomalyError
from kael.specs.targets import Selection
from kael_cli.exits import CommandError, Exit
from kael_cli.loading import default_dtype, load, located
from kael_cli.options import ExplainOptions, ShowOptions, TraceOptions
from kael_cli.output import Output

Row = dict[str, Any]
Shown = ShowOptions | TraceOptions | ExplainOptions
Text = Callable[[Instance, Output], Exit | None]
Admit = Callable[[Selection, str], None]

MOST_LISTED = 20


def show(
    options: Shown,
    text: Text,
    row: Callable[[Instance], Row],
    nothing: Row,
    admit: Admit | None = None,
) -> int:
    """Show every target: as text as soon as it is known, or as one JSON document.

    `text` may return a code, and `row` a status, where a check was asked for and does not hold.
    `nothing` is what stands in the place of a row where there is an error: the same keys.
    `admit` sees what was loaded, and the command's name, and may refuse it.
    """
    with default_dtype(options), Output(options) as output:
        loaded = load(options)
        if admit is not None:
            admit(loaded, options.command)
        for note in loaded.notes:
            output.note(note)
        if options.format == "json":
            return _document(loaded, row, nothing, output)
        return _texts(loaded, text, output)


def only_one(loaded: Selection, command: str) -> None:
    """Raise CommandError that lists the specs where there are several."""
    if len(loaded.instances) > 1:
        listed = "".join(
            f"\n  {instance.spec.file or instance.place.label}::{instance.title}"
            for instance in loaded.instances[:MOST_LISTED]
        )
        rest = len(loaded.instances) - MOST_LISTED
        listed += f"\n  and {rest} more" if rest > 0 else ""
        raise CommandError(f"kael {command} shows one spec; name one of these:{listed}")


def _texts(loaded: Selection, text: Text, output: Output) -> int:
    code = Exit.HOLDS
    for error in loaded.errors:
        output.complain(str(error))
        code = Exit.UNUSABLE
    several = len(loaded.instances) > 1
    for instance in loaded.instances:
        if several:
            output.write(f"# {instance.title}\n")
        try:
            found = text(instance, output)
            code = Exit.FAILED if found is Exit.FAILED else code
        except CommandError:
            raise
        except KaelError as raised:
            output.traceback()
            output.complain(str(located(raised, instance)))
            code = _worse(code, raised)
    return code


def _document(
    loaded: Selection, row: Callable[[Instance], Row], nothing: Row, output: Output
) -> int:
    from kael_cli.reporters.json import document

    rows: list[Row] = []
    code = Exit.HOLDS
    for error in loaded.errors:
        fault = {"error": described(error)}
        rows.append({**_unloaded(error), "status": "error", **nothing, **fault})
        code = Exit.UNUSABLE
    for instance in loaded.instances:
        place = instance.place
        head: Row = {"spec": instance.spec.name, "case": instance.case}
        head |= {"file": place.file, "line": place.line}
        try:
            rows.append({**head, "status": "passed", **row(instance), "error": None})
            code = Exit.FAILED if rows[-1]["status"] == "failed" else code
        except KaelError as raised:
            status = "failed" if isinstance(raised, AnomalyError) else "error"
            fault = {"error": described(located(raised, instance))}
            rows.append({**head, "status": status, **nothing, **fault})
            code = _worse(code, raised)
    output.write(document(rows))
    return code


def described(error: SpecError) -> Row:
    """An error as the JSON documents have it."""
    place = error.place
    return {
        "message": error.message,
        "file": place.file,
        "line": place.line,
        "column": place.column,
    }


def _unloaded(error: SpecError) -> Row:
    """The head of a row for what could not be loaded."""
    from kael.specs.results import spec_name

    place = error.place
    return {"spec": spec_name(error), "case": None, "file": place.file, "line": place.line}


def _worse(code: Exit, error: KaelError) -> Exit:
    """The code after one more error: a check that did not hold outweighs bad input."""
    if isinstance(error, AnomalyError) or code is Exit.FAILED:
        return Exit.FAILED
    return Exit.UNUSABLE
