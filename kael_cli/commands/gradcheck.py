"""`kael gradcheck`: verifies the gradients of what the targets name."""

from kael_cli.gate import verify
from kael_cli.options import GradcheckOptions

OPTIONS = GradcheckOptions


def run(options: GradcheckOptions) -> int:
    """Check every target, with a line for each."""
    return verify(options, lines=True)
