"""Which specs of a run are meant: the expressions of `-k`, and tags."""

import re
from collections.abc import Callable, Iterable

from kael_cli.exits import CommandError

Predicate = Callable[[tuple[str, ...]], bool]

TOKEN = re.compile(r"\s*(?:([()])|([^\s()]+))")
DEEPEST = 100
"""How deep parentheses and `not` may nest: more is a mistake, not a selection."""


def matcher(text: str) -> Predicate:
    """Return the test of a `-k` expression: words joined by `and`, `or`, `not`, parentheses.

    A word matches when it is part of one of the names, in any letter case, as in pytest.
    Raises CommandError where the text is no such expression.

    >>> wanted = matcher("loss and not large")
    >>> wanted(("focal loss", "large")), wanted(("focal loss", "small"))
    (False, True)
    """
    return _Parser(text).parse()


def tagged(wanted: Iterable[str]) -> Callable[[Iterable[str]], bool]:
    """Return the test for a spec's tags: it has one of those that are wanted."""
    names = set(wanted)
    return lambda tags: not names.isdisjoint(tags)


class _Parser:
    """expression: term (or term)*; term: factor (and factor)*; factor: not factor | (…) | word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [
            (match.group(1) or match.group(2), match.start(1) if match.group(1) else match.start(2))
            for match in TOKEN.finditer(text)
        ]
        self.position = 0
        self.depth = 0

    def parse(self) -> Predicate:
        if not self.tokens:
            return lambda _names: True
        test = self.expression()
        if self.position < len(self.tokens):
            self.refuse("expected 'and', 'or' or the end")
        return test

    def expression(self) -> Predicate:
        tests = [self.term()]
        while self.accept("or"):
            tests.append(self.term())
        return tests[0] if len(tests) == 1 else lambda names: any(test(names) for test in tests)

    def term(self) -> Predicate:
        tests = [self.factor()]
        while self.accept("and"):
            tests.append(self.factor())
        return tests[0] if len(tests) == 1 else lambda names: all(test(names) for test in tests)

    def factor(self) -> Predicate:
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"more than {DEEPEST} levels")
        test = self.primary()
        self.depth -= 1
        return test

    def primary(self) -> Predicate:
        if self.accept("not"):
            negated = self.factor()
            return lambda names: not negated(names)
        if self.accept("("):
            grouped = self.expression()
            if not self.accept(")"):
                self.refuse("expected ')'")
            return grouped
        token = self.peek()
        if token in (None, ")", "and", "or"):
            self.refuse("expected a name")
        self.position += 1
        word = str(token).lower()
        return lambda names: any(word in name.lower() for name in names)

    def peek(self) -> str | None:
        return self.tokens[self.position][0] if self.position < len(self.tokens) else None

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.position += 1
        return True

    def refuse(self, problem: str) -> None:
        at = self.position < len(self.tokens)
        column = (self.tokens[self.position][1] if at else len(self.text)) + 1
        raise CommandError(
            f"-k:1:{column}: {problem}\n  {self.text}\n  {' ' * (column - 1)}^\n"
            "  names joined by 'and', 'or', 'not' and parentheses are allowed"
        )
