"""Options of a run, and its result."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from ell12 import FISTA, L12, LowRank, NonmonotoneAPG, Result, Run, SquaredLoss, Status, minimize
from ell12.protocols import Solver

LOSS = SquaredLoss(np.random.default_rng(0).standard_normal((20, 40)), np.ones(20))


def solve(run, **options):
    return minimize(LOSS, L12(0.1), solver=NonmonotoneAPG(step=0.01), tol=0, max_iter=50, run=run, **options)


@pytest.mark.parametrize("ending", ["true", "StopIteration"])
def test_a_callback_ends_a_run(ending):
    counts = iter(range(4))

    def callback(history):
        n = next(counts) if ending == "StopIteration" else len(history["objective"]) - 2
        return n == 4

    result = solve(Run(callback=callback))
    assert (result.status, result.n_iter) == (Status.STOPPED, 5)


def test_a_verbose_run_prints_and_a_quiet_one_does_not(capsys):
    solve(Run())
    assert capsys.readouterr().out == ""
    solve(Run(verbose=True))
    assert capsys.readouterr().out.startswith("ell12: iteration 1, objective ")


def test_another_solver_that_takes_over_is_named():
    class Chain(Solver):
        def iterates(self, loss, penalty, start):
            for k, iterate in zip(
                itertools.count(1), NonmonotoneAPG().iterates(loss, penalty, start), strict=False
            ):
                yield replace(iterate, method="Second" if k >= 3 else "")

    result = minimize(LOSS, L12(0.1), solver=Chain(), tol=0, max_iter=5)
    assert result.solver == "Chain, Second from 3 on"


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
