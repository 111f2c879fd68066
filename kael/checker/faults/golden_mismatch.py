"""The computed value or gradient is not the expected one.

## What was seen

A number under `expect` differs from what kael computes by more than the tolerances of the block
(`atol` 1e-6 and `rtol` 1e-5 unless it says otherwise).

## Why it happens

The formula was changed and the golden values were not, or the reverse; the values were made by
another convention (a `mean` for a `sum`, natural for decimal logarithm, n - 1 for n), in float32,
or were rounded to fewer digits than the tolerances ask for. Where the differences agree with
kael's gradient, the expectation or the formula is at fault, not the derivative.

## How to mend it

Find out which of the two is right, by a source other than kael; then correct the formula or the
`expect` block.
"""

from kael.checker.model import Check, Diagnosis


def diagnosis(check: Check) -> Diagnosis:
    """The diagnosis of an expectation that was missed."""
    what = f"gradient of {check.input}" if check.input else "value"
    if check.note and not check.failures:
        return Diagnosis("golden-mismatch", check.note, input=check.input)
    many = f" in {check.wrong} of {check.compared} entries" if check.compared > 1 else ""
    return Diagnosis(
        "golden-mismatch", f"the {what} is not the expected one{many}", None, check.input
    )
