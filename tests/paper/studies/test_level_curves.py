"""What the study of level curves measures."""

import numpy as np

from ell12_paper.studies import level_curves


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
