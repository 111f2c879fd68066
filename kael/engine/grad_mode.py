"""What each thread decides for itself: whether operations record, and who watches them."""

from __future__ import annotations

import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np

from kael.errors import KaelTypeError

if TYPE_CHECKING:
    from kael.engine.node import Node
    from kael.tensors import Tensor

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Observer(Protocol):
    """Called after every operation with what went in and what came out."""

    def __call__(
        self,
        op: Any,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Any, ...],
        output: Tensor,
        node: Node | None,
    ) -> None: ...


first_observer: Observer | None = None
"""What a thread's operations are watched by from its start: anomaly mode remembers lines."""


class Here:
    """Grad mode and observer of one thread, and `run`, which calls a kernel quietly.

    Kernels run inside a context of their own in which NumPy's floating-point warnings are off:
    entering one costs a tenth of `np.errstate`, and the caller's own settings stay untouched.
    """

    __slots__ = ("grad_enabled", "observer", "run")

    def __init__(self) -> None:
        self.grad_enabled = True
        self.observer = first_observer
        quiet = contextvars.Context()
        quiet.run(np.seterr, all="ignore")
        self.run = quiet.run


class ThreadState(threading.local):
    """Holds each thread's `here`; looked up once an operation."""

    def __init__(self) -> None:
        self.here = Here()


state = ThreadState()


def is_grad_enabled() -> bool:
    """Tell whether operations of this thread record history."""
    return state.here.grad_enabled


class GradMode:
    """Sets this thread's grad mode while a `with` block or a decorated function runs.

    Guards nest and survive exceptions. A decorated generator or async function runs in the mode
    whenever it is resumed, and its caller in its own.
    """

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._previous: list[bool] = []

    def __enter__(self) -> None:
        self._previous.append(state.here.grad_enabled)
        state.here.grad_enabled = self._mode

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        state.here.grad_enabled = self._previous.pop()

    def __call__(self, function: Decorated) -> Decorated:
        if not callable(function):
            raise KaelTypeError(f"grad mode decorates functions, not {type(function).__name__}")
        if inspect.isasyncgenfunction(function):
            raise KaelTypeError("grad mode cannot decorate an async generator; use a with block")
        if inspect.isgeneratorfunction(function):
            return _in_mode_generator(function, self._mode)  # type: ignore[return-value]
        if inspect.iscoroutinefunction(function):
            return _in_mode_coroutine(function, self._mode)  # type: ignore[return-value]

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with GradMode(self._mode):
                return function(*args, **kwargs)

        return guarded  # type: ignore[return-value]


def _in_mode_generator(function: Callable[..., Any], mode: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        return (yield from _Resumed(function(*args, **kwargs), mode))

    return guarded


def _in_mode_coroutine(function: Callable[..., Any], mode: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        return await _Resumed(function(*args, **kwargs).__await__(), mode)

    return guarded


class _Resumed:
    """A generator that sets the mode only while the wrapped one is running."""

    def __init__(self, wrapped: Any, mode: bool) -> None:
        self._wrapped = wrapped
        self._mode = mode

    def __iter__(self) -> _Resumed:
        return self

    def __await__(self) -> _Resumed:
        return self

    def __next__(self) -> Any:
        with GradMode(self._mode):
            return next(self._wrapped)

    def send(self, value: Any) -> Any:
        with GradMode(self._mode):
            return self._wrapped.send(value) if value is not None else next(self._wrapped)

    def throw(self, *error: Any) -> Any:
        with GradMode(self._mode):
            return self._wrapped.throw(*error)

    def close(self) -> None:
        with GradMode(self._mode):
            self._wrapped.close()


class _FixedMode(GradMode):
    """A mode with a name of its own; as a bare decorator (`@no_grad`) it needs no call."""

    mode: ClassVar[bool]

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()  # type: ignore[misc]
        return made(function)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(self.mode)


class no_grad(_FixedMode):
    """Operations inside record nothing: for inference and parameter updates."""

    mode = False


class enable_grad(_FixedMode):
    """Operations inside record, whatever the mode around them."""

    mode = True


class set_grad_enabled(GradMode):
    """Sets the mode at once; as a context manager it also restores the mode before the call."""

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._before: bool | None = state.here.grad_enabled
        state.here.grad_enabled = bool(mode)

    def __enter__(self) -> None:
        before, self._before = self._before, None
        super().__enter__()
        if before is not None:
            self._previous[-1] = before

    def __call__(self, function: Decorated) -> Decorated:
        if self._before is not None:
            state.here.grad_enabled, self._before = self._before, None
        return super().__call__(function)


class observing:
    """Makes `observer` see every operation of this thread while a `with` block runs."""

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self._previous: Observer | None = None

    def __enter__(self) -> None:
        self._previous, state.here.observer = state.here.observer, self._observer

    def __exit__(self, *error: object) -> None:
        state.here.observer = self._previous
