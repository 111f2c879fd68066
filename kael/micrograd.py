"""A scalar reverse-mode engine: every idea of the tensor engine in miniature.

`python -m kael.micrograd` runs its four checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable


class Value:
    """A number that remembers how it was computed.

    >>> x = Value(3.0)
    >>> y = x * x + 1
    >>> y.backward()
    >>> y.data, x.grad
    (10.0, 6.0)
    """

    __slots__ = ("data", "grad", "parents", "propagate")

    def __init__(self, data: float, parents: tuple[Value, ...] = ()) -> None:
        self.data = float(data)
        self.grad = 0.0
        self.parents = parents
        self.propagate: Callable[[float], None] | None = None

    def __add__(self, other: Value | float) -> Value:
        other = as_value(other)
        out = Value(self.data + other.data, (self, other))

        def propagate(g: float) -> None:
            self.grad += g
            other.grad += g

        out.propagate = propagate
        return out

    def __mul__(self, other: Value | float) -> Value:
        other = as_value(other)
        out = Value(self.data * other.data, (self, other))

        def propagate(g: float) -> None:
            self.grad += other.data * g
            other.grad += self.data * g

        out.propagate = propagate
        return out

    def __pow__(self, exponent: float | Value) -> Value:
        if isinstance(exponent, Value):
            raise TypeError("the exponent must be a plain number; use exp for the rest")
        out = Value(self.data**exponent, (self,))

        def propagate(g: float) -> None:
            if exponent != 0:
                self.grad += exponent * self.data ** (exponent - 1) * g

        out.propagate = propagate
        return out

    def tanh(self) -> Value:
        """Return the hyperbolic tangent."""
        y = math.tanh(self.data)
        out = Value(y, (self,))

        def propagate(g: float) -> None:
            self.grad += (1 - y * y) * g

        out.propagate = propagate
        return out

    def exp(self) -> Value:
        """Return e to the value."""
        y = math.exp(self.data)
        out = Value(y, (self,))

        def propagate(g: float) -> None:
            self.grad += y * g

        out.propagate = propagate
        return out

    def relu(self) -> Value:
        """Return the value where it is positive, else 0; the slope at 0 is 0."""
        out = Value(max(self.data, 0.0), (self,))

        def propagate(g: float) -> None:
            self.grad += g if self.data > 0 else 0.0

        out.propagate = propagate
        return out

    def __neg__(self) -> Value:
        return self * -1

    def __sub__(self, other: Value | float) -> Value:
        return self + (-as_value(other))

    def __truediv__(self, other: Value | float) -> Value:
        return self * as_value(other) ** -1

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: float) -> Value:
        return as_value(other) - self

    def __rtruediv__(self, other: float) -> Value:
        return as_value(other) / self

    def backward(self) -> None:
        """Add the gradient of this value into `grad` of everything it was computed from."""
        order = inputs_first(self)
        # A value shared with an earlier backward keeps its sum; what is in between starts anew.
        for value in order:
            if value.parents:
                value.grad = 0.0
        self.grad += 1.0
        for value in reversed(order):
            if value.propagate is not None:
                value.propagate(value.grad)

    def __repr__(self) -> str:
        return f"Value(data={self.data:g}, grad={self.grad:g})"


def as_value(number: Value | float) -> Value:
    """Return `number` as a Value."""
    return number if isinstance(number, Value) else Value(number)


def inputs_first(root: Value) -> list[Value]:
    """Return everything below `root`, each value after all it was computed from."""
    order: list[Value] = []
    seen = {id(root)}
    path = [(root, iter(root.parents))]
    while path:
        value, parents = path[-1]
        parent = next(parents, None)
        if parent is None:
            order.append(value)
            path.pop()
        elif id(parent) not in seen:
            seen.add(id(parent))
            path.append((parent, iter(parent.parents)))
    return order


def neuron_matches_hand_derivation() -> bool:
    """Check y = tanh(w1 x1 + w2 x2 + b) against its derivatives by hand."""
    w1, x1, w2, x2, b = (Value(v) for v in (0.5, 2.0, -1.5, 0.5, 0.25))
    y = (w1 * x1 + w2 * x2 + b).tanh()
    y.backward()
    slope = 1 - math.tanh(0.5) ** 2
    by_hand = [slope * 2.0, slope * 0.5, slope * 0.5, slope * -1.5, slope]
    found = [v.grad for v in (w1, x1, w2, x2, b)]
    return all(math.isclose(f, h, rel_tol=1e-12) for f, h in zip(found, by_hand, strict=True))


def repeated_input_accumulates() -> bool:
    """Check that a * a at 3 has slope 6."""
    a = Value(3.0)
    (a * a).backward()
    return a.grad == 6.0


def diamond_waits_for_both_paths() -> bool:
    """Check that x*2 + x*3 has slope 5."""
    x = Value(2.0)
    (x * 2 + x * 3).backward()
    return x.grad == 5.0


def exp_derivative_is_itself() -> bool:
    """Check that the slope of exp is its value."""
    x = Value(1.5)
    y = x.exp()
    y.backward()
    return x.grad == y.data


CHECKS = (
    neuron_matches_hand_derivation,
    repeated_input_accumulates,
    diamond_waits_for_both_paths,
    exp_derivative_is_itself,
)


def main() -> int:
    """Run the four checks; print the verdict and return an exit code."""
    failed = [check.__name__ for check in CHECKS if not check()]
    if failed:
        print(f"micrograd: {', '.join(failed)} failed")
        return 1
    print("micrograd: gradients match")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
