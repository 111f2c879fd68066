"""Makes `python -m kael_cli` the same program as the console script `kael`."""

from kael_cli.main import run

run()
