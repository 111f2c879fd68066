"""Specs from Python: the `@kael.spec` decorator, and the loading of files that use it.

A file is imported under a name of its own, with its folder importable meanwhile; what it raises
becomes one error and never stops the files after it.
"""

import contextlib
import importlib.util
import inspect
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from kael.specs import keys
from kael.specs.expression import Expression, parse
from kael.specs.inputs import Input, checked, generator
from kael.specs.literals import PythonReader, read_nested
from kael.specs.model import EXPECT_ATOL, EXPECT_RTOL, MODES, Case, Expect, Golden, Spec, as_array
from kael.specs.place import Place, SpecError
from kael.specs.spelling import did_you_mean
from kael.specs.user_code import MODULE, apart, describe, user_frames
from kael.specs.yaml_loader import Loaded

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

KEYS = tuple(key for key in keys.SPEC if key not in ("inputs", "output", "let"))
WORDS = (re.compile(rb"\bkael\b"), re.compile(rb"\bspec\b"))


class Collector:
    """What the file that is being loaded has declared so far."""

    def __init__(self, file: str, path: str, text: str) -> None:
        self.file = file
        self.path = path
        self.text = text
        self.specs: list[Spec] = []
        self.errors: list[SpecError] = []


class _Loading(threading.local):
    collector: Collector | None = None


_loading = _Loading()


def spec(*args: Any, **given: Any) -> Callable[[Decorated], Decorated]:
    """Declare the decorated function a spec.

    Keyword arguments that match parameters are inputs: lists, arrays, tensors, or `kael.Input`.
    The others are the keys of a YAML spec (`expect`, `derivatives`, `gradcheck`, `cases`, …), and
    `grad` or `vjp` for a function outside kael that takes and returns arrays. The function itself
    is returned. Raises `SpecError` for what does not fit.

    >>> @spec(x=[1.0, 2.0], tags=["demo"])
    ... def double(x):
    ...     return x * 2
    >>> double.__name__
    'double'
    """

    def declare(function: Decorated) -> Decorated:
        collector = _loading.collector
        if not callable(function) or not hasattr(function, "__code__"):
            raise SpecError("@kael.spec decorates a function", calling_place(collector))
        try:
            found = read_spec(function, given, place_of(function, collector))
        except SpecError as error:
            if collector is None:
                raise
            name = given.get("name", function.__name__)
            error.spec = name if isinstance(name, str) else None
            collector.errors.append(error)
            return function
        if collector is not None:
            collector.specs.append(found)
        return function

    if args:
        raise SpecError(
            "@kael.spec takes keyword arguments, the inputs: @kael.spec(x=[1.0, 2.0])",
            calling_place(_loading.collector),
        )
    return declare


def calling_place(collector: Collector | None) -> Place:
    """Return the line of the file that is being loaded which called what called this."""
    if collector is None:
        return Place()
    line = sys._getframe(2).f_lineno
    return Place(collector.file.replace(os.sep, "/"), line, source=collector.text)


def place_of(function: Callable[..., Any], collector: Collector | None) -> Place:
    """Return the place of a function's `def`."""
    code = function.__code__
    if collector is not None and same_path(code.co_filename, collector.path):
        file, text = collector.file, collector.text
    else:
        file, text = code.co_filename, None
    line = code.co_firstlineno
    column = 1
    if text is not None:
        # The first line of the code is that of its first decorator.
        lines = text.splitlines()
        for at in range(line - 1, len(lines)):
            match = re.match(r"(\s*)(async\s+def|def)\s", lines[at])
            if match:
                line, column = at + 1, len(match[1]) + 1
                break
    return Place(file.replace(os.sep, "/"), line, column, source=text)


def same_path(first: str, second: str) -> bool:
    """Tell whether two paths are one."""
    return os.path.abspath(first) == os.path.abspath(second)


