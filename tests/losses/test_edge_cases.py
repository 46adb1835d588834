"""Losses: sparse predictions, extreme margins, labels, and errors that name the argument."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ell12 import HuberLoss, LogisticLoss, SquaredLoss
from ell12.losses import MultinomialLoss

ALL = [SquaredLoss, LogisticLoss, HuberLoss]
LABELS = np.array([1.0, -1.0, 1.0])
A = np.array([[1.0, 2.0], [0.5, -1.0], [-3.0, 0.1]])


def value_at(loss, x):
    return loss.value(loss.point(np.asarray(x)))


# Predictions from a few columns


LARGE = np.random.default_rng(0).standard_normal((300, 500))
MATRICES = {
    "C order": LARGE,
    "Fortran order": np.asfortranarray(LARGE),
    "strided": np.repeat(LARGE, 2, axis=1)[:, ::2],
    "float32": LARGE.astype(np.float32),
    "complex": LARGE + 1j * LARGE[::-1],
    "large": np.random.default_rng(1).standard_normal((2000, 1500)),
}


@pytest.mark.parametrize("kind", MATRICES)
@settings(max_examples=25, deadline=None)
@given(count=st.integers(0, 200), seed=st.integers(0, 2**32 - 1))
def test_sparse_predictions(kind, count, seed):
    matrix, rng = MATRICES[kind], np.random.default_rng(seed)
    m, n = matrix.shape
    x = np.zeros(n, dtype=matrix.dtype)
    x[rng.choice(n, count, replace=False)] = rng.standard_normal(count)
    prediction = SquaredLoss(matrix, np.zeros(m)).point(x).prediction
    assert prediction.dtype == matrix.dtype
    assert prediction.shape == (m,)
    tol = 2e-5 if kind == "float32" else 1e-12
    np.testing.assert_allclose(prediction, matrix @ x, atol=tol * max(1, count) ** 0.5)


# Extremes


def test_huge_margins():
    loss = LogisticLoss(np.eye(4), [1, -1, 1, -1], scale=2.0)
    point = loss.point(np.array([1e300, 1e300, -800.0, -800.0]))
    assert loss.value(point) == 2 * (1e300 + 800)
    np.testing.assert_array_equal(loss.gradient(point), [0, 2, -2, 0])
    np.testing.assert_array_equal(loss.hessian(point), 0)


def test_small_margins_keep_their_digits():
    loss = LogisticLoss([[1.0]], [1])
    assert value_at(loss, [40.0]) == pytest.approx(math.exp(-40), rel=1e-14)
    assert loss.gradient(loss.point(np.array([40.0])))[0] == pytest.approx(-math.exp(-40), rel=1e-14)
    assert loss.curvature(loss.point(np.array([-40.0])))[0] == pytest.approx(math.exp(-40), rel=1e-14)


@pytest.mark.parametrize("delta", [1e-3, 1.0, 1e3])
def test_huber_between_squares_and_moduli(delta):
    b = np.array([0.0, 2.0, -50.0])
    loss, x = HuberLoss(A, b, delta=delta), np.array([0.3, -0.4])
    sizes = [abs(row @ x - y) for row, y in zip(A.tolist(), b, strict=True)]
    expected = sum(r * r / 2 if r <= delta else delta * r - delta**2 / 2 for r in sizes)
    assert value_at(loss, x) == pytest.approx(expected, rel=1e-13)
    assert np.abs(loss.slope(loss.point(x))).max() <= delta
    np.testing.assert_array_equal(loss.curvature(loss.point(x)), [float(r <= delta) for r in sizes])


# Labels


@pytest.mark.parametrize("zero", [0, 0.0, False])
def test_labels_of_zero_and_one(zero):
    b, x = [not zero, zero, not zero], [0.3, -0.4]
    expected = sum(math.log1p(math.exp(-y * (row @ x))) for y, row in zip(LABELS, A, strict=True))
    assert value_at(LogisticLoss(A, b), x) == pytest.approx(expected, rel=1e-14)
    assert value_at(LogisticLoss(A, LABELS), x) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("b", [[1, 2, 1], [0, -1, 1], [0.5, 0.5, 1], [1, 1, -1.0000001]])
def test_other_labels_are_refused(b):
    with pytest.raises(ValueError, match="b must hold two labels"):
        LogisticLoss(A, b)


# Errors


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("b", [np.ones(2), np.ones(4), np.ones((1, 3)), 1.0, []], ids=str)
def test_shape_of_b(make, b):
    with pytest.raises(ValueError, match=r"^b must have shape \(3,\) to fit A"):
        make(A, b)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (0, 0)])
def test_empty_matrices(make, shape):
    for kind in (np.array, sparse.csr_array):
        with pytest.raises(ValueError, match=r"^A is empty"):
            make(kind(np.zeros(shape)), np.ones(shape[0]))


@pytest.mark.parametrize("make", [LogisticLoss, HuberLoss])
def test_complex_numbers_where_they_cannot_be(make):
    with pytest.raises(TypeError, match=r"needs real A"):
        make(A + 0j, LABELS)
    with pytest.raises(TypeError, match=r"needs real b"):
        make(A, LABELS + 0j)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize(
    "bad",
    [[1.0, -1.0, 1.0], [1.0, math.nan, 1.0], [1.0, math.inf, 1.0], [1.0, 1.0], 2.0, list("abc"), [1j, 1, 1]],
    ids=str,
)
def test_sample_weight(make, bad):
    with pytest.raises((ValueError, TypeError), match=r"^sample_weight must"):
        make(A, LABELS, sample_weight=bad)


def test_foreign_observations_of_a_numpy_matrix_are_refused():
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="b must be a NumPy array"):
        SquaredLoss(np.eye(2), strict.asarray([1.0, 2.0]))


def test_classes_that_are_names_are_refused_before_they_take_memory():
    with pytest.raises(
        ValueError, match=r"b names a class 1000000000 in 3 rows: number the classes 0, 1, ..., k - 1"
    ):
        MultinomialLoss(np.eye(3), [0, 1, 10**9])


def test_the_hessian_of_no_columns_is_empty():
    loss = MultinomialLoss(np.eye(3), [0, 1, 2])
    point, none = loss.point(loss.start()), np.zeros(0, dtype=int)
    assert loss.hessian(point, none).shape == (0, 0)
    assert loss.hessian(point, none, np.arange(2)).shape == (0, 2)
