"""The trials that each study plans: none twice, and at the paper's size the paper's."""

from collections import Counter
from itertools import product

import pytest

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from ell12_paper import PRESETS, STUDIES, study
from ell12_paper.rows import key_of
from ell12_paper.studies import compressed_sensing, denoising, image_completion


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