def read_spec(function: Callable[..., Any], given: Mapping[str, Any], place: Place) -> Spec:
    """Return the spec that a decorated function and its keywords describe."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise SpecError("a spec is a plain function, and this one is async", place)
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise SpecError(f"the parameter '{name}' is positional only", place)
    named = {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    allowed = (*KEYS, "grad", "vjp")
    options = {key: value for key, value in given.items() if key not in named}
    for key in options:
        if key not in allowed:
            near = did_you_mean(key, [*named, *allowed])
            hint = f"the parameters are {', '.join(named)}" if named else "it has no parameters"
            raise SpecError(f"unknown keyword '{key}' in @kael.spec{near}", place, hint=hint)
    for name, parameter in parameters.items():
        if name in named and name not in given and parameter.default is parameter.empty:
            raise SpecError(
                f"the parameter '{name}' has no input", place, hint=f"@kael.spec({name}=…)"
            )
    folder = os.path.dirname(function.__code__.co_filename)
    # The function's own order is the order of the inputs: claims take them by position.
    inputs = {name: checked(given[name], name, place, folder) for name in named if name in given}
    if not inputs:
        raise SpecError("a spec has at least one input", place)
    reader = KeywordReader(options, inputs, place, folder, function.__code__.co_firstlineno)
    return Spec(
        name=reader.text("name", function.__name__),
        place=place,
        file=place.file,
        description=reader.text("description", inspect.getdoc(function) or ""),
        tags=reader.tags(),
        output=function,
        inputs=inputs,
        upstream=reader.upstream(),
        expect=reader.expect(options.get("expect")),
        derivatives=reader.derivatives(),
        gradcheck=reader.gradcheck(),
        xfail=reader.reason("xfail"),
        skip=reader.reason("skip"),
        cases=reader.cases(),
        **reader.outside(),
    )


class KeywordReader:
    """The keywords of `@kael.spec` that are not inputs; `start` is the line they begin on."""

    def __init__(
        self,
        given: Mapping[str, Any],
        inputs: dict[str, Input],
        place: Place,
        folder: str,
        start: int,
    ) -> None:
        self.given = given
        self.inputs = inputs
        self.place = place
        self.folder = folder
        self.start = start

    def error(self, message: str, hint: str | None = None) -> SpecError:
        """Return the error at the spec's place."""
        return SpecError(message, self.place, hint=hint)

    def text(self, key: str, default: str) -> str:
        """Return a text."""
        value = self.given.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"{key} must be text, got {value!r}"[:200])
        if key == "name":
            self.one_line(value)
        return value

    def one_line(self, name: str) -> str:
        """Return a name that can stand in a line of a report."""
        if not name.strip() or not name.isprintable():
            raise self.error(f"a name is one line of text, got {name!r}"[:200])
        return name

    def tags(self) -> tuple[str, ...]:
        """Return the tags."""
        tags = self.given.get("tags", ())
        if not isinstance(tags, (list, tuple)) or not all(isinstance(tag, str) for tag in tags):
            raise self.error("tags must be a list of words")
        return tuple(tags)

    def reason(self, key: str) -> str | None:
        """Return why a spec is skipped or known to fail."""
        value = self.given.get(key)
        if value is None or value is False:
            return None
        if value is True:
            return "no reason given"
        if not isinstance(value, str):
            raise self.error(f"{key} must be a reason, got {value!r}"[:200])
        return value

    def outside(self) -> dict[str, Any]:
        """Return `grad` and `vjp`."""
        found = {key: self.given[key] for key in ("grad", "vjp") if self.given.get(key) is not None}
        if len(found) == 2:
            raise self.error("'grad' and 'vjp' exclude each other")
        for key, value in found.items():
            if not callable(value):
                raise self.error(f"{key} must be a function, got {type(value).__name__}")
            if self.given.get("derivatives") is not None:
                raise self.error(f"'{key}' claims the gradient already: leave out 'derivatives'")
        return found

    def mapping(self, key: str, value: Any) -> Mapping[str, Any]:
        """Return a value that must be a mapping from names."""
        if value is None:
            return {}
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise self.error(f"{key} must be a dict of names, got {type(value).__name__}")
        return value

    def known(self, value: Mapping[str, Any], allowed: Any, what: str) -> None:
        """Refuse a key that is not one of `allowed`."""
        for key in value:
            if key not in allowed:
                near = did_you_mean(key, allowed)
                raise self.error(
                    f"unknown key '{key}' in {what}{near}", f"it takes {', '.join(allowed)}"
                )

    def input_name(self, name: str) -> str:
        """Return a word that names an input."""
        if name not in self.inputs:
            near = did_you_mean(name, self.inputs)
            raise self.error(
                f"there is no input '{name}'{near}", f"the inputs are {', '.join(self.inputs)}"
            )
        return name

    def golden(self, value: Any, what: str) -> Golden:
        """Return a value as an array of reals."""
        if isinstance(value, (list, tuple, int, float)):
            value = read_nested(value, PythonReader(self.place, what)).array(
                None, np.dtype("float64")
            )
        return Golden(as_array(value, what, self.place), self.place)

    def upstream(self) -> str | Golden | None:
        """Return `ones`, `randn`, or a value."""
        value = self.given.get("upstream")
        if value is None or (isinstance(value, str) and value in ("ones", "randn")):
            return value
        if isinstance(value, str):
            near = did_you_mean(value, ("ones", "randn"))
            raise self.error(f"unknown upstream '{value}'{near}", "it is ones, randn, or a value")
        return self.golden(value, "upstream")

    def number(self, key: str, value: Any, least: float = 0.0) -> float:
        """Return a number that is at least `least`."""
        real = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not real or not least <= value < float("inf"):
            message = f"{key} must be a finite number that is not negative, got {value!r}"
            raise self.error(message[:200])
        return float(value)

    def expect(self, value: Any) -> Expect | None:
        """Return golden values."""
        if value is None:
            return None
        given = self.mapping("expect", value)
        self.known(given, keys.EXPECT, "expect")
        if not {"value", "grad"} & set(given):
            raise self.error("expect needs 'value' or 'grad'")
        gradients: dict[str, Golden | None] = {}
        for name, gradient in self.mapping("expect grad", given.get("grad")).items():
            which = self.input_name(name)
            what = f"the expected gradient of '{name}'"
            gradients[which] = None if gradient is None else self.golden(gradient, what)
        return Expect(
            place=self.place,
            value=self.golden(given["value"], "the expected value") if "value" in given else None,
            grad=gradients,
            atol=self.number("atol", given.get("atol", EXPECT_ATOL)),
            rtol=self.number("rtol", given.get("rtol", EXPECT_RTOL)),
        )

    def derivatives(self) -> dict[str, Expression | Callable[..., Any]]:
        """Return the claimed gradients, as functions or expressions."""
        found: dict[str, Expression | Callable[..., Any]] = {}
        for name, claim in self.mapping("derivatives", self.given.get("derivatives")).items():
            which = self.input_name(name)
            if callable(claim):
                found[which] = claim
            elif isinstance(claim, (str, int, float)):
                text = str(claim)
                found[which] = self.expression(text)
            else:
                raise self.error(f"the derivative of '{name}' must be a function or an expression")
        return found

    def expression(self, text: str) -> Expression:
        """Return an expression at its place between the decorator and the `def`.

        Where it is not written there as it is, its place is that of the spec.
        """
        whole, names = self.place, [*self.inputs]
        lines = (whole.source or "").split("\n")[: whole.line]
        for at in range(self.start - 1, len(lines)):
            match = re.search(f"(['\"]){re.escape(text)}\\1", lines[at])
            if match:
                return parse(text, whole.at(at + 1, match.start() + 2), names)
        return parse(text, whole, names, lambda offset: (whole.line or 1, whole.column))

    def gradcheck(self) -> dict[str, Any]:
        """Return the options of the check that are given."""
        given = self.mapping("gradcheck", self.given.get("gradcheck"))
        self.known(given, keys.GRADCHECK, "gradcheck")
        found = dict(given)
        for key, value in given.items():
            if key in ("eps", "atol", "rtol"):
                self.number(key, value)
            elif key in ("seed", "samples"):
                if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                    raise self.error(f"{key} must be an integer from 0 on, got {value!r}"[:200])
            elif key == "mode" and value not in MODES:
                near = did_you_mean(str(value), MODES)
                raise self.error(
                    f"unknown mode '{value}'{near}", f"mode is one of {', '.join(MODES)}"
                )
            elif key == "numeric" and not isinstance(value, bool):
                raise self.error(f"numeric must be True or False, got {value!r}"[:200])
            elif key == "inputs":
                names = [value] if isinstance(value, str) else value
                found[key] = tuple(self.input_name(name) for name in names)
        return found

    def cases(self) -> dict[str, Case]:
        """Return the cases, each in its short form or with `inputs` and `expect`."""
        found: dict[str, Case] = {}
        for name, case in self.mapping("cases", self.given.get("cases")).items():
            values = self.mapping(f"case '{self.one_line(name)}'", case)
            expect = None
            if any(key in keys.CASE and key not in self.inputs for key in values):
                self.known(values, keys.CASE, f"case '{name}'")
                expect = self.expect(values.get("expect"))
                values = self.mapping("inputs", values.get("inputs"))
            changed = {}
            for key, value in values.items():
                which = self.input_name(key)
                base = self.inputs[which]
                changed[which] = inherit(checked(value, which, self.place, self.folder), base)
            found[name] = Case(name, self.place, changed, expect)
        return found


