"""Matrices dense and in factors, against plain arrays."""

import numpy as np
import pytest

from ell12 import LowRank, Observed
from ell12.completion import CompletionLoss
from ell12.completion.matrix_apg import DenseForm, FactoredForm, SparsePlusLowRank, combined, combined_norm
from ell12.completion.observed import TABLE_FROM

FORMS = [DenseForm, FactoredForm]


def problem(known=0.5, shape=(9, 7)):
    random = np.random.default_rng(0)
    X, mask = random.standard_normal(shape), random.random(shape) < known
    return X, mask, CompletionLoss(Observed.from_mask(X, mask))


def low_rank(seed, rank=2, shape=(9, 7)):
    random = np.random.default_rng(seed)
    return LowRank.from_factors(*(random.standard_normal((n, rank)) for n in shape))


def dense(Z):
    return Z if isinstance(Z, np.ndarray) else Z @ np.eye(Z.shape[1])


@pytest.mark.parametrize("make_form", FORMS)
@pytest.mark.parametrize("length", [1.0, 0.3])
def test_a_gradient_step_from_a_mixture_is_that_of_dense_matrices(make_form, length):
    X, mask, loss = problem()
    form = make_form(loss)
    a, b, c = (form.estimate(low_rank(seed)) for seed in range(3))
    y = a + 0.5 * (a - b) + 0.25 * (c - a)
    A, B, C = (estimate.x.to_array() for estimate in (a, b, c))
    Y = 1.25 * A - 0.5 * B + 0.25 * C
    at, Z = form.step(y, length)
    np.testing.assert_allclose(dense(Z), Y - length * mask * (Y - X), atol=1e-12)
    np.testing.assert_allclose(dense(form.add(Z, 0.7, c.x)), Y - length * mask * (Y - X) + 0.7 * C, atol=1e-12)
    np.testing.assert_allclose(y.combine("prediction"), Y[mask], atol=1e-12)
    assert form.distance(c, at) == pytest.approx(np.linalg.norm(C - Y), rel=1e-7)


@pytest.mark.parametrize("make_form", FORMS)
def test_an_estimate_knows_its_entries_at_the_known_places(make_form):
    _, mask, loss = problem()
    x = low_rank(0)
    estimate = make_form(loss).estimate(x)
    np.testing.assert_allclose(estimate.prediction, x.to_array()[mask], atol=1e-13)
    assert estimate.point.x is x


def test_terms_that_cancel_are_left_out():
    form = FactoredForm(problem()[2])
    a, b = (form.estimate(low_rank(seed)) for seed in range(2))
    assert (a + 0.5 * (b - b)).terms == {a: 1.0}
    assert (a - a).terms == {}
    assert (2.0 * a + b - a).terms == {a: 1.0, b: 1.0}


def test_a_sparse_matrix_beside_low_rank_ones_multiplies_as_their_sum():
    X, mask, loss = problem()
    terms = [(0.5, low_rank(1)), (-2.0, low_rank(2, rank=3))]
    Z = SparsePlusLowRank(loss.observed.sparse(loss.observed.values), terms)
    plain = mask * X + sum(c * x.to_array() for c, x in terms)
    assert Z.shape == (9, 7)
    np.testing.assert_allclose(dense(Z), plain, atol=1e-12)
    np.testing.assert_allclose(Z.T @ np.eye(9), plain.T, atol=1e-12)


def test_norms_of_combinations_are_those_of_dense_matrices():
    terms = [(1.5, low_rank(0)), (-0.5, low_rank(1, rank=4)), (3.0, LowRank.zeros((9, 7), like=np.zeros(1)))]
    expected = np.linalg.norm(sum(c * x.to_array() for c, x in terms))
    assert combined_norm(terms) == pytest.approx(expected, rel=1e-12)
    x = low_rank(3)
    assert combined_norm([(1.0, x), (-1.0, x)]) <= 1e-7 * np.linalg.norm(x.to_array())
    assert combined_norm([]) == 0.0
    np.testing.assert_array_equal(
        combined([(2.0, np.ones(2)), (0.0, np.full(2, np.inf)), (1.0, np.ones(2))]), [3, 3]
    )


def test_the_dense_form_suits_matrices_of_which_much_is_known():
    assert problem(known=2 * TABLE_FROM)[2].observed.suits_dense
    assert not problem(known=TABLE_FROM / 2)[2].observed.suits_dense
