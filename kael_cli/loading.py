"""From parsed options to the specs that are meant, under the settings they are to run with."""

import contextlib
from collections.abc import Iterator

from kael.errors import KaelError
from kael.specs.expression import MAX_ELEMENTS
from kael.specs.model import Instance
from kael.specs.place import Place, SpecError
from kael.specs.targets import Selection, resolve
from kael_cli.options import TargetOptions


def load(options: TargetOptions, *, gate: bool = False) -> Selection:
    """Return what the targets stand for.

    A gate runs every case and takes no name without a value; a command that shows runs the base
    and draws such a name.
    """
    loaded = resolve(
        options.targets,
        options.input or (),
        options.const or (),
        seed=options.seed or 0,
        paths_only=options.command == "check",
        all_cases=gate,
        draw_missing=not gate,
        max_elements=options.max_elements or MAX_ELEMENTS,
    )
    wrong_values = [one for one in loaded.errors if one.place.label.startswith(("-i ", "-c "))]
    if wrong_values:
        # What -i and -c meant is not known, so neither is what to run.
        loaded.instances, loaded.errors, loaded.notes = [], wrong_values, []
    return loaded


@contextlib.contextmanager
def default_dtype(options: TargetOptions) -> Iterator[None]:
    """Let `--dtype` decide what a number without a dtype becomes."""
    from kael import dtypes

    before = dtypes.default_dtype()
    if options.dtype is not None:
        dtypes.set_default_dtype(options.dtype)
    try:
        yield
    finally:
        dtypes.set_default_dtype(before)


def located(error: KaelError, instance: Instance | None = None) -> SpecError:
    """Return the error with a place: its own, or that of the spec it came from."""
    if isinstance(error, SpecError):
        return error
    message, _, detail = str(error).partition("\n")
    place = Place() if instance is None else instance.place
    return SpecError(message, place, detail=detail or None)
