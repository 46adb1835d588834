"""Columns read a few at a time: the same numbers as a matrix in memory."""

import numpy as np
import pytest

from ell12 import L12, SquaredLoss, minimize
from ell12.operators.centering import CenteredColumns
from ell12.operators.sources import Columns


@pytest.fixture
def genotypes():
    return np.asfortranarray(np.random.default_rng(0).integers(0, 3, (40, 300)).astype(np.int8))


def test_products_are_those_of_the_matrix(genotypes, monkeypatch):
    monkeypatch.setattr("ell12.operators.sources.PIECE", 40 * 7)
    random = np.random.default_rng(1)
    X, dense, few = Columns(genotypes), genotypes.astype(float), np.zeros(300)
    few[[3, 200]] = 1.5
    for x in (few, random.standard_normal(300), random.standard_normal((300, 4))):
        np.testing.assert_allclose(X @ x, dense @ x, rtol=1e-12, atol=1e-12)
    for y in (random.standard_normal(40), random.standard_normal((40, 4))):
        np.testing.assert_allclose(X.T @ y, dense.T @ y, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(X.select_columns([2, 7]), dense[:, [2, 7]])
    np.testing.assert_allclose(X[[5, 1]] @ few, dense[[5, 1]] @ few)


def test_a_fit_reads_the_columns_few_times_and_finds_what_it_finds_in_memory(genotypes):
    b = genotypes[:, :5].sum(axis=1) - 5.0
    means = genotypes.mean(axis=0)
    X = Columns(genotypes)
    there, here = SquaredLoss(CenteredColumns(X, means), b), SquaredLoss(genotypes - means, b)
    strength = 0.2 * np.abs(here.gradient(here.point(np.zeros(300)))).max()
    penalty = L12(strength, l2_weight=0.0)
    found = minimize(there, penalty, tol=1e-8)
    assert found.converged
    assert X.reads <= 10
    np.testing.assert_allclose(found.x, minimize(here, penalty, tol=1e-8).x, atol=1e-10)


def test_what_is_no_source_is_refused():
    with pytest.raises(TypeError, match=r"block\(first, last\)"):
        Columns(3)
