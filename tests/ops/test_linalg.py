"""Matrix products in every rank, singular matrices, and what the errors say."""

import math

import numpy as np
import pytest

import kael


def leaf(values):
    return kael.tensor(values, requires_grad=True)


def gradients(out, *leaves, upstream=None):
    out.backward(np.ones(out.shape) if upstream is None else upstream)
    return [x.grad.tolist() for x in leaves]


class TestMatmul:
    def test_example_from_hand(self):
        a, b = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[5.0, 6.0], [7.0, 8.0]])
        assert gradients(a @ b, a, b) == [[[11, 15], [11, 15]], [[4, 4], [6, 6]]]

    @pytest.mark.parametrize(
        ("left", "right", "shape"),
        [
            ((3,), (3,), ()),
            ((3,), (3, 2), (2,)),
            ((2, 3), (3,), (2,)),
            ((3,), (4, 3, 2), (4, 2)),
            ((4, 2, 3), (3,), (4, 2)),
            ((5, 1, 2, 3), (4, 3, 2), (5, 4, 2, 2)),
            ((2, 0), (0, 3), (2, 3)),
            ((0, 3), (3, 2), (0, 2)),
        ],
    )
    def test_gradients_have_the_shapes_of_their_inputs(self, left, right, shape):
        rng = np.random.default_rng(0)
        a, b = leaf(rng.standard_normal(left)), leaf(rng.standard_normal(right))
        out = a @ b
        assert out.shape == shape
        np.testing.assert_allclose(out.numpy(), np.matmul(a.numpy(), b.numpy()))
        gradients(out, a, b)
        assert (a.grad.shape, b.grad.shape) == (left, right)

    def test_a_node_saves_only_what_the_other_side_needs(self):
        a, b = kael.ones(2, 2), leaf(np.ones((2, 2)))
        out = b @ a
        with kael.no_grad():
            b.add_(1.0)
        assert gradients(out, b) == [[[2, 2], [2, 2]]]

    @pytest.mark.parametrize(
        ("left", "right", "message"),
        [
            ((2, 3), (4, 5), r"^matmul: shapes \[2, 3\] and \[4, 5\] do not match: inner sizes 3 "
             "and 4$"),
            ((3,), (4,), "inner sizes 3 and 4"),
            ((2, 2, 3), (3, 3, 4), r"batch dims \[2\] and \[3\] do not broadcast"),
            ((), (3,), r"both operands need at least 1 dim; use \* for numbers"),
        ],
    )  # fmt: skip
    def test_errors(self, left, right, message):
        with pytest.raises(kael.KaelValueError, match=message):
            kael.matmul(kael.ones(left), kael.ones(right))


class TestMixedPrecisionInputKeepsItsDtype:
    @pytest.mark.parametrize("name", ["matmul", "dot", "outer", "einsum"])
    def test_gradient_of_the_float32_input(self, name):
        a = kael.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
        b = leaf([3.0, 4.0])
        out = kael.einsum("i,i->", a, b) if name == "einsum" else getattr(kael, name)(a, b)
        assert out.dtype == np.float64
        gradients(out, a, b)
        assert (a.grad.dtype, b.grad.dtype) == (np.float32, np.float64)

    def test_integers_beside_floats(self):
        a = leaf([1.0, 2.0])
        out = a @ kael.tensor([[1, 2], [3, 4]])
        assert out.tolist() == [7, 10]
        assert gradients(out, a) == [[3, 7]]


def test_matmul_of_a_batch_with_no_columns_has_a_gradient():
    x, other = kael.ones(2, 2, 3, requires_grad=True), kael.ones(3, 0, requires_grad=True)
    (x @ other).sum().backward()
    assert x.grad.tolist() == np.zeros((2, 2, 3)).tolist()
    assert other.grad.shape == (3, 0)


def test_tensordot_of_a_number_has_no_dim_to_sum_over():
    assert kael.tensordot(2.0, [1.0, 2.0], 0).tolist() == [2, 4]
    with pytest.raises(kael.KaelIndexError, match="tensordot: a 0-d tensor"):
        kael.tensordot(2.0, [1.0, 2.0], ([0], [0]))


def test_vectors():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    assert gradients(kael.dot(a, b), a, b) == [[3, 4], [1, 2]]
    a.zero_grad()
    out = kael.outer(a, b)
    assert out.tolist() == [[3, 4], [6, 8]]
    assert gradients(out, a) == [[7, 7]]
    with pytest.raises(kael.KaelValueError, match=r"dot: x must have 1 dim, got shape \[2, 2\]"):
        kael.dot(kael.ones(2, 2), b)
    with pytest.raises(kael.KaelValueError, match=r"bmm: .*batch sizes 2 and 1"):
        kael.bmm(kael.ones(2, 2, 3), kael.ones(1, 3, 2))


