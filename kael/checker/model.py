"""What a check is asked and what it answers: options, checks, findings, the report.

Plain data only. How a number is found is in `numeric`, `kinks` and `directions`; what a failure
means is in `diagnosis` and `faults`; how it looks on a terminal is none of this package's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from kael.errors import KaelTypeError, KaelValueError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

Mode = Literal["projection", "full", "adaptive", "complex", "fast"]
Kind = Literal[
    "numeric", "derivative", "expect", "value", "shape", "zero", "linear", "repeatable", "unchanged"
]
Status = Literal["passed", "failed", "inconclusive", "error", "xfailed", "xpassed", "skipped"]

MODES: tuple[str, ...] = get_args(Mode)

BELOW_ATOL = "below the absolute tolerance: not verified"

MOST_FAILURES = 100
"""How many failures a check lists; the worst come first and `wrong` counts them all."""

# Worst first: a report is as good as its worst check.
_ORDER: tuple[Status, ...] = ("error", "failed", "inconclusive", "passed", "skipped")

_TOLERANCES: dict[str, tuple[float, float]] = {
    "projection": (1e-5, 1e-3),
    "full": (1e-5, 1e-3),
    "adaptive": (1e-10, 1e-8),
    "complex": (1e-13, 1e-12),
    "fast": (1e-5, 1e-3),
}

# float32 keeps 24 bits; a formula of a few dozen operations loses about three decimal digits.
_FLOAT32_TOLERANCES = (1e-4, 1e-3)


@dataclass(frozen=True)
class GradcheckOptions:
    """How a gradient is checked.

    Tolerances left at None are the mode's own. `eps` is the first step, relative to
    `max(1, |x|)`. `dtype` float32 checks a float32 formula against float64 differences of it.
    `max_evaluations` bounds the evaluations of the function; what was then not looked at is
    said. `replayable` promises that the function runs the same operations at every point, so
    that many perturbations may be evaluated at once.

    Raises KaelValueError for an unknown mode or a step or tolerance that is not a usable number.

    >>> GradcheckOptions(mode="adaptive").tolerances()
    (1e-10, 1e-08)
    """

    eps: float = 1e-6
    atol: float | None = None
    rtol: float | None = None
    seed: int = 0
    mode: str = "projection"
    dtype: Any = None
    max_evaluations: int | None = None
    replayable: bool = False
    numeric: bool = True
    inputs: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise KaelValueError(
                f"gradcheck mode must be one of {', '.join(MODES)}, got {self.mode!r}"
            )
        if not (np.isfinite(self.eps) and self.eps > 0):
            raise KaelValueError(f"gradcheck eps must be a positive number, got {self.eps!r}")
        for name in ("atol", "rtol"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value >= 0):
                raise KaelValueError(
                    f"gradcheck {name} must be a number that is not negative, got {value!r}"
                )
        if self.max_evaluations is not None and self.max_evaluations < 1:
            raise KaelValueError(
                f"gradcheck max_evaluations must be at least 1, got {self.max_evaluations!r}"
            )

    @property
    def default_tolerances(self) -> bool:
        """Whether both tolerances are the mode's own, which switches the stricter rule on."""
        return self.atol is None and self.rtol is None

    def tolerances(self, float32: bool = False) -> tuple[float, float]:
        """The absolute and the relative tolerance that hold, given ones before the mode's own."""
        atol, rtol = _TOLERANCES[self.mode]
        if float32:
            atol, rtol = max(atol, _FLOAT32_TOLERANCES[0]), max(rtol, _FLOAT32_TOLERANCES[1])
        return (
            atol if self.atol is None else self.atol,
            rtol if self.rtol is None else self.rtol,
        )

    def updated(self, **fields: Any) -> GradcheckOptions:
        """A copy with some fields replaced; an unknown field is a KaelTypeError."""
        unknown = [name for name in fields if name not in self.__dataclass_fields__]
        if unknown:
            known = ", ".join(self.__dataclass_fields__)
            raise KaelTypeError(f"gradcheck has no option {unknown[0]!r}; the options are {known}")
        return replace(self, **fields)


