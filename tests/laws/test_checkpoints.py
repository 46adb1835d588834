"""Checkpoints: a run that was cut short and goes on from its file ends where a whole run ends."""

import warnings

import numpy as np
import pytest
from tests.laws.calls import CALLS

import ell12
from ell12.minimization import Checkpoint

FRONTS = sorted(name for name, call in CALLS.items() if "run" in call.parameters)
CUT = 2  # iterations


def numbers(answer):
    """The solution in an answer, whatever it is called."""
    for name in ("coefs", "coef_", "x", "image"):
        answer = getattr(answer, name, answer)
    return answer.to_array() if hasattr(answer, "to_array") else np.asarray(answer)


@pytest.mark.parametrize("name", FRONTS)
def test_a_run_goes_on_from_its_file(name, tmp_path):
    seen = []
    tol = 1e-3 if "mri" in name or name.endswith("_tv") else 1e-7

    def solve(**run):
        return CALLS[name](tol=tol, **run)

    def cut(history):
        return len(history["objective"]) > CUT

    def watch(history):
        seen.append(len(history["objective"]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is cut short has not converged
        solve(run=ell12.Run(callback=cut, checkpoint=tmp_path / "run.npz"))
    assert list(tmp_path.glob("run*.npz"))
    resumed = Checkpoint(tmp_path / "run.npz", resume=True)
    found = numbers(solve(run=ell12.Run(callback=watch, checkpoint=resumed)))
    assert seen[0] > CUT + 1  # after the start and what was done before
    whole = numbers(solve())
    assert np.linalg.norm(found - whole) <= 10 * tol * np.linalg.norm(whole)
