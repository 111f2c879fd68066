"""What the tests of the command line share: whole-output snapshots."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


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
