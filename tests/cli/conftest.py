"""What the tests of the command line share: running it in-process, and whole-output snapshots."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kael_cli.main import main

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


class Ran(NamedTuple):
    """What one command line did."""

    code: int
    out: str
    err: str


@pytest.fixture
def kael(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `kael` in this process."""

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def snapshot() -> Callable[[str, str], None]:
    """Compare a whole output with a file; KAEL_RENEW_SNAPSHOTS=1 writes the file instead."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / name
        if os.environ.get("KAEL_RENEW_SNAPSHOTS"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
