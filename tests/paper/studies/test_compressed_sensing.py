"""What the study of compressed sensing measures, and that of what the paper leaves open; what all studies plan."""

import itertools
import time
from collections import Counter
from itertools import product

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from ell12 import L12, SquaredLoss, datasets, stationarity
from ell12_paper import PRESETS, STUDIES, study
from ell12_paper.rows import key_of
from ell12_paper.studies import compressed_sensing, dca_variants, denoising, image_completion


@pytest.mark.parametrize("method", compressed_sensing.METHODS)
def test_compressed_sensing_measures_what_it_says(method):
    settings = {"setup": "calibrated", "i": 1, "alpha": 0.0025, "repeat": 0, "method": method, "n_samples": 30}
    settings |= {"seed": 4, "tol": 1e-3, "max_cpu_seconds": 60.0, "max_iter": None}
    results = compressed_sensing.measure(settings)
    assert results["status"] == "CONVERGED"
    assert results["stationarity"] <= 1e-3
    history = results["history"]
    assert len(history["objective"]) == len(history["rmse"]) == len(history["cpu_seconds"]) <= 150
    assert history["cpu_seconds"][0] == pytest.approx(results["setup_seconds"])
    for name in ("cpu_seconds", "objective", "rmse"):
        assert history[name][-1] == pytest.approx(results[name], rel=1e-9)
    problem = datasets.compressed_sensing(4, setup="calibrated", n_samples=30)
    assert history["objective"][0] == pytest.approx(0.5 * problem.b @ problem.b)
    assert (history["rmse"][0], 0 < results["rmse"] < 1) == (1.0, True)
    # Of two minimisers of different problems each must be no stationary point of the other problem.
    l2_weight = 0.0 if method == "FISTA" else 1.0
    other = compressed_sensing.measure(settings | {"method": "FISTA" if l2_weight else "nmAPG(closed-form)"})
    assert (results["objective"] > other["objective"]) == (method == "FISTA")


def test_a_method_ends_at_its_limits_of_steps_and_of_processor_time_alone(monkeypatch):
    settings = compressed_sensing.trials("quick", 0)[-1] | {"n_samples": 20, "method": "SCP"}
    by_steps = compressed_sensing.measure(settings | {"max_iter": 5})
    assert (by_steps["status"], by_steps["n_iter"], len(by_steps["history"]["objective"])) == ("MAX_ITER", 5, 6)
    by_time = compressed_sensing.measure(settings | {"max_iter": None, "max_cpu_seconds": 0.0})
    assert (by_time["status"], by_time["n_iter"]) == ("STOPPED", 1)
    clock = itertools.count(step=1000.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))  # a busy machine
    assert compressed_sensing.measure(settings | {"i": 0, "alpha": 0.01})["status"] == "CONVERGED"


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
    early = compressed_sensing.early_end(history)
    assert early == {"n_iter": 3, "cpu_seconds": 3.0, "objective": 4.0 - 6e-6, "rmse": 0.25}
    assert compressed_sensing.early_end({name: values[:3] for name, values in history.items()}) is None


def measured(name, i, **small):
    chosen = [s | small for s in dca_variants.trials("quick", 0) if (s["study"], s["i"]) == (name, i)]
    return {s["method"]: dca_variants.measure(s) for s in chosen if s["setup"] != "stated" and s["repeat"] == 0}


def test_every_variant_of_dca_reaches_the_same_stationary_point():
    found = measured(dca_variants.SENSING, 2, n_samples=30)
    assert found.keys() == dca_variants.SENSING_VARIANTS.keys()
    assert {results["status"] for results in found.values()} == {"CONVERGED"}
    objectives = [results["objective"] for results in found.values()]
    assert max(objectives) == pytest.approx(min(objectives), rel=1e-5)


