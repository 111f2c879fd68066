"""A few elements are wrong, always the same ones.

## What was seen

A small part of the entries is wrong at the given point and at the points beside it, and all others
are right. What tells them apart is their place, not their value.

## Why it happens

The backward of an indexing, padding, strided or windowed operation forgets a border, writes an
index twice (where `+=` is due), or leaves out the last block of a loop. Tests on small or random
parts of the input miss it, and so does a checker that compares one projected number.

## How to mend it

Look at what is special about the indices in the report: first, last, a multiple of the block size,
an index that occurs twice.
"""

import numpy as np

from kael.checker.evidence import Evidence
from kael.checker.model import Diagnosis

RANK = 600

SHARE = 0.3


def found(evidence: Evidence) -> Diagnosis | None:
    """Few wrong among many, at one place wherever the values are."""
    wrong, total = evidence.wrong_at_given, evidence.compared or evidence.size
    count = int(wrong.sum())
    if not count or total < 4 or count > max(1.0, SHARE * total) or not evidence.near:
        return None
    there = np.logical_or.reduce([view.wrong for view in evidence.near])
    here = set(evidence.given[0].entries[wrong].tolist())
    beside = set(evidence.near[0].entries[there].tolist())
    if not beside or not beside <= here or not here & set(evidence.near[0].entries) <= beside:
        return None
    if evidence.shown_right() < 3:
        return None
    indices = [
        "[" + ", ".join(str(int(i)) for i in np.unravel_index(entry, evidence.shape)) + "]"
        for entry in sorted(here)
    ]
    shown = ", ".join(indices[:4]) + (f" and {len(indices) - 4} more" if len(indices) > 4 else "")
    return evidence.tell("few-elements", f"is wrong at {shown} alone{evidence.among}")
