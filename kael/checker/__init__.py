"""Is this gradient right? Properties, differences that know their own error, and a verdict.

`check` verifies a formula at one point and gives a `Report`; `gradcheck` is its public face.
The checker knows tensors and the engine, but neither specs nor terminals.
"""

from kael.checker.checks import check, check_outside
from kael.checker.gradcheck_api import gradcheck, report_lines
from kael.checker.model import (
    Check,
    Failure,
    Finding,
    GradcheckOptions,
    GradcheckResult,
    Report,
    failure_line,
    told_apart,
)

__all__ = [
    "Check",
    "Failure",
    "Finding",
    "GradcheckOptions",
    "GradcheckResult",
    "Report",
    "check",
    "check_outside",
    "failure_line",
    "gradcheck",
    "report_lines",
    "told_apart",
]
