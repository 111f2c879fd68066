"""A progress bar on standard error: on a terminal only, and never for a short run."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

SHOWN_AFTER = 0.5
"""Seconds a run takes before it is worth a bar."""


class Progress:
    """Counts results, and shows how many of `total` are known once the run takes a while.

    The bar is taken away before anything is written, and when the run ends.
    """

    def __init__(self, *, wanted: bool) -> None:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._wanted = wanted and terminal and os.environ.get("TERM") != "dumb"
        self._start = time.monotonic()
        self._bar: Bar | None = None
        self.total = 0
        self.done = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def advance(self) -> None:
        """Count one more result."""
        self.done += 1
        if not self._wanted or time.monotonic() - self._start < SHOWN_AFTER:
            return
        if self._bar is None:
            self._bar = _bar(self.total)
        self._bar.update(self._bar.task_ids[0], completed=self.done)

    def clear(self) -> None:
        """Take the bar away; the next result brings it back."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _bar(total: int) -> Bar:
    # Rich is loaded by those who look at a long run, and by nobody else.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task("checking", total=total)
    bar.start()
    return bar
