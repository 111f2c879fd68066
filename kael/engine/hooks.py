"""What looks on while the engine walks: the trace, anomaly detection, and inspectors.

A watch is asked before a node runs and after. Both switches are looked up once per backward.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Protocol, TextIO

import numpy as np

from kael.engine import sources
from kael.engine.node import Gradients, Node
from kael.errors import KaelError, KaelTypeError
from kael.kernels import trace_norm

Array = np.ndarray[Any, Any]


class Watch(Protocol):
    """Sees each node run."""

    def before(self, node: Node, upstream: Array) -> None:
        """Called when the gradient of the node's output is complete."""

    def after(self, node: Node, upstream: Array, gradients: Gradients) -> None:
        """Called with what goes to the node's inputs, in their shapes and dtypes."""


def trace_line(node: Node, upstream: Array) -> str:
    """Return the line of one node: name, shape and norm of the incoming gradient.

    A function of several outputs shows the shape of each and the norm over all.
    """
    parts = node.arrived(upstream)
    shapes = ",".join(f"[{', '.join(map(str, part.shape))}]" for part in parts)
    norms = [trace_norm(part) for part in parts]
    total = norms[0] if len(norms) == 1 else trace_norm(np.array(norms))
    return f"backward {node.name} shape={shapes} norm={total:g}"


class Trace:
    """Prints a line for each node."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def before(self, node: Node, upstream: Array) -> None:
        """Print the node's line; one output of a function with several has none of its own."""
        if node.owner is node:
            self.stream.write(trace_line(node, upstream) + "\n")

    def after(self, node: Node, upstream: Array, gradients: Gradients) -> None:
        """Print nothing."""


class Anomaly:
    """Raises at the first node that returns NaN (or an infinity, if asked)."""

    def __init__(self, check_inf: bool) -> None:
        self.check_inf = check_inf

    def before(self, node: Node, upstream: Array) -> None:
        """Look at nothing."""

    def after(self, node: Node, upstream: Array, gradients: Gradients) -> None:
        """Raise if a returned gradient is not a number."""
        for gradient in gradients:
            if gradient is None or gradient.dtype.kind != "f":
                continue
            if np.isnan(gradient).any():
                raise not_finite(node, "NaN")
            if self.check_inf and np.isinf(gradient).any():
                raise not_finite(node, "Infinity")


def not_finite(node: Node, what: str) -> KaelError:
    """Return the error for a node's gradient, with the user's line that recorded the node."""
    message = f"Function {node.name} returned {what} in its gradient"
    line = sources.line_of(node)
    if line is None:
        return KaelError(message)
    code = line.source.text.strip()
    return KaelError(f"{message}\nrecorded at {line}{': ' if code else ''}{code}")


_trace_stream: TextIO | None = None
_anomaly: tuple[bool, bool] = (False, False)


class _Restore:
    """Undoes a switch at the end of a `with` block."""

    def __init__(self, name: str, previous: Any) -> None:
        self._name = name
        self._previous = previous

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        globals()[self._name] = self._previous
        sources.remember_lines(anomaly_enabled())


def set_backward_trace(stream: TextIO | None) -> _Restore:
    """Print a line for each node of every backward to `stream`.

    None hands back to the variable `KAEL_TRACE_BACKWARD`. As a context manager it restores what
    was set before.
    """
    global _trace_stream
    if stream is not None and not hasattr(stream, "write"):
        raise KaelTypeError(f"a trace needs a text stream, got {type(stream).__name__}")
    restore = _Restore("_trace_stream", _trace_stream)
    _trace_stream = stream
    return restore


def set_anomaly_detection(enabled: bool, check_inf: bool = False) -> _Restore:
    """Raise `KaelError` at the first node whose formula returns NaN.

    `check_inf=True` raises on infinities too. No value is changed. As a context manager it
    restores what was set before.
    """
    global _anomaly
    restore = _Restore("_anomaly", _anomaly)
    _anomaly = (bool(enabled), bool(check_inf))
    sources.remember_lines(anomaly_enabled())
    return restore


def anomaly_enabled() -> bool:
    """Tell whether anomaly detection is on, by the call or by the environment."""
    return _anomaly[0] or _switched_on("KAEL_DETECT_ANOMALY")


# The dict behind os.environ: a look-up that fails through the mapping costs as much as six
# additions of small arrays, and every backward makes two.
_environment: Any = os.environ._data  # type: ignore[attr-defined]
_KEYS = {
    name: os.environ.encodekey(name) for name in ("KAEL_TRACE_BACKWARD", "KAEL_DETECT_ANOMALY")
}


def _switched_on(name: str) -> bool:
    return _KEYS[name] in _environment and os.environ[name] not in ("", "0")


if _switched_on("KAEL_DETECT_ANOMALY"):
    sources.remember_lines(True)


class Watches:
    """Several watches as one."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self.watches = watches

    def before(self, node: Node, upstream: Array) -> None:
        """Ask each."""
        for watch in self.watches:
            watch.before(node, upstream)

    def after(self, node: Node, upstream: Array, gradients: Gradients) -> None:
        """Ask each."""
        for watch in self.watches:
            watch.after(node, upstream, gradients)


def watch_of_this_backward(own: Watch | None) -> Watch | None:
    """Return what looks on at a backward that starts now."""
    watches: list[Watch] = []
    if _trace_stream is not None:
        watches.append(Trace(_trace_stream))
    elif _switched_on("KAEL_TRACE_BACKWARD"):
        watches.append(Trace(sys.stderr))
    if own is not None:
        watches.append(own)
    if anomaly_enabled():
        watches.append(Anomaly(_anomaly[1]))
    if not watches:
        return None
    return watches[0] if len(watches) == 1 else Watches(watches)
