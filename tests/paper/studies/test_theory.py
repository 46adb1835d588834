"""The searches for counterexamples find one where there is one."""

import numpy as np
import pytest

from ell12_paper.studies import theory


@pytest.mark.parametrize("study", theory.MEASURES)
def test_no_proposition_is_violated(study):
    found = theory.measure({"study": study, "problems": 5, "seed": 1})
    assert (found["violations"], found["worst"] < 1e-12) == (0, True)


def test_a_wrong_proximal_step_is_found(monkeypatch):
    monkeypatch.setattr(theory, "prox_l12", lambda z, t, axis=None: np.sign(z) * np.maximum(abs(z) - t, 0))
    monkeypatch.setattr(theory, "prox_l12_spectral", lambda Z, t: 0.9 * Z)
    for study in theory.MEASURES:
        assert theory.measure({"study": study, "problems": 20, "seed": 0})["violations"] > 0


def test_convergence_is_measured():
    found = theory.measure({"study": theory.CONVERGENCE, "setup": "stated", "i": 0, "seed": 0})
    assert found["stationarity"] <= 1e-8
    assert found["largest_rise"] <= 1e-12