class TestDeterminant:
    def test_singular_matrices_have_cofactors(self):
        x = leaf([[1.0, 2.0], [2.0, 4.0]])
        assert gradients(kael.det(x), x) == [[[4, -2], [-2, 1]]]
        x = leaf([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
        (slope,) = gradients(kael.det(x), x)
        np.testing.assert_allclose(slope, [[4, 4, -4], [-2, -2, 2], [0, 0, 0]], atol=1e-13)

    def test_of_rank_far_below(self):
        x = leaf(np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0]))
        (slope,) = gradients(kael.det(x), x)
        np.testing.assert_allclose(slope, np.zeros((4, 4)), atol=1e-12)

    def test_nan_stays_nan(self):
        x = leaf([[math.nan, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        (slope,) = gradients(kael.det(x), x)
        assert np.isnan(slope).all()

    def test_slogdet_is_the_logarithm(self):
        x = leaf([[0.0, 2.0], [-3.0, 0.0]])
        out = kael.slogdet(x)
        assert out.item() == pytest.approx(math.log(6))
        assert gradients(out, x) == [[[0, 0.5], [pytest.approx(-1 / 3), 0]]]
        x = leaf([[1.0, 2.0], [2.0, 4.0]])
        out = kael.slogdet(x)
        assert out.item() == -math.inf
        assert np.isinf(gradients(out, x)).all()


class TestSystems:
    def test_solve_and_its_gradients(self):
        a, b = leaf([[2.0, 0.0], [0.0, 4.0]]), leaf([2.0, 8.0])
        out = kael.solve(a, b)
        assert out.tolist() == [1, 2]
        assert gradients(out, a, b) == [[[-0.5, -1], [-0.25, -0.5]], [0.5, 0.25]]

    def test_cholesky_of_a_diagonal(self):
        x = leaf([[4.0, 0.0], [0.0, 9.0]])
        out = kael.cholesky(x)
        assert out.tolist() == [[2, 0], [0, 3]]
        (slope,) = gradients(out, x)
        np.testing.assert_allclose(slope, [[1 / 4, 1 / 4], [1 / 4, 1 / 6]])

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: kael.inverse(kael.ones(2, 2)), "inverse: a matrix is not regular"),
            (lambda: kael.solve(kael.ones(2, 2), kael.ones(2)), "solve: a matrix is not regular"),
            (lambda: kael.cholesky(-kael.eye(2)), "cholesky: a matrix is not positive definite"),
            (lambda: kael.det(kael.ones(2, 3)), r"det: square matrices .* got shape \[2, 3\]"),
            (lambda: kael.solve(kael.eye(2), kael.ones(3)), "solve: .*the right side needs 2 rows"),
        ],
    )
    def test_errors(self, call, message):
        with pytest.raises(kael.KaelValueError, match=message):
            call()


class TestEinsum:
    @pytest.mark.parametrize(
        ("equation", "given"),
        [
            ("ij,jk->ik", [(2, 3), (3, 4)]),
            ("ij,jk", [(2, 3), (3, 4)]),
            ("...ij,...jk->...ik", [(2, 2, 3), (3, 2)]),
            ("ii->i", [(3, 3)]),
            ("ii", [(3, 3)]),
            ("ij->", [(2, 3)]),
            ("i,j,k->kij", [(2,), (3,), (2,)]),
            ("i j, j k -> i k", [(2, 3), (3, 2)]),
            ("bn,anm,bm->ba", [(2, 3), (4, 3, 2), (2, 2)]),
        ],
    )
    def test_values(self, equation, given):
        rng = np.random.default_rng(1)
        arrays = [rng.standard_normal(shape) for shape in given]
        out = kael.einsum(equation, *map(kael.tensor, arrays))
        np.testing.assert_allclose(out.numpy(), np.einsum(equation, *arrays))
        assert kael.einsum(equation, [kael.tensor(a) for a in arrays]).tolist() == out.tolist()

    def test_gradient_of_a_diagonal_and_of_a_summed_index(self):
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        assert gradients(kael.einsum("ii->i", x), x, upstream=[5.0, 7.0]) == [[[5, 0], [0, 7]]]
        x.zero_grad()
        assert gradients(kael.einsum("ij->i", x), x, upstream=[5.0, 7.0]) == [[[5, 5], [7, 7]]]

    def test_sizes_of_1_broadcast(self):
        a, b = leaf([[1.0, 2.0]]), leaf([[3.0, 4.0], [5.0, 6.0]])
        out = kael.einsum("ij,ij->i", a, b)
        assert out.tolist() == [11, 17]
        assert gradients(out, a, b) == [[[8, 10]], [[1, 2], [1, 2]]]

    @pytest.mark.parametrize(
        ("equation", "given", "kind", "message"),
        [
            ("ij,jk", [(2, 3)], kael.KaelValueError, "has 2 operands, got 1"),
            ("ij,jk", [(2, 3), (2, 4)], kael.KaelValueError, "'j' .* stands for sizes 3 and 2"),
            ("ij->k", [(2, 3)], kael.KaelValueError, "'k' in the result"),
            ("ijk", [(2, 3)], kael.KaelValueError, "names 3 dims, and shape"),
            (kael.ones(2), [(2,)], kael.KaelTypeError, "einsum"),
        ],
    )
    def test_errors(self, equation, given, kind, message):
        with pytest.raises(kind, match=message):
            kael.einsum(equation, *(kael.ones(shape) for shape in given))

    def test_tensordot(self):
        rng = np.random.default_rng(2)
        a, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 3, 2))
        for dims, ours in ((1, 1), (([1, 2], [1, 0]), ([1, 2], [1, 0])), (0, 0)):
            out = kael.tensordot(kael.tensor(a), kael.tensor(b), dims)
            np.testing.assert_allclose(out.numpy(), np.tensordot(a, b, ours))
        with pytest.raises(kael.KaelValueError, match="sizes 4 and 3 are summed together"):
            kael.tensordot(kael.ones(2, 4), kael.ones(3, 2), 1)
