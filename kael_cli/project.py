"""The project around a run: `[tool.kael]` of the nearest pyproject.toml upwards."""

import os
from pathlib import Path
from typing import Any

from kael.specs.spelling import did_you_mean
from kael_cli.exits import CommandError

KEYS = ("specs",)
DEFAULT = "specs"


def spec_paths(start: Path) -> list[str]:
    """Return where the specs of the project around `start` are, as seen from `start`.

    They are what `[tool.kael] specs` names, else the folder `specs` beside the pyproject.toml (or
    in `start`, where there is none). Raises CommandError where the table is wrong or the named
    paths do not exist.
    """
    file = find_pyproject(start)
    table = _read(file) if file is not None else {}
    root = file.parent if file is not None else start
    named = table.get("specs")
    if named is None:
        named = [DEFAULT]
        if not (root / DEFAULT).exists():
            raise CommandError(
                f"no specs found: there is no folder '{_shown(root / DEFAULT, start)}', and "
                '[tool.kael] in pyproject.toml names none\ngive a path, or set specs = "…" there'
            )
    paths = [root / path for path in named]
    for path in paths:
        if not path.exists():
            raise CommandError(f"{file}: [tool.kael] specs names '{path}', which does not exist")
    return [_shown(path, start) for path in paths]


def find_pyproject(start: Path) -> Path | None:
    """Return the nearest pyproject.toml in `start` or a folder above it."""
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return file
    return None


def _read(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"{file}: cannot be read as TOML: {error}") from error
    tool = document.get("tool", {})
    table = tool.get("kael", {}) if isinstance(tool, dict) else tool
    if not isinstance(table, dict):
        raise CommandError(f"{file}: [tool.kael] must be a table")
    for key in table:
        if key not in KEYS:
            raise CommandError(f"{file}: [tool.kael] has no key '{key}'{did_you_mean(key, KEYS)}")
    if "specs" in table:
        specs = table["specs"]
        specs = [specs] if isinstance(specs, str) else specs
        if not isinstance(specs, list) or not all(isinstance(path, str) for path in specs):
            raise CommandError(f"{file}: [tool.kael] specs must be a path or a list of paths")
        table["specs"] = specs
    return table


def _shown(path: Path, start: Path) -> str:
    try:
        return Path(os.path.relpath(path, start)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()
