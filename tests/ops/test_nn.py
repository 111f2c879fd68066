"""Softmax rows, cross entropy, standardize, convolutions and the layers made of them."""

import math

import numpy as np
import pytest

import kael
from kael.specs.expression import parse
from kael.specs.place import SpecError

INF = math.inf


def leaf(values):
    return kael.tensor(values, requires_grad=True)


def gradient(out, x, upstream=None):
    out.backward(np.ones(out.shape) if upstream is None else upstream)
    return x.grad.tolist()


class TestSoftmax:
    def test_example_from_hand(self):
        x = leaf([1.0, 2.0, 3.0])
        out = kael.softmax(x, 0)
        assert out.tolist() == pytest.approx([0.0900, 0.2447, 0.6652], abs=5e-5)
        slope = gradient(out, x, [1.0, 0.0, 0.0])
        assert slope == pytest.approx([0.0819, -0.0220, -0.0599], abs=5e-5)
        assert sum(slope) == pytest.approx(0, abs=1e-16)

    def test_huge_logits(self):
        x = leaf([1e300, -1e300, 0.0])
        assert kael.softmax(x, 0).tolist() == [1, 0, 0]
        assert gradient(kael.log_softmax(x, 0)[0], x) == [0, 0, 0]

    def test_a_masked_entry_gets_nothing(self):
        x = leaf([-INF, 0.0, 0.0])
        assert gradient(kael.log_softmax(x, 0)[1], x) == [0, 0.5, -0.5]

    @pytest.mark.parametrize("name", ["softmax", "log_softmax"])
    def test_nothing_but_minus_infinity_is_nan(self, name):
        out = getattr(kael, name)(kael.tensor([[-INF, -INF], [0.0, -INF]]), 1)
        assert np.isnan(out.numpy()).tolist() == [[True, True], [False, False]]

    def test_integers_are_refused(self):
        with pytest.raises(kael.KaelTypeError, match="softmax: a floating tensor is needed"):
            kael.softmax(kael.tensor([1, 2]), 0)

    def test_a_dim_is_asked_for(self):
        with pytest.raises(kael.KaelTypeError, match="softmax needs 'dim'"):
            kael.softmax(kael.ones(2))


class TestCrossEntropy:
    def test_example_from_hand(self):
        x = leaf([2.0, 1.0, 0.1])
        out = kael.cross_entropy_losses(x, kael.tensor(0))
        assert out.item() == pytest.approx(0.4170, abs=5e-5)
        assert out.grad_fn.name == "CrossEntropyBackward"
        assert gradient(out, x) == pytest.approx([-0.3410, 0.2424, 0.0986], abs=5e-5)

    def test_rows_are_scaled_by_their_upstream_gradient(self):
        x = leaf([[0.0, 0.0], [0.0, 0.0]])
        out = kael.cross_entropy_losses(x, kael.tensor([0, 1]))
        assert gradient(out, x, [2.0, -4.0]) == [[-1, 1], [-2, 2]]

    def test_reductions_and_class_dim(self):
        logits = np.zeros((2, 2, 3))
        targets = kael.tensor([[0, 1, 1], [1, 0, 0]])
        losses = kael.cross_entropy(kael.tensor(logits), targets, reduction="none")
        np.testing.assert_allclose(losses.numpy(), np.full((2, 3), math.log(2)))
        total = kael.cross_entropy(kael.tensor(logits), targets, "sum")
        assert total.item() == pytest.approx(6 * math.log(2))
        assert kael.cross_entropy(kael.tensor(logits), targets).item() == pytest.approx(math.log(2))

    @pytest.mark.parametrize(
        ("targets", "kind", "message"),
        [
            ([0, 3], kael.KaelIndexError, "target 3 is out of range for 3 classes"),
            ([0, -1], kael.KaelIndexError, "target -1 is out of range"),
            ([0], kael.KaelValueError, r"logits \[2, 3\] and targets \[1\] do not match"),
            ([0.0, 1.0], kael.KaelTypeError, "targets must hold integers, got float64"),
        ],
    )
    def test_errors(self, targets, kind, message):
        with pytest.raises(kind, match=f"cross_entropy_losses: .*{message}"):
            kael.cross_entropy_losses(kael.ones(2, 3), kael.tensor(targets))


