"""`kael faults`: the manual page of a diagnosis."""

from kael_cli.exits import CommandError, Exit
from kael_cli.options import FaultsOptions
from kael_cli.output import Output

OPTIONS = FaultsOptions


def run(options: FaultsOptions) -> int:
    """Print the page of one code, or every code with its first sentence."""
    from kael.checker import faults

    known = faults.codes()
    if options.code is not None and options.code not in known:
        from kael.specs.spelling import did_you_mean

        raise CommandError(
            f"unknown diagnosis '{options.code}'{did_you_mean(options.code, known)}\n"
            "'kael faults' lists them"
        )
    chosen = known if options.code is None else [options.code]
    with Output(options) as output:
        if options.format == "json":
            from kael_cli.reporters.json import document

            rows = [
                {"code": code, "summary": faults.summary(code), "page": faults.page(code)}
                for code in chosen
            ]
            output.write(document(rows))
        elif options.code is not None:
            output.write(output.markdown(f"# {options.code}\n\n{faults.page(options.code)}"))
        else:
            width = max(map(len, chosen)) + 2
            lines = [f"{code:<{width}}{faults.summary(code)}\n" for code in chosen]
            output.write("".join(lines))
    return Exit.HOLDS
