"""The variants of DCA solve the same problems."""

import pytest

pytest.importorskip("skimage", reason="the photographs need the extra 'images'")

from ell12_paper.studies import dca_variants as study


def small(settings):
    return settings | ({"n_samples": 30} if settings["study"] == study.SENSING else {"size": 24})


def measured(name, i):
    chosen = [s for s in study.trials("quick", 0) if (s["study"], s["i"]) == (name, i)]
    return {s["method"]: study.measure(small(s)) for s in chosen}


def test_every_variant_reaches_the_same_stationary_point():
    found = measured(study.SENSING, 2)
    assert found.keys() == study.SENSING_VARIANTS.keys()
    assert {results["status"] for results in found.values()} == {"CONVERGED"}
    lowest = min(results["objective"] for results in found.values())
    assert max(results["objective"] for results in found.values()) == pytest.approx(lowest, rel=1e-5)


def test_every_variant_of_denoising_lowers_the_same_objective():
    found = measured(study.DENOISING, 4)
    assert found.keys() == study.DENOISING_VARIANTS.keys()
    assert all(results["status"] == "CONVERGED" for results in found.values())
    accurate = [r["objective"] for name, r in found.items() if name.startswith("to 1e-6")]
    assert len(accurate) == 4
    assert max(accurate) == pytest.approx(min(accurate), rel=1e-4)
    assert all(r["objective"] > min(accurate) * (1 - 1e-9) for n, r in found.items() if n.startswith("AltMin"))