class TestStandardize:
    def test_of_two_entries(self):
        x = leaf([[0.0, 2.0], [5.0, 5.0]])
        out = kael.standardize(x, 1, eps=0.0)
        assert out.tolist()[0] == [-1, 1]
        out = kael.standardize(x, 1, eps=3.0)
        assert out.tolist() == [[-0.5, 0.5], [0, 0]]
        # (g - mean g - y mean(g y)) / 2, with y = -+ 1/2 and g = (1, 0).
        slope = gradient(out, x, [[1.0, 0.0], [0.0, 0.0]])
        assert slope[0] == pytest.approx([0.1875, -0.1875])

    def test_layer_norm_scales_and_shifts(self):
        x = kael.tensor([[0.0, 2.0]])
        out = kael.layer_norm(x, 2, kael.tensor([3.0, 3.0]), kael.tensor([1.0, 1.0]), eps=0.0)
        assert out.tolist() == [[-2, 4]]
        with pytest.raises(kael.KaelValueError, match=r"does not end in normalized_shape \[3\]"):
            kael.layer_norm(x, (3,))

    def test_more_dims_than_there_are(self):
        with pytest.raises(kael.KaelValueError, match=r"standardize: normalized_dims .* got 3"):
            kael.standardize(kael.ones(2, 2), 3)


class TestConvolution:
    def test_a_difference(self):
        x, w = leaf([[[1.0, 4.0, 9.0, 16.0]]]), leaf([[[-1.0, 1.0]]])
        out = kael.conv1d(x, w, bias=kael.tensor([100.0]))
        assert out.tolist() == [[[103, 105, 107]]]
        out.backward([[[1.0, 10.0, 100.0]]])
        assert x.grad.tolist() == [[[-1, -9, -90, 100]]]
        assert w.grad.tolist() == [[[941, 1694]]]

    def test_stride_padding_dilation_groups(self):
        x = kael.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
        w = kael.tensor([[[1.0, 1.0]], [[1.0, -1.0]]])
        out = kael.conv1d(x, w, stride=2, padding=1, dilation=2, groups=2)
        assert out.tolist() == [[2, 6], [-6, -2]]

    def test_a_batch_of_images(self):
        x = kael.tensor(np.arange(16.0).reshape(1, 1, 4, 4))
        out = kael.conv2d(x, kael.ones(1, 1, 2, 2), stride=2)
        assert out.tolist() == [[[[10, 18], [42, 50]]]]
        assert kael.conv2d(x[0], kael.ones(1, 1, 2, 2), stride=2).tolist() == out.tolist()[0]

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (
                lambda: kael.conv1d(kael.ones(1, 2, 5), kael.ones(1, 3, 2)),
                "reads 3 channels, and x ",
            ),
            (lambda: kael.conv1d(kael.ones(1, 1, 2), kael.ones(1, 1, 3)), r"window of \[3\]"),
            (lambda: kael.conv2d(kael.ones(1, 5), kael.ones(1, 1, 2)), "must have 4 dims"),
            (lambda: kael.conv1d(kael.ones(1, 1, 4), kael.ones(1, 1, 2), stride=0), "stride"),
            (
                lambda: kael.conv1d(kael.ones(1, 1, 4), kael.ones(2, 1, 2), kael.ones(3)),
                "bias of 3 numbers",
            ),
        ],
    )
    def test_errors(self, call, message):
        with pytest.raises(kael.KaelValueError, match=message):
            call()


def test_linear():
    x, w, b = kael.tensor([[1.0, 2.0]]), leaf([[3.0, 4.0]]), kael.tensor([5.0])
    out = kael.linear(x, w, b)
    assert out.tolist() == [[16]]
    assert gradient(out, w) == [[1, 2]]
    with pytest.raises(kael.KaelValueError, match=r"linear: x \[1, 2\] and weight \[1, 3\]"):
        kael.linear(x, kael.ones(1, 3))


@pytest.mark.parametrize(
    "text",
    [
        "cross_entropy(zeros(20, 10), zeros(20, 10, dtype=int64))",
        "nll_loss(zeros(20, 10), zeros(20, 10, dtype=int64))",
        "gather(zeros(20, 10), 0, zeros(20, dtype=int64))",
        "index_add(zeros(20, 10), 0, zeros(3, dtype=int64), zeros(4, 10))",
        "conv2d(zeros(20, 10), zeros(20, 10))",
        "conv2d(zeros(20, 10, 5, 5), zeros(20, 3, 2, 2))",
        "unfold(zeros(20, 10), 0, 100, 1)",
        "bitwise_and(zeros(20), zeros(20))",
    ],
)
def test_a_refusal_fits_a_line_and_its_explanation_another(text):
    with pytest.raises(SpecError) as caught:
        parse(text).evaluate({})
    lines = [caught.value.message, *(caught.value.detail or "").splitlines()]
    assert max(map(len, lines)) <= 100
