"""The manual pages of the diagnoses as files under `docs/faults/`, written from their docstrings.

    python -m kael.checker.faults_reference            writes the pages
    python -m kael.checker.faults_reference --check    exits with 1 where one is stale

`kael faults CODE` prints the same text.
"""

from __future__ import annotations

import sys
from pathlib import Path

import kael
from kael.checker import faults

FOLDER = Path(kael.__file__).parents[1] / "docs" / "faults"

_HEAD = """# Diagnoses

Written by `python -m kael.checker.faults_reference` from the docstrings of `kael.checker.faults`;
do not edit. `kael faults CODE` prints one page.

A diagnosis is given where its rule predicts the numbers that were found: at several points, under
several upstream gradients. Where no rule does, the failure is a plain `mismatch`.

"""


def pages() -> dict[str, str]:
    """Every page by the name of its file, the index among them."""
    made = {f"{code}.md": f"# {code}\n\n{faults.page(code)}" for code in faults.codes()}
    rows = [f"- [`{code}`]({code}.md): {faults.summary(code)}\n" for code in faults.codes()]
    made["README.md"] = _HEAD + "".join(rows)
    return made


def stale() -> list[str]:
    """The files that are not what would be written now, and those that nothing writes."""
    made = pages()
    here = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    return sorted(name for name in made.keys() | here.keys() if made.get(name) != here.get(name))


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` compare them."""
    if arguments == ["--check"]:
        for name in stale():
            print(
                f"docs/faults/{name} is stale: run python -m kael.checker.faults_reference",
                file=sys.stderr,
            )
        return 1 if stale() else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale():
        (FOLDER / name).unlink(missing_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
