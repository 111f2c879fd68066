"""What the process tells its caller: the exit codes, and the error that means one of them."""

from enum import IntEnum

from kael.errors import KaelError


class Exit(IntEnum):
    """The exit code of a command."""

    HOLDS = 0
    """Everything asked holds."""
    FAILED = 1
    """A check ran and did not hold."""
    UNUSABLE = 2
    """Bad input or usage, or nothing was compared."""
    BUG = 3
    """A bug in kael."""
    INTERRUPTED = 130
    """Stopped from the keyboard."""


class CommandError(KaelError):
    """What was asked cannot be done; the message says why and what to do instead."""


def bug_report(error: BaseException) -> str:
    """What is said of an exception that kael should not have raised."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return f"a bug in kael ({said}); please report it with the command and the spec"