def inherit(changed: Input, base: Input) -> Input:
    """Return a case's input with the dtype and the flag of the base, where it has none itself."""
    if changed.dtype is None and not isinstance(changed.value, np.ndarray):
        changed.dtype = base.dtype
        if base.dtype is None and isinstance(base.value, np.ndarray):
            changed.dtype = base.value.dtype
    if changed.requires_grad is None:
        changed.requires_grad = base.requires_grad
    return changed


def mentions_specs(path: str) -> bool:
    """Tell whether a Python file's text has both words `kael` and `spec`."""
    try:
        with open(path, "rb") as stream:
            text = stream.read()
    except OSError:
        return False
    return all(word.search(text) for word in WORDS)


def load(path: str, shown: str | None = None, seed: int = 0) -> Loaded:
    """Run a Python file and return the specs it declares; `shown` is its name in places."""
    file = (shown or path).replace(os.sep, "/")
    whole = Place(file)
    try:
        with open(path, "rb") as stream:
            data = stream.read()
        text = importlib.util.decode_source(data)
        code = compile(data, os.path.abspath(path), "exec", dont_inherit=True)
    except OSError as error:
        return Loaded([], [SpecError(f"the file cannot be read: {error.strerror or error}", whole)])
    except SyntaxError as error:
        place = Place(file, error.lineno, error.offset or None, source=text_of(error, path))
        return Loaded([], [SpecError(f"SyntaxError: {error.msg}", place)])
    except (ValueError, RecursionError, MemoryError, UnicodeDecodeError) as error:
        return Loaded([], [SpecError(f"the file is not Python: {error}"[:200], whole)])
    collector = Collector(file, os.path.abspath(path), text)
    execute(code, path, file, seed, collector)
    specs, errors = without_doubles(collector)
    return Loaded(specs, errors)


