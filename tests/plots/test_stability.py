"""Pictures of stability selection: that what is drawn is what was found."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from ell12 import StabilitySelection, plot_stability

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("estimator", [None, Lasso(0.1)])
def test_frequencies_and_the_threshold_are_drawn_and_the_selected_features_named(estimator):
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 12))
    y = X[:, 2] - 2 * X[:, 5] + 0.5 * random.standard_normal(40)
    found = StabilitySelection(estimator, n_subsamples=6, most_selected=4, random_state=0).fit(X, y)
    axes = found.plot()
    lines = {line.get_label(): np.asarray(line.get_ydata()) for line in axes.get_lines()}
    chosen = found.get_support(indices=True)
    assert set(lines) >= {f"x{j}" for j in chosen} | {"threshold, 0.7"}
    assert set(lines["threshold, 0.7"]) == {0.7}
    for j in chosen:
        expected = found.frequencies_[[j]] if estimator else found.path_frequencies_[:, j]
        np.testing.assert_array_equal(lines[f"x{j}"], expected)
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(legend) == chosen.size + 1
    if estimator is None:
        assert len(lines) - 1 == np.count_nonzero(found.frequencies_)
    given = plt.figure().add_subplot()
    assert plot_stability(found, axes=given, n_labels=1) is given
    assert len(given.get_legend().get_texts()) == 2
