"""Checks an instance of a spec: its gradients, the author's claims and expectations, one verdict.

`gradcheck` combines what the checker found with what the spec states, and gives one `Result`. How
a gradient is verified is the checker's business; how a result looks, that of whoever shows it.
"""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kael.checker import Check, GradcheckOptions, Report, check, check_outside
from kael.checker.forecast import Forecast
from kael.checker.model import Diagnosis, Status, worst
from kael.errors import KaelError
from kael.specs.comparison import compare
from kael.specs.expression import Expression, current_span
from kael.specs.model import Expect, Golden, Instance
from kael.specs.place import Place, SpecError
from kael.specs.repairs import claim_at, repairs_of
from kael.specs.results import STATED, Fault, Result, spec_name
from kael.specs.runner import AnomalyError, Evaluated, claims_of, recorded
from kael.tensors import Tensor

NOTHING = "nothing compared: "

LONG = 5.0
"""From how many seconds on the cost of a check is told before it is spent."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of every spec of a run, over what the spec itself says.

    `checking` are fields of `GradcheckOptions`; `arguments` are the words of the command line
    that a run which reproduces a failure has to repeat beside target, values and seed. `announce`
    is told, before a check that will be long, what it will cost.
    """

    seed: int | None = None
    samples: int | None = None
    anomaly: bool = False
    checking: Mapping[str, Any] = field(default_factory=dict)
    values: Sequence[tuple[str, str]] = ()
    arguments: Sequence[str] = ()
    announce: Callable[[str], None] | None = None


def gradcheck(instance: Instance, request: Request) -> Result:
    """Return what checking an instance found; what cannot be evaluated is a result as well."""
    start = time.perf_counter()
    result = blank(instance)
    result.reproduce = reproduce(instance, request)
    if instance.spec.skip is not None:
        result.status, result.reason = "skipped", instance.spec.skip
        return result
    try:
        _examine(instance, request, result)
    except AnomalyError as error:
        result.status = "failed"
        result.diagnosis.append(Diagnosis("anomaly", f"{error.message}, at {error.place}"))
    except SpecError as error:
        result.status, result.error = "error", fault_of(error)
    except KaelError as error:
        result.status, result.error = "error", fault_of(placed(error, instance.place))
    _expect_failure(instance, result)
    result.seconds = time.perf_counter() - start
    return result


def blank(instance: Instance) -> Result:
    """Return the result of an instance before anything is known of it."""
    place = instance.place
    return Result(
        spec=instance.spec.name,
        case=instance.case,
        file=place.file,
        line=place.line,
        column=place.column,
        label=place.label,
    )


def unloadable(error: SpecError) -> Result:
    """Return the result for what could not even be loaded."""
    place = error.place
    result = Result(
        spec=spec_name(error),
        case=None,
        file=place.file,
        line=place.line,
        column=place.column,
        label=place.label,
        status="error",
    )
    result.error = fault_of(error)
    return result


def broken(instance: Instance, request: Request, message: str) -> Result:
    """Return the result for an instance whose check raised what it never should."""
    result = blank(instance)
    result.status, result.is_bug = "error", True
    result.error = fault_of(SpecError(message, instance.place))
    result.reproduce = reproduce(instance, request)
    return result


def placed(error: KaelError, place: Place) -> SpecError:
    """Return the error with a place, its further lines as details."""
    if isinstance(error, SpecError):
        return error
    message, _, detail = str(error).partition("\n")
    return SpecError(message, place, detail=detail or None)


def fault_of(error: SpecError) -> Fault:
    """Return an error as data."""
    place = error.place
    return Fault(error.message, place.file, place.line, place.column, str(error))


