"""`kael check`: the gate, `gradcheck` over the project's specs; says only what does not hold."""

from pathlib import Path

from kael_cli.gate import verify
from kael_cli.options import CheckOptions
from kael_cli.project import spec_paths

OPTIONS = CheckOptions


def run(options: CheckOptions) -> int:
    """Check the given paths, or those of the project."""
    if not options.targets:
        options.targets = spec_paths(Path.cwd())
    return verify(options, lines=False)
