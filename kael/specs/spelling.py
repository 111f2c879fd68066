"""Suggestions for a misspelt name: edit distance in which a transposition is one edit."""

from collections.abc import Iterable


def distance(first: str, second: str) -> int:
    """Return the Damerau-Levenshtein distance (optimal string alignment) of two words.

    >>> distance("tahn", "tanh"), distance("sum", "summ"), distance("exp", "log")
    (1, 1, 3)
    """
    older: list[int] = []
    old = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        new = [i]
        for j, b in enumerate(second, 1):
            cost = min(old[j] + 1, new[j - 1] + 1, old[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            new.append(cost)
        older, old = old, new
    return old[-1]


def suggest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that was probably meant, or None when none is near.

    A tie goes to the name of equal length, then to the first in the alphabet.

    >>> suggest("tahn", ["tan", "tanh", "atan"])
    'tanh'
    """
    lowered = word.lower()
    limit = 1 if len(word) < 4 else 2 if len(word) < 9 else 3
    near = []
    for candidate in candidates:
        if abs(len(candidate) - len(word)) > limit or candidate == word:
            continue
        edits = distance(lowered, candidate.lower())
        if edits <= limit and edits < max(len(word), len(candidate)):
            near.append((edits, len(candidate) != len(word), candidate))
    return min(near)[2] if near else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return `"; did you mean 'tanh'?"`, or an empty text when nothing is near.

    >>> did_you_mean("tahn", ["tanh"])
    "; did you mean 'tanh'?"
    """
    found = suggest(word[:100], candidates)
    return f"; did you mean '{found}'?" if found else ""
