"""What the tests of reported faults share: the command line in-process, and the doors beside it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kael_cli.main import main

sys.path.insert(0, str(Path(__file__).parent))


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
