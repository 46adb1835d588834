"""Options of a run."""

import itertools

import numpy as np
import pytest

from ell12 import L12, NonmonotoneAPG, Run, SquaredLoss, Status, minimize
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
            from dataclasses import replace

            for k, iterate in zip(
                itertools.count(1), NonmonotoneAPG().iterates(loss, penalty, start), strict=False
            ):
                yield replace(iterate, method="Second" if k >= 3 else "")

    result = minimize(LOSS, L12(0.1), solver=Chain(), tol=0, max_iter=5)
    assert result.solver == "Chain, Second from 3 on"
