"""What tests of several parts share: the command line in-process."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from kael_cli.main import main


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
