"""Order: ties, NaN, and where the gradient of a sorted entry goes."""

import math

import numpy as np
import pytest

import kael


def gradient(out, x, upstream):
    out.backward(upstream)
    return x.grad.tolist()


def leaf(values):
    return kael.tensor(values, requires_grad=True)


def test_sort_sends_gradients_back_to_their_entries():
    x = leaf([3.0, 1.0, 2.0])
    out = x.sort()
    assert out.tolist() == [1, 2, 3]
    assert gradient(out, x, [1.0, 10.0, 100.0]) == [100, 1, 10]


def test_descending_keeps_ties_in_order():
    x = leaf([2.0, 5.0, 2.0, 5.0])
    assert x.argsort(descending=True).tolist() == [1, 3, 0, 2]
    assert gradient(x.sort(descending=True), x, [1.0, 2.0, 3.0, 4.0]) == [3, 1, 4, 2]


def test_nan_is_the_largest():
    x = kael.tensor([math.nan, 1.0, math.inf])
    assert x.argsort().tolist() == [1, 2, 0]
    assert x.argsort(descending=True).tolist() == [0, 2, 1]


def test_topk_of_a_dim():
    x = leaf([[1.0, 4.0, 3.0], [6.0, 5.0, 2.0]])
    out = x.topk(2, dim=1)
    assert out.tolist() == [[4, 3], [6, 5]]
    assert gradient(out, x, [[1.0, 2.0], [3.0, 4.0]]) == [[0, 1, 2], [3, 4, 0]]
    assert kael.topk(x, 1, dim=0, largest=False).tolist() == [[1, 4, 2]]
    with pytest.raises(kael.KaelValueError, match=r"topk: k must be in \[0, 3\].*got 4"):
        x.topk(4)


def test_median_is_the_lower_middle_and_shares_ties():
    x = leaf([4.0, 1.0, 3.0, 2.0])
    out = x.median()
    assert out.item() == 2
    assert gradient(out, x, 1.0) == [0, 0, 0, 1]
    tied = leaf([[1.0, 1.0, 5.0], [2.0, 7.0, 7.0]])
    assert gradient(tied.median(dim=1), tied, [1.0, 4.0]) == [[0.5, 0.5, 0], [0, 2, 2]]
    assert math.isnan(kael.tensor([1.0, math.nan, 0.0]).median().item())


def test_indices_of_extremes():
    x = leaf([[1.0, 5.0, 5.0], [9.0, 0.0, 9.0]])
    out = x.argmax(dim=1)
    assert (out.tolist(), out.dtype, out.requires_grad) == ([1, 0], np.int64, False)
    assert x.argmax().item() == 3
    assert x.argmin(dim=0, keepdim=True).tolist() == [[0, 1, 0]]
    assert kael.tensor([1.0, math.nan]).argmin().item() == 1
    with pytest.raises(kael.KaelValueError, match="argmax: nothing to choose from"):
        kael.zeros(0).argmax()
