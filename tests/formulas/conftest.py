"""Running `kael gradcheck` in this process, for the tests of whole spec files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kael_cli.main import main


class Verdict(NamedTuple):
    """What one `kael gradcheck` said."""

    code: int
    results: list[dict[str, Any]]

    def failed(self) -> list[tuple[str, str | None]]:
        """(kind, input) of every check that does not hold."""
        return [
            (check["kind"], check["input"])
            for result in self.results
            for check in result["checks"]
            if check["status"] == "failed"
        ]

    def compared(self) -> int:
        """How many numbers were compared in all."""
        return sum(check["compared"] for result in self.results for check in result["checks"])


@pytest.fixture
def gradcheck(capsys: pytest.CaptureFixture[str]) -> Callable[[Path], Verdict]:
    """Check a file as the command line does."""

    def run(path: Path) -> Verdict:
        capsys.readouterr()
        code = main(["gradcheck", str(path), "--format", "json"])
        return Verdict(code, json.loads(capsys.readouterr().out)["results"])

    return run
