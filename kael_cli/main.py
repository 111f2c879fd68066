"""The entry point."""


def run() -> None:
    """Run."""
