"""The searches for counterexamples find one where there is one; what is said of methods and curves is measured."""

import math

import numpy as np
import pytest

from ell12_paper import judges
from ell12_paper.comparisons import Outcome
from ell12_paper.studies import convergence, level_curves, prox_race, theory
from ell12_paper.trials import Trials


@pytest.mark.parametrize("study", theory.MEASURES)
def test_no_proposition_is_violated(study):
    found = theory.measure({"study": study, "problems": 5, "seed": 1})
    assert (found["violations"], found["worst"] < 1e-12) == (0, True)


def test_a_wrong_proximal_step_is_found(monkeypatch):
    monkeypatch.setattr(theory, "prox_l12", lambda z, t, axis=None: np.sign(z) * np.maximum(abs(z) - t, 0))
    monkeypatch.setattr(theory, "prox_l12_spectral", lambda Z, t: 0.9 * Z)
    for study in theory.MEASURES:
        assert theory.measure({"study": study, "problems": 20, "seed": 0})["violations"] > 0


def measured(study, **settings):
    """Rows of some trials of a study, as a run would have them."""
    asked = [s for s in theory.trials("quick", 0) if s["study"] == study and settings.items() <= s.items()]
    rows = tuple({"settings": s, "results": theory.measure(s)} for s in asked)
    return {theory.NAME: Trials(rows)}


def test_nmapg_converges_and_admm_moves_on():
    (reading,) = judges.converges(measured(convergence.CONVERGENCE, i=0, repeat=0))
    assert reading.outcome is Outcome.HOLDS
    (reading,) = judges.admm_moves_on(measured(convergence.ADMM))
    assert reading.outcome is Outcome.HOLDS


def test_global_minima_are_proved_where_columns_differ_and_refuted_where_they_are_alike():
    rows = measured(convergence.GLOBAL, nonzero=5, part=0.1)
    counts = {d: judges.counted_minima(rows[theory.NAME].where(draws=d)) for d in convergence.DRAWS}
    assert counts["one draw per entry"]["nmAPG"] == (2, 0)
    assert counts["one draw per row"]["nmAPG"][1] > 0
    assert [r.outcome for r in judges.global_minima(rows)] == [Outcome.HOLDS, Outcome.FAILS]


@pytest.mark.parametrize(("power", "outcome"), [(1.0, Outcome.HOLDS), (1.5, Outcome.FAILS)])
def test_growth_is_a_slope(power, outcome):
    def row(varied, value):
        return {"settings": {"study": "matrix step", "varied": varied, varied: value, "repeat": 0},
                "results": {"seconds": 1e-6 * value**power}}  # fmt: skip

    rows = {theory.NAME: Trials(tuple(row("known", value) for value in (100, 200, 400)))}
    (reading,) = judges.grows_as_said(rows)
    assert (reading.outcome, reading.brief) == (outcome, f"slope {power:.2f}")


@pytest.mark.parametrize("case", prox_race.CASES)
def test_both_proximal_methods_reach_the_minimum(case):
    t = prox_race.threshold(case, 1000)
    settings = {"d": 1000, "case": case, "threshold": t, "repeat": 0, "seed": 2}
    closed, numerical = (prox_race.measure(settings | {"method": m}) for m in ("closed-form", "numerical"))
    z = np.random.default_rng(2).standard_normal(1000)
    assert closed["n_nonzero"] == np.count_nonzero(abs(z) > t)
    radius = np.linalg.norm(np.maximum(abs(z) - t, 0)) + t
    minimum = pytest.approx(0.5 * z @ z - 0.5 * radius**2, rel=1e-9)
    assert (closed["value"], numerical["value"]) == (minimum, minimum)
    assert (closed["n_iter"], numerical["n_iter"] > 1) == (1, True)
    assert 0 < closed["copy_seconds"] < closed["seconds"] < math.inf


def test_level_curves_are_the_penalties_on_the_grid():
    x, y = np.meshgrid(np.linspace(-1, 1, 81), np.linspace(-1, 1, 81))
    expected = {
        "l1": abs(x) + abs(y),
        "capped l1": np.minimum(abs(x), 0.5) + np.minimum(abs(y), 0.5),
        "l_p": np.sqrt(abs(x)) + np.sqrt(abs(y)),
        "log-sum": np.log(1 + abs(x) / 0.1) + np.log(1 + abs(y) / 0.1),
        "l1-2": abs(x) + abs(y) - np.hypot(x, y),
    }
    trials = level_curves.trials("quick", 0)
    assert [settings["penalty"] for settings in trials] == list(expected)
    for settings in trials:
        results = level_curves.measure(settings)
        np.testing.assert_allclose(results["axis"], x[0], atol=1e-12)
        np.testing.assert_allclose(results["values"], expected[settings["penalty"]], atol=6e-7)
