"""What running a spec found, as data; the sentences and layouts are made by whoever shows it.

The fields follow the JSON documents of `kael gradcheck`, `backward` and `trace`. Nothing here
computes: `runner.py` fills these in.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kael.specs.place import Place, SpecError

STATUSES = ("passed", "failed", "inconclusive", "error", "xfailed", "xpassed", "skipped")


@dataclass(frozen=True, slots=True)
class Failure:
    """One entry whose two sides differ: the gradient under check and what it was held against."""

    index: tuple[int, ...]
    analytic: float | complex
    numeric: float | complex
    numeric_error: float | None = None


@dataclass(slots=True)
class Check:
    """One property of one input (or of the whole function, `input` None) and its verdict."""

    kind: str
    input: str | None
    status: str
    compared: int = 0
    wrong: int = 0
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    failures: list[Failure] = field(default_factory=list)
    note: str | None = None
    label: str | None = None
    """What the two sides are, where they are not the gradient and the differences."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The likely cause of a failure: a code with a manual page, a sentence, and a remedy."""

    code: str
    message: str
    remedy: str | None = None


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
    status: str = "passed"
    seconds: float = 0.0
    checks: list[Check] = field(default_factory=list)
    diagnosis: list[Diagnosis] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reason: str | None = None
    """Of an xfail or a skip, as the spec gives it."""
    reproduce: str | None = None
    error: Fault | None = None

    @property
    def title(self) -> str:
        """`spec[case]`, or `spec` for the base."""
        return self.spec if self.case is None else f"{self.spec}[{self.case}]"

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known."""
        parts = [self.file or self.label, self.line, self.column]
        return ":".join(str(part) for part in parts if part)


@dataclass(slots=True)
class Summary:
    """How many results there are of each status, and the time they took together."""

    passed: int = 0
    failed: int = 0
    inconclusive: int = 0
    errors: int = 0
    xfailed: int = 0
    xpassed: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def count(self, result: Result) -> None:
        """Add one result."""
        name = "errors" if result.status == "error" else result.status
        setattr(self, name, getattr(self, name) + 1)

    @property
    def total(self) -> int:
        """The number of results."""
        return sum(
            (self.passed, self.failed, self.inconclusive, self.errors)
            + (self.xfailed, self.xpassed, self.skipped)
        )