def options_of(instance: Instance, request: Request) -> GradcheckOptions:
    """Return how an instance is checked: the mode's defaults, the spec's words, the request's."""
    stated = {k: v for k, v in instance.spec.gradcheck.items() if k != "samples"}
    if "inputs" in stated:
        stated["inputs"] = tuple(stated["inputs"])
    fields = {**stated, **request.checking}
    if request.seed is not None:
        fields["seed"] = request.seed
    # An expression runs the same operations wherever its inputs are; a Python function may not.
    fields["replayable"] = isinstance(instance.spec.output, Expression)
    return GradcheckOptions(**fields)


def reproduce(instance: Instance, request: Request) -> str:
    """Return the command that checks this one instance again."""
    spec = instance.spec
    words = [word for name, text in request.values if name_of(text) in instance.inputs
             for word in (name, text)]  # fmt: skip
    words += [*request.arguments, "--seed", str(request.seed or 0)]
    if spec.file is not None:
        title = instance.title
        if instance.case is None and title.endswith("]"):
            # what ends in brackets is read as a case
            title = title.replace("[", "?")
        target = [f"{spec.file}::{title}"]
    elif spec.place.label == "<stdin>":
        target = ["-"]
    else:
        target = [spec.name]
    if target[0].startswith("-") and target != ["-"]:
        return shlex.join(["kael", "gradcheck", *words, "--", *target])
    return shlex.join(["kael", "gradcheck", *target, *words])


def name_of(value: str) -> str:
    """Return the NAME of `NAME=VALUE`."""
    return value.partition("=")[0].strip()


def _examine(instance: Instance, request: Request, result: Result) -> None:
    """Fill a result: the given point, the author's expectations, then the drawn points."""
    evaluated = Evaluated(instance, request.seed or 0)
    options = options_of(instance, request)
    if request.anomaly and not instance.spec.outside:
        _look_for_anomalies(instance, request)
    samples = request.samples
    samples = instance.spec.gradcheck.get("samples", 0) if samples is None else samples
    report = _verify(evaluated, options, forecast=_forecast(instance, request, 1 + samples))
    if report.status == "error":
        result.diagnosis += report.diagnosis
        raise SpecError(report.error or "the function is undefined here", evaluated.place)
    _take(report, result)
    expect = instance.expect
    if expect is not None:
        held = list(_expectations(evaluated, expect))
        result.checks += held
        result.diagnosis += _missed(held)
    if samples:
        left = _left(options.max_evaluations, report)
        _sample(evaluated, options, left, request, samples, result)
    _conclude(result)
    result.at = _where(instance, result.checks)


def _forecast(instance: Instance, request: Request, points: int) -> Forecast | None:
    """Return what announces a check that will be long, over all points of it."""
    announce = request.announce
    if announce is None:
        return None

    def told(evaluations: int, seconds: float) -> None:
        if seconds * points <= LONG:
            return
        count = f"{_rounded(evaluations * points):,}"
        time_left = f"{_rounded(seconds * points):,} s"
        announce(
            f"{instance.title}: about {count} evaluations, estimated {time_left}; "
            "--max-evaluations N bounds them, and --mode fast takes few"
        )

    return told


def _rounded(number: float) -> int:
    """Return a number to two digits: an estimate is no better."""
    return int(float(f"{number:.2g}"))


def _left(most: int | None, report: Report) -> int | None:
    """Return what a bound on the evaluations leaves for further points: it holds for all."""
    return None if most is None else max(0, most - report.evaluations)