@dataclass(frozen=True)
class Failure:
    """One entry whose analytic value is not the numeric one.

    `index` is the entry of the input; `output` the entry of the output in mode `full`.
    """

    index: tuple[int, ...]
    analytic: float
    numeric: float
    numeric_error: float
    output: tuple[int, ...] | None = None


@dataclass
class Check:
    """One property of one input, or of the whole function where `input` is None."""

    kind: Kind
    input: str | None
    status: Status
    compared: int = 0
    wrong: int = 0
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    open: int = 0
    """How many of those compared can be called neither right nor wrong."""
    failures: list[Failure] = field(default_factory=list)
    note: str | None = None
    seen: Callable[[], float] | None = field(default=None, repr=False, compare=False)
    """Gives the smallest error in one entry that would have been seen; None where none was."""


@dataclass
class Finding:
    """What a check that did not hold saw, as data: the evidence a diagnosis starts from.

    The arrays are flat and parallel: `entries` holds flat indices into the input, and for each
    of them the analytic and numeric derivative, the numeric side's own error and whether the
    entry was judged wrong. `reason` says why a verdict is not a plain mismatch:
    `kink` (the value lies outside the one-sided slopes), `discontinuous`, `nondeterministic`,
    `undefined`, `domain`, `noise`, `raised`; None is a plain mismatch.
    """

    kind: Kind
    status: Status
    message: str
    input: str | None = None
    position: int | None = None
    shape: tuple[int, ...] = ()
    entries: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    analytic: Array = field(default_factory=lambda: np.zeros(0))
    numeric: Array = field(default_factory=lambda: np.zeros(0))
    numeric_error: Array = field(default_factory=lambda: np.zeros(0))
    wrong: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    outputs: Array | None = None
    upstream: Array | None = None
    reason: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong, as far as the evidence tells: a code with a manual page, and a sentence.

    `remedy` says how to mend it, where that is known; `input` is the input it is about.
    """

    code: str
    message: str
    remedy: str | None = None
    input: str | None = None


@dataclass
class Report:
    """Everything one check of one formula at one point found.

    `subject` is the function with its inputs as the checker drove it, for a diagnosis that has
    to look further; `coverage` says what was not compared, when something was not.
    """

    status: Status
    checks: list[Check] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    diagnosis: list[Diagnosis] = field(default_factory=list)
    evaluations: int = 0
    seconds: float = 0.0
    coverage: str | None = None
    error: str | None = None
    subject: Any = field(default=None, repr=False)

    @property
    def smallest_error_seen(self) -> dict[str, float]:
        """The smallest error in one entry that the differences would have shown, by input."""
        return {
            check.input: check.seen()
            for check in self.checks
            if check.kind == "numeric" and check.input is not None and check.seen is not None
        }

    @property
    def compared(self) -> int:
        """How many numbers were compared; a report that compared nothing is no success."""
        return sum(check.compared for check in self.checks)


@dataclass(frozen=True)
class GradcheckResult:
    """The verdict of `gradcheck`; its truth value is `passed`.

    `report` has one line a failing entry, `input 0 element [1, 2]: analytic 2 != numeric 3`.
    """

    passed: bool
    status: Status
    report: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.passed


def worst(statuses: list[Status]) -> Status:
    """The worst of some statuses; nothing at all is `skipped`, never a pass."""
    for status in _ORDER:
        if status in statuses:
            return status
    return "skipped"


def told_apart(left: float, right: float) -> tuple[str, str]:
    """Two numbers as `%.{n}g` with the smallest n from 6 on that tells them apart.

    >>> told_apart(2.0, 3.0)
    ('2', '3')
    >>> told_apart(1.00000001, 1.00000002)
    ('1.00000001', '1.00000002')
    """
    for digits in range(6, 18):
        shown = f"{left:.{digits}g}", f"{right:.{digits}g}"
        if shown[0] != shown[1]:
            break
    return shown


def failure_line(position: int, failure: Failure) -> str:
    """One line of a report: the entry and the two numbers, in full."""
    analytic, numeric = told_apart(failure.analytic, failure.numeric)
    index = "[" + ", ".join(str(i) for i in failure.index) + "]"
    line = f"input {position} element {index}: analytic {analytic} != numeric {numeric}"
    if failure.output is not None:
        line += f" (output element [{', '.join(str(i) for i in failure.output)}])"
    return line