def text_of(error: SyntaxError, path: str) -> str | None:
    """Return the text of a file with a syntax error, for the caret."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return error.text


def execute(code: Any, path: str, file: str, seed: int, collector: Collector) -> None:
    """Run a file's code and keep what it declares and raises."""
    from kael.ops.create import manual_seed

    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(module_name(path), loader=None)  # type: ignore[arg-type]
    )
    module.__file__ = collector.path
    here = os.getcwd()
    manual_seed(int(generator(seed, os.path.basename(path)).integers(2**31)))
    sys.modules[module.__name__] = module
    previous, _loading.collector = _loading.collector, collector
    try:
        with apart(), importable(os.path.dirname(collector.path)):
            exec(code, module.__dict__)
    except SpecError as error:
        collector.errors.append(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit, pytest's skip
        collector.errors.append(import_error(error, collector))
    finally:
        _loading.collector = previous
        os.chdir(here)


def module_name(path: str) -> str:
    """Return a name under which no other module is imported."""
    stem = re.sub(r"\W", "_", os.path.splitext(os.path.basename(path))[0])
    import zlib

    return f"{MODULE}{zlib.crc32(os.path.abspath(path).encode('utf-8', 'replace')):08x}_{stem}"


@contextlib.contextmanager
def importable(folder: str) -> Iterator[None]:
    """Make a folder's modules importable for a while.

    They are forgotten afterwards: two folders may have modules of one name.
    """
    before = set(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            inside = origin and os.path.abspath(origin).startswith(folder + os.sep)
            if inside and not name.startswith(MODULE) and "site-packages" not in str(origin):
                del sys.modules[name]


def import_error(error: BaseException, collector: Collector) -> SpecError:
    """Return the error for what a file raised while it ran, at the file's own last line."""
    import traceback

    message, _, rest = describe(error).partition("\n")
    place = Place(collector.file, source=collector.text)
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if same_path(frame.filename, collector.path)
    ]
    if own:
        place = place.at(own[-1].lineno, None)
    shown = user_frames(error, collector.file) if len(own) > 1 else []
    detail = "\n".join(part for part in (*shown, rest) if part)
    return SpecError(message, place, detail=detail or None)


def without_doubles(collector: Collector) -> tuple[list[Spec], list[SpecError]]:
    """Return the specs and errors of a file in which no name is given twice."""
    specs: dict[str, Spec] = {}
    errors = list(collector.errors)
    for found in collector.specs:
        if found.name in specs:
            errors.append(
                SpecError(
                    f"the name '{found.name}' is given to two specs of this file",
                    found.place,
                    hint=f"the first is on line {specs[found.name].place.line}",
                )
            )
        else:
            specs[found.name] = found
    return list(specs.values()), errors