def _verify(
    evaluated: Evaluated,
    options: GradcheckOptions,
    diagnosed: bool = True,
    forecast: Forecast | None = None,
) -> Report:
    """Return what the checker found at the leaves of an evaluated instance."""
    instance, leaves = evaluated.instance, evaluated.leaves
    names = list(leaves)
    try:
        if instance.spec.outside:
            return _verify_outside(evaluated, options, diagnosed, forecast)
        return check(
            lambda *given: instance.forward(dict(zip(names, given, strict=True))),
            list(leaves.values()),
            names,
            options,
            claims_of(evaluated),
            evaluated.upstream(),
            locate=current_span,
            claim_of=claim_at(instance, _checked(evaluated, options), leaves),
            repairs_of=repairs_of(instance, _checked(evaluated, options), leaves),
            diagnosed=diagnosed,
            forecast=forecast,
        )
    except (SpecError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise evaluated.failure(error) from error


def _checked(evaluated: Evaluated, options: GradcheckOptions) -> list[str]:
    """Return the inputs that are checked, in their order."""
    return [
        name
        for name, leaf in evaluated.leaves.items()
        if leaf.requires_grad and (options.inputs is None or name in options.inputs)
    ]


def _verify_outside(
    evaluated: Evaluated, options: GradcheckOptions, diagnosed: bool, forecast: Forecast | None
) -> Report:
    instance, leaves = evaluated.instance, evaluated.leaves
    names = list(leaves)

    def function(*given: Any) -> Any:
        tensors = {name: Tensor(np.asarray(a)) for name, a in zip(names, given, strict=True)}
        return instance.forward(tensors).numpy()

    def claimed(upstream: Any, *given: Any) -> Any:
        tensors = {name: Tensor(np.asarray(a)) for name, a in zip(names, given, strict=True)}
        for name, leaf in leaves.items():
            tensors[name].requires_grad_(leaf.requires_grad)
        parts = instance.outside_gradients(tensors, upstream)
        return tuple(parts[name] for name in names) if len(names) > 1 else parts[names[0]]

    scalar = instance.spec.grad is not None
    return check_outside(
        function,
        [leaf.numpy() for leaf in leaves.values()],
        names,
        options,
        grad=(lambda *given: claimed(np.ones(()), *given)) if scalar else None,
        vjp=None if scalar else claimed,
        requires_grad=[leaf.requires_grad for leaf in leaves.values()],
        diagnosed=diagnosed,
        forecast=forecast,
    )


def _look_for_anomalies(instance: Instance, request: Request) -> None:
    """Run backward once with anomaly detection on; raises AnomalyError."""
    evaluated = recorded(instance, request.seed or 0)
    if evaluated.output.requires_grad:
        evaluated.backward(ones=True, anomaly=True)


def _take(report: Report, result: Result) -> None:
    """Put what the checker found into a result."""
    result.checks += report.checks
    result.notes += report.notes
    result.diagnosis += report.diagnosis
    result.notes += _blame(report.checks)


def _blame(checks: Sequence[Check]) -> Iterator[str]:
    """Say of each claim that does not hold whether it or kael's own gradient is wrong."""
    numeric = {check.input: check for check in checks if check.kind == "numeric"}
    for claim in checks:
        own = numeric.get(claim.input)
        if claim.kind != "derivative" or own is None or own.status not in ("passed", "failed"):
            continue
        name = claim.input
        if claim.status == "failed" and own.status == "passed":
            yield f"{name}: kael's gradient agrees with the differences; the claim is wrong"
        elif claim.status == "failed":
            yield f"{name}: neither kael's gradient nor the claim agrees with the differences"
        elif own.status == "failed":
            told = "kael's gradient is wrong: mend the backward"
            yield f"{name}: the claim agrees with the differences; {told}"


def _expectations(evaluated: Evaluated, expect: Expect) -> Iterator[Check]:
    """Yield the checks of an `expect` block; the gradients are those under ones or `upstream`."""
    if expect.value is not None:
        yield _golden(None, evaluated.output.numpy(), expect.value, expect)
    if not expect.grad:
        return
    if evaluated.output.requires_grad or evaluated.instance.spec.outside:
        evaluated.backward(ones=True)
    for name, golden in expect.grad.items():
        leaf = evaluated.leaves[name]
        grad = None if leaf.grad is None else leaf.grad.numpy()
        if golden is None:
            held = grad is None
            note = None if held else f"{name} has a gradient, and none is expected"
            status: Status = "passed" if held else "failed"
            yield Check("expect", name, status, compared=1, wrong=int(not held), note=note)
        else:
            yield _golden(name, np.zeros(leaf.shape) if grad is None else grad, golden, expect)


def _missed(checks: Sequence[Check]) -> list[Diagnosis]:
    bad = [check for check in checks if check.status != "passed"]
    if not bad:
        return []
    from kael.checker.faults import golden_mismatch

    return [golden_mismatch.diagnosis(check) for check in bad]


def _golden(name: str | None, got: Any, golden: Golden, expect: Expect) -> Check:
    wanted = golden.array
    if wanted.shape != got.shape:
        what = "the value" if name is None else f"the gradient of '{name}'"
        raise SpecError(
            f"{what} is expected with shape {list(wanted.shape)}, but has {list(got.shape)}",
            golden.place,
        )
    return compare("expect", name, got, wanted, atol=expect.atol, rtol=expect.rtol)


def _sample(
    evaluated: Evaluated,
    options: GradcheckOptions,
    left: int | None,
    request: Request,
    count: int,
    result: Result,
) -> None:
    """Check the formula at more points; where one fails, that is what the command reproduces."""
    from kael.specs import samples

    instance, seed = evaluated.instance, evaluated.seed

    def verify(leaves: dict[str, Tensor], diagnosed: bool) -> Report:
        nonlocal left
        if left == 0:
            return Report("skipped", coverage=samples.NOT_LOOKED_AT)
        there = options.updated(max_evaluations=left)
        report = _verify(Evaluated(instance, seed, leaves=leaves), there, diagnosed)
        left = _left(left, report)
        return report

    held = not any(check.status == "failed" for check in result.checks)
    smallest = samples.look(instance, seed, count, verify, result)
    values = None if smallest is None or not held else samples.values_of(smallest)
    if values is not None:
        names = {name_of(text) for _, text in values}
        kept = [(flag, text) for flag, text in request.values if name_of(text) not in names]
        words = _without_samples(request.arguments)
        if instance.spec.gradcheck.get("samples"):
            words += ["--samples", "0"]
        there = replace(request, values=[*kept, *values], arguments=words)
        result.reproduce = reproduce(instance, there)


def _without_samples(words: Sequence[str]) -> list[str]:
    at = words.index("--samples") if "--samples" in words else len(words)
    return [*words[:at], *words[at + 2 :]]


def _conclude(result: Result) -> None:
    """Give the verdict; a spec in which no gradient was held against anything has none."""
    stated = [check for check in result.checks if check.kind in STATED]
    if any(check.compared or check.status == "inconclusive" for check in stated):
        result.status = worst([check.status for check in result.checks])
        return
    failed = [check for check in result.checks if check.status == "failed"]
    result.status = "failed" if failed else "skipped"
    if failed:
        return
    said = [note for note in result.notes if note.startswith(NOTHING)]
    result.notes = [note for note in result.notes if note not in said]
    result.checks = []
    result.reason = said[0] if said else f"{NOTHING}no differences, claims or expectations"


def _where(instance: Instance, checks: Sequence[Check]) -> str:
    """Return the place of the statement that does not hold, if it is one of the author's."""
    bad = next((check for check in checks if check.status == "failed"), None)
    place: Place | None = None
    if bad is not None and bad.kind == "derivative" and bad.input is not None:
        claim = instance.spec.derivatives.get(bad.input)
        place = claim.place if isinstance(claim, Expression) else None
    elif bad is not None and bad.kind == "expect" and instance.expect is not None:
        expect = instance.expect
        golden = expect.value if bad.input is None else expect.grad.get(bad.input)
        place = expect.place if golden is None else golden.place
    return "" if place is None else str(place)


def _expect_failure(instance: Instance, result: Result) -> None:
    """Turn the verdict of a spec that is marked xfail."""
    reason = instance.spec.xfail
    if reason is None:
        return
    if result.status in ("failed", "inconclusive"):
        result.status, result.reason = "xfailed", reason
    elif result.status == "passed":
        result.status, result.reason = "xpassed", reason
