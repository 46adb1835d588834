"""What the study of the proximal step measures."""

import numpy as np
import pytest

from ell12_paper.studies import prox_race as prox_study


def test_the_paper_preset_goes_up_to_ten_million_entries():
    assert max(settings["d"] for settings in prox_study.trials("paper", 0)) == 10**7


@pytest.mark.parametrize("case", prox_study.CASES)
def test_both_proximal_methods_reach_the_same_value(case):
    t = prox_study.threshold(case, 1000)
    settings = {"d": 1000, "case": case, "threshold": t, "repeat": 0, "seed": 2}
    closed = prox_study.measure(settings | {"method": "closed-form"})
    numerical = prox_study.measure(settings | {"method": "numerical"})
    z = np.random.default_rng(2).standard_normal(1000)
    assert closed["n_nonzero"] == np.count_nonzero(abs(z) > t)
    assert closed["value"] == pytest.approx(numerical["value"], rel=1e-9)
    # The minimum in closed form: 1/2 ||z||^2 - 1/2 (||soft(z, t)|| + t)^2.
    radius = np.linalg.norm(np.maximum(abs(z) - t, 0)) + t
    assert closed["value"] == pytest.approx(0.5 * z @ z - 0.5 * radius**2, rel=1e-9)
    assert (closed["n_iter"], numerical["n_iter"] > 1) == (1, True)
    assert 0 < closed["copy_seconds"] < closed["seconds"] < numerical["seconds"]
