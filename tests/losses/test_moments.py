"""Means and products of columns, against numpy.average, numpy.cov and sums written out."""

from functools import reduce
from operator import add

import numpy as np
import pytest
import scipy.sparse

from ell12.losses.moments import Moments, mean_squared_loss, of_rows

FORMS = {"dense": np.asarray, "csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array}


def data(n=40, p=5, k=2, seed=0):
    random = np.random.default_rng(seed)
    A = np.where(random.random((n, p)) < 0.6, random.standard_normal((n, p)) + 0.5, 0)
    return A, random.standard_normal((n, k)) - 2, random.uniform(0, 3, n)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cuts", [[], [20], [1, 2], [5, 5, 30], [0]])
def test_pieces_add_up_to_the_moments_of_numpy_in_any_order(form, cuts):
    A, targets, weight = data()
    weight[:2] = 0  # a piece may weigh nothing
    Z = np.hstack([A, targets])
    rows = [part for part in np.split(np.arange(40), cuts) if part.size]
    pieces = [Moments.of(FORMS[form](A[r]), targets[r], weight[r]) for r in rows]
    for order in (pieces, pieces[::-1]):
        found = reduce(add, order)
        assert (found.rows, found.total) == (40, pytest.approx(weight.sum()))
        np.testing.assert_allclose(found.mean, np.average(Z, axis=0, weights=weight), rtol=1e-12)
        expected = np.cov(Z, rowvar=False, aweights=weight, ddof=0) * weight.sum()
        np.testing.assert_allclose(found.products, expected, atol=1e-11)
    mean, products = of_rows(FORMS[form](A), targets, weight, products=False)
    np.testing.assert_allclose(mean, found.mean, rtol=1e-12)
    assert products is None


def test_a_large_mean_does_not_swallow_the_deviations():
    A, targets, weight = data()
    far = Moments.of(A[:20] + 1e8, targets[:20], weight[:20]) + Moments.of(A[20:] + 1e8, targets[20:], weight[20:])
    rounded = (A + 1e8) - 1e8  # which is exact
    expected = np.cov(np.hstack([rounded, targets]), rowvar=False, aweights=weight, ddof=0) * weight.sum()
    np.testing.assert_allclose(far.products, expected, atol=1e-5)  # where plain sums of squares err by hundreds


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("k", [0, 1])
def test_normal_equations_are_sums_over_the_rows(intercept, k):
    A, targets, weight = data()
    B = np.column_stack([A, np.ones(40)]) if intercept else A
    gram, cross, square = Moments.of(A, targets, weight).normal_equations(5, k, intercept)
    np.testing.assert_allclose(gram, sum(w * np.outer(a, a) for w, a in zip(weight, B, strict=True)), atol=1e-11)
    np.testing.assert_allclose(cross, (weight * targets[:, k]) @ B, atol=1e-11)
    assert square == pytest.approx(np.sum(weight * targets[:, k] ** 2))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("targets", [1, [0, 1]])
def test_the_mean_squared_loss_is_that_of_the_rows(intercept, targets):
    A, b, weight = data()
    loss = mean_squared_loss(Moments.of(A, b, weight), 5, targets, intercept, np.float64)
    share = weight / weight.sum()
    if intercept:
        A, b = A - share @ A, b - share @ b
    x = np.random.default_rng(3).standard_normal(loss.start().shape)
    difference = A @ x - b[:, targets]
    expected = 0.5 * np.sum(share * (difference**2).T)
    assert loss.value(loss.point(x)) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(loss.gradient(loss.point(x)), A.T @ (share * difference.T).T, atol=1e-12)


def test_constant_columns_and_targets_count_as_nothing_next_to_an_intercept():
    A, b, weight = data()
    A[:, 2], b[:, 0] = 0.1, 0.3
    loss = mean_squared_loss(Moments.of(A, b, weight), 5, 0, True, np.float64)
    assert loss.value(loss.point(np.zeros(5))) == 0
    assert not loss.gradient(loss.point(np.zeros(5))).any()
    assert loss.value(loss.point(np.array([0.0, 0, 1, 0, 0]))) == 0


def test_labels_are_merged_with_their_weights():
    def labelled(labels, weights):
        zero = np.zeros(1)
        return Moments(1, 1.0, zero, None, np.array(labels), np.array(weights))

    found = labelled(["a", "c"], [1.0, 2.0]) + labelled(["b", "c"], [4.0, 8.0])
    assert found.labels.tolist() == ["a", "b", "c"]
    assert found.label_weights.tolist() == [1.0, 4.0, 10.0]
    found = labelled([], []) + labelled(["b"], [4.0])
    assert (found.labels.tolist(), found.label_weights.tolist()) == (["b"], [4.0])
    with pytest.raises(TypeError, match="y must hold labels of one kind"):
        labelled(np.array([1, "a"], dtype=object), [1.0, 1.0]) + labelled(["b"], [1.0])


def test_squares_that_overflow_are_refused_by_name():
    with pytest.raises(ValueError, match="X or y is too large"):
        of_rows(np.array([[1e10], [-1e10]]), np.ones((2, 1)), np.full(2, 1e300))
