"""What the study of compressed sensing measures."""

import itertools
import time
from collections import Counter

import numpy as np
import pytest

from ell12 import L12, SquaredLoss, datasets, stationarity
from ell12_paper.studies import compressed_sensing


def test_the_paper_preset_has_the_size_of_the_paper():
    trials = compressed_sensing.trials("paper", 5)
    assert {settings["n_samples"] for settings in trials} == {500}
    assert {settings["seed"] for settings in trials} == set(range(5, 15))
    assert {settings["alpha"] for settings in trials} == {0.01, 0.0025, 0.000625, 0.00015625, 0.0000390625}
    assert repeats_of(trials) == {
        (i, m): 3 if m == "DCA(rho=1)" and i >= 2 else 10
        for i, m in itertools.product(range(5), compressed_sensing.METHODS)
    }


def repeats_of(trials):
    """How often each method is run at each i of either setup."""
    counts = {setup: Counter() for setup in compressed_sensing.SETUPS}
    for settings in trials:
        counts[settings["setup"]][settings["i"], settings["method"]] += 1
    first, *others = counts.values()
    assert all(other == first for other in others)
    return first


@pytest.mark.parametrize("method", compressed_sensing.METHODS)
def test_compressed_sensing_measures_what_it_says(method):
    settings = {"setup": "calibrated", "i": 1, "alpha": 0.0025, "repeat": 0, "method": method, "n_samples": 30}
    settings |= {"seed": 4, "tol": 1e-3, "max_cpu_seconds": 60.0, "max_iter": None}
    results = compressed_sensing.measure(settings)
    assert results["status"] == "CONVERGED"
    assert results["stationarity"] <= 1e-3
    history = results["history"]
    assert len(history["objective"]) == len(history["rmse"]) == len(history["cpu_seconds"]) <= 150
    assert history["cpu_seconds"][-1] == pytest.approx(results["cpu_seconds"])
    assert history["cpu_seconds"][0] == pytest.approx(results["setup_seconds"])
    assert history["objective"][-1] == pytest.approx(results["objective"], rel=1e-9)
    assert history["rmse"][-1] == pytest.approx(results["rmse"], rel=1e-9)
    problem = datasets.compressed_sensing(4, setup="calibrated", n_samples=30)
    assert history["objective"][0] == pytest.approx(0.5 * problem.b @ problem.b)
    assert (history["rmse"][0], 0 < results["rmse"] < 1) == (1.0, True)
    # Of two minimisers of different problems each must be no stationary point of the other problem.
    l2_weight = 0.0 if method == "FISTA" else 1.0
    twin = compressed_sensing.measure(settings | {"method": "FISTA" if l2_weight else "nmAPG(closed-form)"})
    assert (results["objective"] > twin["objective"]) == (method == "FISTA")


def test_a_method_ends_at_its_limits():
    settings = compressed_sensing.trials("quick", 0)[-1] | {"n_samples": 20, "method": "SCP"}
    by_steps = compressed_sensing.measure(settings | {"max_iter": 5})
    assert (by_steps["status"], by_steps["n_iter"]) == ("MAX_ITER", 5)
    assert len(by_steps["history"]["objective"]) == 6
    by_time = compressed_sensing.measure(settings | {"max_iter": None, "max_cpu_seconds": 0.0})
    assert (by_time["status"], by_time["n_iter"]) == ("STOPPED", 1)
    assert by_time["stationarity"] > settings["tol"]


def test_a_busy_machine_does_not_cut_a_run_off(monkeypatch):
    clock = itertools.count(step=1000.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    settings = compressed_sensing.trials("quick", 0)[-1] | {"n_samples": 20, "i": 0, "alpha": 0.01}
    assert compressed_sensing.measure(settings)["status"] == "CONVERGED"


def test_the_objective_and_stationarity_are_those_of_the_problem():
    settings = compressed_sensing.trials("quick", 0)[0] | {"n_samples": 20, "method": "DCA", "max_iter": 1}
    results = compressed_sensing.measure(settings)
    problem = datasets.compressed_sensing(0, n_samples=20)
    loss, penalty = SquaredLoss(problem.A, problem.b), L12(0.01)
    x = penalty.prox(problem.A.T @ problem.b / loss.lipschitz(), 1 / loss.lipschitz())  # DCA's first step
    assert results["objective"] == pytest.approx(loss.value(loss.point(x)) + penalty.value(x), rel=1e-12)
    assert results["stationarity"] == pytest.approx(stationarity(loss, penalty, x), rel=1e-9)
    assert results["n_nonzero"] == np.count_nonzero(x)
    assert results["rmse"] == pytest.approx(np.linalg.norm(x - problem.x) / np.linalg.norm(problem.x))


def test_early_is_the_first_small_relative_change():
    objective = np.array([8.0, 4.0, 4.0 - 5e-6, 4.0 - 6e-6, 4.0 - 6e-6])
    history = {"cpu_seconds": np.arange(5.0), "objective": objective, "rmse": 1 / (1 + np.arange(5.0))}
    early = compressed_sensing._early(history)
    assert early == {"n_iter": 3, "cpu_seconds": 3.0, "objective": 4.0 - 6e-6, "rmse": 0.25}
    assert compressed_sensing._early({name: values[:3] for name, values in history.items()}) is None
