"""What running a spec found, as data; the sentences and layouts are made by whoever shows it.

The fields follow the JSON documents of `kael gradcheck`, `backward` and `trace`. Nothing here
computes: `runner.py` fills these in.
"""

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kael.checker.branches import Branch
    from kael.checker.model import Check, Diagnosis, Status
    from kael.specs.coverage import Slips
    from kael.specs.place import SpecError


STATED = ("numeric", "derivative", "expect")
"""The kinds of check that hold a gradient against something; the others are its properties."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a spec has no verdict: it could not be loaded or evaluated."""

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    text: str = ""
    """The whole of it, as a terminal shows it: place, message, source line and caret."""


@dataclass(slots=True)
class Result:
    """What checking one instance of a spec found."""

    spec: str
    case: str | None
    file: str | None
    line: int | None
    column: int | None = None
    label: str = ""
    """The place's name where there is no file (`<expression>`)."""
    at: str = ""
    """The place of what does not hold (a claim, a golden value), where it has one of its own."""
    status: "Status" = "passed"
    seconds: float = 0.0
    checks: "list[Check]" = field(default_factory=list)
    diagnosis: "list[Diagnosis]" = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reason: str | None = None
    """Of an xfail or a skip, as the spec gives it."""
    reproduce: str | None = None
    error: Fault | None = None
    branches: "list[Branch] | None" = None
    """What the cases of the spec visit, where it was asked for; in the first result of a spec."""
    slips: "Slips | None" = None
    """What the cases of the spec would not notice, likewise."""
    is_bug: bool = False
    """Whether the error is kael's own fault."""

    @property
    def title(self) -> str:
        """`spec[case]`, or `spec` for the base."""
        return self.spec if self.case is None else f"{self.spec}[{self.case}]"

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known."""
        parts = [self.file or self.label, self.line, self.column]
        return ":".join(str(part) for part in parts if part)


def spec_name(error: "SpecError") -> str:
    """Return the name of the spec an error is in, where that is not known its file's stem."""
    place = error.place
    if error.spec is not None:
        return error.spec
    return PurePath(place.file).stem if place.file else place.label


@dataclass(slots=True)
class Run:
    """All results of one run, and the time they took together."""

    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, status: "Status") -> int:
        """How many results have this status."""
        return sum(result.status == status for result in self.results)

    @property
    def compared(self) -> int:
        """How many numbers were compared; a run that compared nothing is no success."""
        return sum(check.compared for result in self.results for check in result.checks)
