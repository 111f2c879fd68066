"""The doubly guarded form of a masked expression, written with the user's own text.

`where(x > 2, log(x), 2*x)` stops the gradient of `log` where `x <= 2`, but 0 times its infinite
slope is NaN. The argument has to be guarded too: `where(x > 2, log(where(x > 2, x, 1)), 2*x)`.
"""

from __future__ import annotations

import ast

from kael.inspect.recorder import Step, Where

_SAFE = {
    "asin": "0",
    "acos": "0",
    "atanh": "0",
    "erfinv": "0",
    "exp": "0",
    "exp2": "0",
    "expm1": "0",
    "sinh": "0",
    "cosh": "0",
    "tan": "0",
    "log1p": "0",
    "logit": "0.5",
    "acosh": "2",
}
"""An argument at which value and slope are finite; 1 for every operation not listed."""


def guarded(step: Step, mask: Step, branch: int) -> str | None:
    """Return the user's expression with the argument of `step` guarded too, or None.

    `mask` is the `where` that leaves the result out, `branch` the operand (1 or 2) it comes in by.
    """
    if step.where is None or mask.where is None:
        return None
    whole = _parsed(mask.where.text)
    condition = _condition(whole)
    if not isinstance(whole, ast.Call) or condition is None:
        return None
    text = mask.where.text
    chosen = segment(text, condition)
    callee = segment(text, whole.func)
    target = _found(whole, text, step, mask)
    if target is None:
        # The operation stands elsewhere, in a `let` value or another line: rewrite it there.
        text = step.where.text
        found = _parsed(text)
        if found is None:
            return None
        target = found
    argument = _argument(target, step)
    if argument is None:
        return None
    safe = _SAFE.get(step.name, "1")
    inner = segment(text, argument)
    parts = (chosen, inner, safe) if branch == 1 else (chosen, safe, inner)
    return _replaced(text, argument, f"{callee}({', '.join(parts)})")


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _condition(call: ast.expr | None) -> ast.expr | None:
    if not isinstance(call, ast.Call) or _called(call) != "where":
        return None
    if call.args:
        return call.args[0]
    return next((word.value for word in call.keywords if word.arg == "condition"), None)


def _called(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def _found(whole: ast.expr, text: str, step: Step, mask: Step) -> ast.expr | None:
    """Return the operation's own node inside the `where`, by its place or else by its text."""
    assert step.where is not None
    assert mask.where is not None
    offset = _offset_inside(step.where, mask.where)
    wanted = step.where.text
    for node in ast.walk(whole):
        if not isinstance(node, (ast.Call, ast.BinOp)) or segment(text, node) != wanted:
            continue
        if offset is None or characters(text, node.col_offset) == offset:
            return node
    return None


def _offset_inside(inner: Where, outer: Where) -> int | None:
    same = inner.source.text == outer.source.text
    plain = outer.source.text[outer.start : outer.end] == outer.text
    return inner.start - outer.start if same and plain and inner.place.line else None


def _argument(node: ast.expr, step: Step) -> ast.expr | None:
    """Return the operand that has to be guarded."""
    if isinstance(node, ast.BinOp):
        return node.right if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)) else node.left
    if not isinstance(node, ast.Call) or _called(node) not in (step.name, *step.aliases):
        return None
    index = 1 if step.name == "div" else 0
    if len(node.args) > index:
        return node.args[index]
    return node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None


def segment(text: str, node: ast.expr) -> str:
    """Return the text of a node of one line."""
    raw = text.encode()
    return raw[node.col_offset : node.end_col_offset].decode(errors="replace")


def characters(text: str, offset: int) -> int:
    """Return an offset in bytes as one in characters."""
    return len(text.encode()[:offset].decode(errors="replace"))


def _replaced(text: str, node: ast.expr, new: str) -> str:
    raw = text.encode()
    return (raw[: node.col_offset] + new.encode() + raw[node.end_col_offset :]).decode()
