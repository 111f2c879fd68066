"""`kael warmup`: compiles and caches the kernels."""

from typing import Any

from kael_cli.exits import Exit
from kael_cli.options import WarmupOptions
from kael_cli.output import Output

OPTIONS = WarmupOptions


def run(options: WarmupOptions) -> int:
    """Compile every kernel that has a compiled form, and say how long each took."""
    from kael.kernels import tiers, warmup

    rows: list[dict[str, Any]] = []
    with Output(options) as output:
        for name, seconds in warmup():
            rows.append({"kernel": name, "seconds": round(seconds, 6)})
            if options.format == "text" and not options.quiet:
                output.write(f"{name}  {seconds:.2f}s\n")
        if options.format == "json":
            from kael_cli.reporters.json import document

            output.write(document(rows))
        else:
            total = sum(row["seconds"] for row in rows)
            output.write(f"{len(rows)} kernels ready in {total:.2f}s\n")
        reason = tiers.failure()
        if reason is not None:
            output.note(f"compiled kernels are not used, NumPy runs instead: {reason}")
    return Exit.HOLDS
