"""Lines of progress, counted."""

import numpy as np
import pytest

from ell12 import L12, NonmonotoneAPG, Run, SquaredLoss, minimize
from ell12.minimization.progress import progress_lines


@pytest.mark.parametrize(("every", "iterations"), [(1, [1, 2, 3, 4, 5]), (2, [1, 2, 4]), (100, [1])])
def test_lines_come_at_the_first_iteration_and_at_every_multiple(capsys, every, iterations):
    stop = progress_lines("fit", every)
    loss = SquaredLoss(np.eye(3), [1.0, 2.0, 3.0])
    result = minimize(loss, L12(0.1), solver=NonmonotoneAPG(step=0.1), tol=0, max_iter=5, run=Run(callback=stop))
    assert result.n_iter == 5  # it never stops a run
    lines = [line for line in capsys.readouterr().out.splitlines() if "iteration 0" not in line]
    assert [int(line.split()[2].rstrip(",")) for line in lines] == iterations
    for line, k in zip(lines, iterations, strict=True):
        assert line.startswith(
            f"fit: iteration {k}, objective {result.history['objective'][k]:.6g}, stationarity about"
        )
