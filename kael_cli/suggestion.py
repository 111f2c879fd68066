"""'Did you mean': the nearest known word to one that was mistyped on the command line."""

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'trace'?`, or nothing where no known word is near.

    >>> did_you_mean("tarce", ["trace", "tree"])
    "; did you mean 'trace'?"
    >>> did_you_mean("zzz", ["trace", "tree"])
    ''
    """
    # difflib is slow to import and a mistyped word is rare
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""
