"""What a run found, and how it says so."""

import numpy as np
import pytest
import scipy.sparse

from ell12 import FISTA, L12, LowRank, Result, SquaredLoss, Status, minimize

HISTORY = {"seconds": [0.0, 1.25], "objective": [2.0, 1.0], "optimality": [1.0, 0.5]}


def result_of(x, status=Status.MAX_ITER):
    numbers = {"objective": 1.32, "stationarity": 0.0214, "n_iter": 500, "tol": 1e-4, "solver": "FISTA"}
    return Result(x, status=status, history=HISTORY, **numbers)


@pytest.mark.parametrize("status", Status)
def test_a_result_has_converged_with_one_status_alone(status):
    result = result_of(np.zeros(2), status)
    assert result.converged is (status is Status.CONVERGED)
    with pytest.raises(AttributeError):
        result.objective = 0.0


@pytest.mark.parametrize(
    ("x", "size"),
    [
        (np.arange(2000) % 3, "1333 of 2000 nonzero"),
        (scipy.sparse.csc_array([[1.0], [0.0]]), "1 of 2 nonzero"),
        (LowRank(np.eye(9, 2), np.ones(2), np.eye(7, 2)), "rank 2 of 9 x 7"),
    ],
)
def test_a_result_is_one_line(x, size):
    words = f"{size}, 500 iterations of FISTA, 1.2 s)"
    assert repr(result_of(x)) == f"Result(MAX_ITER: objective 1.32, stationarity 0.021 (tol 1e-04), {words}"


def test_a_result_says_what_ran_and_draws_it():
    result = minimize(SquaredLoss(np.eye(3), [3.0, -4.0, 0.5]), L12(1.0), solver=FISTA(), tol=1e-3)
    assert (result.solver, result.tol) == ("FISTA", 1e-3)
    assert len(repr(result)) <= 130
    axes = result.plot()
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), result.history["optimality"])
