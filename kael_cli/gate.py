"""The one path of `gradcheck` and `check`: select, verify one by one, report, decide the code."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from kael.engine.hooks import anomaly_enabled
from kael.specs.model import Instance
from kael.specs.results import Result, Run
from kael.specs.targets import Selection
from kael.specs.verdict import Request, broken, gradcheck, unloadable
from kael_cli.exits import CommandError, Exit, bug_report
from kael_cli.loading import default_dtype, load
from kael_cli.options import GradcheckOptions
from kael_cli.output import Output
from kael_cli.progress import Progress
from kael_cli.reporters import sentence
from kael_cli.selection import matcher, tagged

CHECKING = ("mode", "eps", "atol", "rtol", "max_evaluations")
"""The options that are fields of the checker's own."""

REPEATED = (*CHECKING, "samples", "dtype", "max_elements")
"""The options that change a verdict, which a command that reproduces it repeats."""


class Reporter(Protocol):
    """One format."""

    def each(self, result: Result) -> str:
        """What to write as soon as a result is known."""

    def close(self, run: Run) -> str:
        """What to write when all are known."""


def verify(options: GradcheckOptions, *, lines: bool) -> int:
    """Check what the options name and report it; return the exit code."""
    start = time.perf_counter()
    run = Run()
    request = request_of(options)
    # Where every result has a line of its own, the lines are the progress.
    progress = Progress(wanted=not options.quiet and not (lines and options.format == "text"))
    with default_dtype(options), Output(options) as output, progress:

        def announce(text: str) -> None:
            progress.clear()
            output.note(text)

        request = replace(request, announce=announce)
        reporter = reporter_of(options, output, lines=lines)
        for result in results(options, request, output, progress):
            run.results.append(result)
            text = reporter.each(result)
            if text:
                progress.clear()
                output.write(text)
            progress.advance()
            if options.exit_first and not holds(result, options):
                break
        progress.clear()
        run.seconds = time.perf_counter() - start
        output.write(reporter.close(run))
    return exit_code(run, options)


def results(
    options: GradcheckOptions, request: Request, output: Output, progress: Progress
) -> Iterator[Result]:
    """Yield the results: first what could not be loaded, then every instance that is meant."""
    loaded = load(options, gate=True)
    for note in loaded.notes:
        output.note(note)
    chosen = selected(loaded, options)
    progress.total = len(loaded.errors) + len(chosen)
    yield from map(unloadable, loaded.errors)
    begun: set[int] = set()
    for instance in chosen:
        try:
            result = gradcheck(instance, request)
            if id(instance.spec) not in begun:
                begun.add(id(instance.spec))
                of_spec = [one for one in chosen if one.spec is instance.spec]
                cover(of_spec, result, options)
            yield result
        except Exception as error:
            # A bug met in one spec must not hide what the others have to say.
            output.traceback()
            yield broken(instance, request, bug_report(error))


def cover(instances: Sequence[Instance], result: Result, options: GradcheckOptions) -> None:
    """Put what all instances of a spec cover into the first result of it, where that is asked."""
    if not (options.branches or options.require_branches or options.mutate):
        return
    from kael.specs import coverage

    seed = options.seed or 0
    if options.mutate:
        result.slips = coverage.slips(instances, seed)
    if options.branches or options.require_branches:
        result.branches = coverage.branches(instances, seed)
    if options.require_branches and result.status == "passed":
        result.diagnosis += coverage.unvisited(result.branches or [])
        if result.diagnosis:
            result.status = "failed"
            result.reproduce = f"{result.reproduce} --require-branches"


def selected(loaded: Selection, options: GradcheckOptions) -> list[Instance]:
    """Return the instances that `-k` and `--tag` leave.

    Raises CommandError where they leave none of some, unless they may mean what could not be read.
    """
    chosen = loaded.instances
    unread = [error.spec for error in loaded.errors]
    if options.select is not None:
        wanted = matcher(options.select)
        unread = [name for name in unread if name is None or wanted((name,))]
        chosen = [one for one in chosen if wanted((one.spec.name, one.case or "", one.title))]
    if options.tag:
        has = tagged(options.tag)
        chosen = [one for one in chosen if has(one.spec.tags)]
    if loaded.instances and not chosen and not unread:
        given = [f"-k '{options.select}'"] if options.select is not None else []
        given += [f"--tag {tag}" for tag in options.tag or ()]
        count = len(loaded.instances)
        raise CommandError(f"no spec matches {' and '.join(given)}; {count} were read")
    return chosen


def request_of(options: GradcheckOptions) -> Request:
    """Return what the options ask of every spec.

    Raises KaelError for a value that no check can use, before anything runs.
    """
    from kael.checker import GradcheckOptions as CheckerOptions

    given: dict[str, Any] = {name: getattr(options, name) for name in REPEATED}
    given = {name: value for name, value in given.items() if value is not None}
    checking = {name: value for name, value in given.items() if name in CHECKING}
    CheckerOptions(**checking)
    arguments: list[str] = []
    for name, value in given.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    arguments += ["--anomaly"] if options.anomaly else []
    return Request(
        seed=options.seed,
        samples=options.samples,
        anomaly=options.anomaly or anomaly_enabled(),
        checking=checking,
        values=[
            *(("-i", text) for text in options.input or ()),
            *(("-c", text) for text in options.const or ()),
        ],
        arguments=arguments,
    )


def reporter_of(options: GradcheckOptions, output: Output, *, lines: bool) -> Reporter:
    """Return the reporter of the format that is asked for, which alone is imported."""
    allow = options.allow_inconclusive
    if options.format == "json":
        from kael_cli.reporters.json import JsonReporter

        return JsonReporter()
    if options.format == "junit":
        from kael_cli.reporters.junit import JunitReporter

        return JunitReporter(allow_inconclusive=allow)
    if options.format == "github":
        from kael_cli.reporters.github import GithubReporter

        return GithubReporter(allow_inconclusive=allow)
    from kael_cli.reporters.text import TextReporter

    return TextReporter(
        paint=output.paint,
        lines=lines and not options.quiet,
        verbose=options.verbose,
        allow_inconclusive=allow,
    )


def holds(result: Result, options: GradcheckOptions) -> bool:
    """Whether a result lets the run succeed."""
    return sentence.holds(result, allow_inconclusive=options.allow_inconclusive)


def exit_code(run: Run, options: GradcheckOptions) -> int:
    """Return the code of a run; raises CommandError where nothing was compared at all."""
    if any(result.is_bug for result in run.results):
        return Exit.BUG
    bad = [result for result in run.results if not holds(result, options)]
    if any(result.status != "error" for result in bad):
        return Exit.FAILED
    if bad:
        return Exit.UNUSABLE
    if all(result.status == "skipped" for result in run.results):
        raise CommandError("nothing was compared, and a gate that checked nothing is not green")
    return Exit.HOLDS
