"""Matrices by a sequence of convex problems, against the printed steps on dense matrices."""

from itertools import pairwise

import numpy as np

from ell12 import Observed, SpectralL12, minimize
from ell12.completion import CompletionLoss
from ell12_paper.rivals import MatrixDCA


def problem(seed=0, shape=(20, 15), rank=2, known=0.6):
    random = np.random.default_rng(seed)
    X = random.standard_normal((shape[0], rank)) @ random.standard_normal((rank, shape[1]))
    X += 0.1 * random.standard_normal(shape)
    mask = random.random(shape) < known
    return np.where(mask, X, 0), mask, CompletionLoss(Observed.from_mask(X, mask))


def singular_values_shrunk(Z, alpha):
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    return U @ np.diag(np.maximum(s - alpha, 0)) @ Vt


def some_iterates(solver, loss, penalty, count):
    found = []
    for iterate in solver.iterates(loss, penalty, loss.point(loss.start())):
        if iterate is not None:
            found.append(iterate)
        if len(found) == count:
            return found
    raise AssertionError("the solver ended early")


def test_dca_solves_a_convex_problem_between_two_iterates():
    B, mask, loss = problem()
    alpha = 1.5
    found = some_iterates(MatrixDCA(inner_tol=1e-7, inner_max_iter=5000), loss, SpectralL12(alpha), 6)
    for before, after in pairwise(found):
        X, Y = before.point.x.to_array(), after.point.x.to_array()
        step = Y - mask * (Y - B) + alpha * X / np.linalg.norm(X)
        np.testing.assert_allclose(singular_values_shrunk(step, alpha), Y, atol=1e-4)
        assert after.objective <= before.objective + 1e-9


def test_without_a_subtracted_norm_it_solves_the_convex_problem():
    B, mask, loss = problem()
    penalty = SpectralL12(1.0, 0.0)
    X = minimize(loss, penalty, solver=MatrixDCA(), tol=1e-7, max_iter=5000).x.to_array()
    np.testing.assert_allclose(singular_values_shrunk(X - mask * (X - B), 1.0), X, atol=1e-5)
