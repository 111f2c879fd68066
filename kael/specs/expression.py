"""An expression that has been read and checked, and its evaluation over named values.

`parse` is the way in. What the language allows is `language.py`'s; which sub-expression is being
evaluated can be asked for at any moment with `current_span`, by whoever observes operations.
"""

import threading
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

import kael.ops  # noqa: F401 (fills the registry that the language looks names up in)
from kael import dtypes
from kael.errors import KaelError
from kael.ops.arguments import NotIntegers
from kael.specs.arithmetic import describe
from kael.specs.language import Program
from kael.specs.place import Place, SpecError
from kael.specs.steps import Scope
from kael.specs.syntax import Locate, Text
from kael.tensors import Tensor

MAX_ELEMENTS = 10**8

_WRONG = (
    KaelError,
    ArithmeticError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
)


class Span:
    """A sub-expression: its text, where it starts and ends, and its place in the file."""

    __slots__ = ("end", "source", "start")

    def __init__(self, source: Text, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end

    @property
    def text(self) -> str:
        """The sub-expression as written, on one line."""
        return " ".join(self.source.text[self.start : self.end].split())

    @property
    def place(self) -> Place:
        """Where it starts."""
        return self.source.at(self.start)

    def __repr__(self) -> str:
        return f"Span({self.text!r}, {self.start}, {self.end})"


class Expression:
    """A checked expression; `evaluate` gives its value as a tensor.

    `names` are the inputs, `let` names and unknown names it uses, in the order of their first use.
    """

    __slots__ = ("_program", "_source", "names", "place", "text")

    def __init__(self, program: Program, text: str, place: Place) -> None:
        self.text = text
        self.place = place
        self.names = tuple(program.names)
        self._program = program.steps
        self._source = program.text

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def place_of(self, offset: int) -> Place:
        """Return the place of a character of the text."""
        return self._source.at(offset)

    def evaluate(self, names: Mapping[str, Any], max_elements: int = MAX_ELEMENTS) -> Tensor:
        """Return the value as a tensor; plain numbers become 0-d constants.

        Raises `SpecError` at the sub-expression that cannot be evaluated.

        >>> parse("x * 2 + 1").evaluate({"x": Tensor(np.array([1.0, 2.0]))}).tolist()
        [3.0, 5.0]
        """
        return self.as_tensor(self.value(names, max_elements))

    def value(self, names: Mapping[str, Any], max_elements: int = MAX_ELEMENTS) -> Any:
        """Return the value as it is: a tensor, a plain number, a shape or a list of tensors."""
        scope = Scope(names, max_elements)
        stack: list[Any] = []
        previous, _running.evaluation = _running.evaluation, (self, scope)
        try:
            for at, step in enumerate(self._program):
                scope.at = at
                step.apply(stack, scope)
        except SpecError:
            raise
        except _WRONG as error:
            raise self._failure(error, scope.at) from error
        finally:
            _running.evaluation = previous
        return stack[0]

    def as_tensor(self, value: Any) -> Tensor:
        """Return a value of this expression as a tensor."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, (bool, int, float)):
            return Tensor(np.array(value, bool if value is True or value is False else
                                   dtypes.default_dtype()))  # fmt: skip
        hint = "take one of them: […][0]" if isinstance(value, list) else None
        raise SpecError(f"the value is {describe(value)}, not a tensor", self.place, hint=hint)

    def span(self, at: int) -> Span:
        """Return the sub-expression of a step."""
        step = self._program[at]
        return Span(self._source, step.start, step.end)

    def _failure(self, error: Exception, at: int) -> SpecError:
        span = self.span(at)
        if isinstance(error, KaelError):
            message, _, rest = str(error).partition("\n")
        elif isinstance(error, MemoryError):
            message, rest = "there is not enough memory for the result", ""
        else:
            message, rest = f"{type(error).__name__}: {error}".partition("\n")[0], ""
        hint = integers_hint(span.place) if isinstance(error, NotIntegers) else None
        return SpecError(message, span.place, detail=rest or None, hint=hint)


def integers_hint(place: Place) -> str:
    """Return how an input of integers is written where the expression stands."""
    if place.file is None and place.label == "<expression>":
        form = "-c NAME='tensor([0, 2], dtype=int64)'"
    elif place.file is not None and place.file.endswith(".py"):
        form = 'kael.Input([0, 2], dtype="int64")'
    else:
        form = "{value: [0, 2], dtype: int64}"
    return f"write an input of integers as {form}"


class _Running(threading.local):
    evaluation: tuple[Expression, Scope] | None = None


_running = _Running()


def current_span() -> Span | None:
    """Return the sub-expression this thread is evaluating; None outside an evaluation."""
    evaluation = _running.evaluation
    return None if evaluation is None else evaluation[0].span(evaluation[1].at)


def parse(
    text: str,
    place: Place | None = None,
    names: Collection[str] | None = None,
    locate: Locate | None = None,
) -> Expression:
    """Read and check an expression.

    `place` is where the text starts. `names` are the names it may use beside constants (None: any
    name). `locate` maps an offset in the text to a line and a column, for texts that are not in
    the file as they are. Raises `SpecError`.

    >>> parse("tanh(x*w + x).sum()").names
    ('x', 'w')
    >>> parse("tahn(x)")
    Traceback (most recent call last):
    kael.specs.place.SpecError: <expression>:1:1: unknown operation 'tahn'; did you mean 'tanh'?
      tahn(x)
      ^
    """
    if place is None:
        place = Place(None, 1, 1, "<expression>", text)
    return Expression(Program(Text(text, place, locate), names), text, place)