def test_every_variant_of_denoising_lowers_the_same_objective():
    found = measured(dca_variants.DENOISING, 4, size=16)
    assert found.keys() == dca_variants.DENOISING_VARIANTS.keys()
    assert all(results["status"] == "CONVERGED" for results in found.values())
    accurate = [r["objective"] for name, r in found.items() if name.startswith("to 1e-6")]
    assert max(accurate) == pytest.approx(min(accurate), rel=1e-4)
    assert all(r["objective"] > min(accurate) * (1 - 1e-9) for n, r in found.items() if n.startswith("AltMin"))


def test_the_earlier_code_stops_at_a_small_change_and_takes_shorter_steps():
    found = measured(dca_variants.EARLIER, 1, n_samples=30)
    assert found.keys() == dca_variants.EARLIER_STEPS.keys()
    assert not any(results["is_limited"] for results in found.values())
    problem = datasets.compressed_sensing(0, setup="calibrated", n_samples=30)
    loss = SquaredLoss(problem.A, problem.b)
    steps = [dca_variants.EARLIER_STEPS[m](loss).step * loss.lipschitz() for m in ("SCP", "FISTA")]
    assert steps == pytest.approx([1 / 1.15, 1 / 1.5])
    assert compressed_sensing.is_met([2.0, 1.0, 1.0 - 5e-5], 1e-4)
    assert not compressed_sensing.is_met([2.0, 1.0, 1.0 - 2e-4], 1e-4)


@pytest.mark.parametrize(("name", "preset"), list(product(STUDIES, PRESETS)))
def test_no_trial_is_planned_twice_and_the_seed_changes_the_problems(name, preset):
    keys, others = ({key_of(name, s) for s in study(name).trials(preset, seed)} for seed in (0, 100))
    assert len(keys) == len(study(name).trials(preset, 0))
    assert name == "level-curves" or not keys & others


def test_compressed_sensing_is_the_papers():
    trials = compressed_sensing.trials("paper", 5)
    assert {settings["n_samples"] for settings in trials} == {500}
    assert {settings["seed"] for settings in trials} == set(range(5, 15))
    assert {settings["alpha"] for settings in trials} == {0.01, 0.0025, 0.000625, 0.00015625, 0.0000390625}
    for setup in compressed_sensing.SETUPS:
        assert Counter((s["i"], s["method"]) for s in trials if s["setup"] == setup) == {
            (i, m): 3 if m == "DCA(rho=1)" and i >= 2 else 10
            for i, m in product(range(5), compressed_sensing.METHODS)
        }


def test_completion_is_the_papers_and_every_method_is_tuned_by_its_own_parameter():
    trials = image_completion.trials("paper", 0)
    table = [s for s in trials if s["study"] == "table"]
    assert {(s["size"], s["rank"], s["alpha_factor"]) for s in table} == {(512, 200, 0.1)}
    assert len(table) == 5 * 3 * len(image_completion.IN_TABLE)
    path = [s for s in trials if s["study"] == "path" and s["image"] == "Sea"]
    for method in image_completion.ALONG_PATH:
        chosen = [s for s in path if s["method"] == method]
        varied = {name for name in ("alpha_factor", "rank") if len({s[name] for s in chosen}) > 1}
        assert varied == {image_completion.METHODS[method].setting}
        assert len({(s["max_cpu_seconds"], s["size"]) for s in chosen}) == 1  # one budget for all


def test_denoising_is_the_papers():
    trials = [s for s in denoising.trials("paper", 3) if s["study"] == "strengths"]
    papers = [s for s in trials if s["setup"] == "standard deviation" and s["method"] in ("DCA", "AltMin")]
    assert len(papers) == 5 * 3 * 64 * 2
    added = [s for s in trials if s["setup"] == "variance" or s["method"] == denoising.ACCURATE]
    assert {s["i"] for s in added} == {1, 2, 4, 8, 16, 32, 64}
    assert {(s["size"], s["seed"]) for s in trials} == set(product((512,), range(3, 8)))
    assert sorted({round(s["alpha"], 9) for s in trials}) == [round(0.02 * i, 9) for i in range(1, 65)]
    assert {round(s["noise"] ** 2, 9) for s in trials} == {0.0025, 0.05}
