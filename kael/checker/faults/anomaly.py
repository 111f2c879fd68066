"""A gradient became NaN on the way.

## What was seen

With `--anomaly`, the backward pass stopped at the first node that returned NaN.

## Why it happens

0/0, inf - inf or 0 * inf in a local derivative: the square root or the norm at 0, `log` at 0, a
masked branch whose derivative is infinite.

## How to mend it

`kael anomaly` names the sub-expression, the elements and the reason, and often a remedy.
"""
