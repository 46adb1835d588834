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


def test_predictions_after_restrict_use_the_columns_kept():
    loss, columns = SquaredLoss(LARGE, np.zeros(300)), np.arange(400, 100, -1)
    x = np.zeros(500)
    x[3] = 1.0
    loss.point(x)
    z = np.zeros(300)
    z[7] = 2.0
    np.testing.assert_allclose(loss.restrict(columns).point(z).prediction, 2 * LARGE[:, 393], rtol=1e-14)


def test_nan_in_x_is_seen():
    x = np.zeros(500)
    x[3] = math.nan
    assert np.isnan(SquaredLoss(LARGE, np.zeros(300)).point(x).prediction).all()


@pytest.mark.parametrize("size", [499, 501])
def test_x_of_a_wrong_size_is_refused(size):
    with pytest.raises(ValueError, match=str(size)):
        SquaredLoss(LARGE, np.zeros(300)).point(np.zeros(size))


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_prediction_of_zero(make, kind):
    loss = make(kind(A), LABELS)
    point = loss.point(loss.start())
    np.testing.assert_array_equal(point.prediction, 0)
    assert value_at(make(LARGE, np.ones(300)), np.zeros(500)) == pytest.approx(
        {SquaredLoss: 150, LogisticLoss: 300 * math.log(2), HuberLoss: 150}[make]
    )


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


def test_huber_has_a_default_delta():
    assert HuberLoss(A, LABELS).delta == 1.35


@pytest.mark.parametrize("make", ALL)
def test_zero_matrix_has_lipschitz_constant_zero(make):
    assert make(np.zeros((3, 2)), LABELS).lipschitz() == 0


# Labels


@pytest.mark.parametrize("zero", [0, 0.0, False])
def test_labels_of_zero_and_one(zero):
    b, x = [not zero, zero, not zero], [0.3, -0.4]
    expected = sum(math.log1p(math.exp(-y * (row @ x))) for y, row in zip(LABELS, A, strict=True))
    assert value_at(LogisticLoss(A, b), x) == pytest.approx(expected, rel=1e-14)
    assert value_at(LogisticLoss(A, LABELS), x) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("label", "sign"), [(1, 1), (0, -1), (-1, -1)])
def test_labels_of_one_class(label, sign):
    np.testing.assert_array_equal(LogisticLoss(A, np.full(3, label)).b, sign)


@pytest.mark.parametrize("b", [[1, 2, 1], [0, -1, 1], [0.5, 0.5, 1], [1, 1, -1.0000001]])
def test_other_labels_are_refused(b):
    with pytest.raises(ValueError, match="b must hold two labels"):
        LogisticLoss(A, b)


# Errors


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite(make, bad):
    broken, labels = A.copy(), LABELS.copy()
    broken[1, 1] = labels[2] = bad
    for kind in (np.array, sparse.csr_array, np.ndarray.tolist):
        with pytest.raises(ValueError, match=r"^A holds NaN or infinity"):
            make(kind(broken), LABELS)
    with pytest.raises(ValueError, match=r"^b holds NaN or infinity"):
        make(A, labels)


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


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("bad", [np.ones(3), np.ones((2, 2, 2)), 1.0], ids=str)
def test_matrices_of_a_wrong_dimension(make, bad):
    with pytest.raises(ValueError, match=r"^A must be two-dimensional"):
        make(bad, LABELS)


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


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", None, 1j], ids=repr)
def test_scale_and_delta(make, bad):
    with pytest.raises(ValueError, match=r"^scale must be a finite number > 0"):
        make(A, LABELS, scale=bad)
    with pytest.raises(ValueError, match=r"^delta must be a finite number > 0"):
        HuberLoss(A, LABELS, delta=bad)


@pytest.mark.parametrize("make", ALL)
def test_text_is_refused(make):
    with pytest.raises(TypeError, match=r"^A must hold numbers"):
        make([["a", "b"]], [1.0])
    with pytest.raises(TypeError, match=r"^b must hold numbers"):
        make(A, ["x", "y", "z"])


@pytest.mark.parametrize("make", ALL)
def test_data_are_not_written_to(make):
    matrix, b, weights = A.copy(), LABELS.copy(), np.ones(3)
    for array in (matrix, b, weights):
        array.flags.writeable = False
    loss = make(matrix, b, sample_weight=weights)
    point = loss.point(np.ones(2))
    loss.value(point), loss.gradient(point), loss.hessian(point), loss.lipschitz()
    np.testing.assert_array_equal(matrix, A)
    np.testing.assert_array_equal(b, LABELS)


@pytest.mark.parametrize("make", ALL)
def test_repr_says_what_it_is(make):
    assert repr(make(A, LABELS, scale=0.5)) == f"{make.__name__}(A of shape (3, 2), scale=0.5)"


def test_observations_follow_the_matrix_to_its_library(backend):
    A, b = np.random.default_rng(0).standard_normal((5, 3)).astype("float32"), [1.0, -1.0, 1.0, 1.0, -1.0]
    array = backend.make_array(A)
    for make in (SquaredLoss, LogisticLoss, HuberLoss):
        loss = make(array, b, sample_weight=np.ones(5))
        gradient = loss.gradient(loss.point(loss.start()))
        assert type(gradient) is type(array)
        assert gradient.dtype == array.dtype


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
