"""No case of the spec visits one side of a branch.

## What was seen

`--require-branches` was given, and over all cases of the spec every entry that reached an operation
with a branch (`relu`, `abs`, `clamp`, `maximum`, `where`) was on the same side of it.

## Why it happens

The cases have inputs of one sign, or too few of them. A gradient that is wrong on the side that was
never visited passes.

## How to mend it

Add a case whose inputs reach the other side, or `gradcheck: {samples: N}`. `kael check --branches`
lists the sides and how often each was visited.
"""

from collections.abc import Sequence

from kael.checker.branches import Branch
from kael.checker.model import Diagnosis
from kael.checker.problems import called


def diagnosis(branch: Branch, sides: Sequence[str]) -> Diagnosis:
    """The diagnosis of one branch with sides that no case visits."""
    where = called(branch.operation, branch.text, branch.place)
    listed = " or ".join(f"'{side}'" for side in sides)
    return Diagnosis("unvisited-branch", f"no case visits the side {listed} of {where}")
