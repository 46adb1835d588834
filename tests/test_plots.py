"""What `.plot()` draws is what was fitted."""

import itertools
import sys

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from ell12 import L1, L12, L12ClassifierCV, L12CoxRegressorCV, L12RegressorCV, StabilitySelection, l12_path
from ell12.completion import completion_path
from ell12.plots import plot_completion_path, plot_intervals, plot_path, plot_stability
from ell12.selection import Intervals

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 12))
    return X, X[:, 2] - 2 * X[:, 5] + 0.5 * random.standard_normal(60)


def curves(axes):
    return {line.get_label(): np.asarray(line.get_xydata()) for line in axes.get_lines()}


def test_a_feature_has_one_colour_in_all_pictures_of_up_to_ten_features():
    ends = np.arange(1.0, 11.0)
    pictures = [plot_path([1.0, 0.1], np.outer(sizes, [0.0, 1.0]), n_labels=10) for sizes in (ends, ends[::-1])]
    colours = [{line.get_label(): line.get_color() for line in axes.get_lines()} for axes in pictures]
    assert list(colours[0]) == list(colours[1])[::-1]
    assert colours[0] == colours[1]
    assert len(set(colours[0].values())) == 10


def test_a_path_is_drawn_as_it_is(data):
    alphas, coefs, _ = l12_path(*data, alphas=15)
    axes = plot_path(alphas, coefs, n_labels=3)
    drawn = curves(axes)
    largest = np.argsort(-np.abs(coefs[:, -1]))[:3]
    assert [label for label in drawn if not label.startswith("_")] == [str(j) for j in largest]
    for j in largest:
        np.testing.assert_array_equal(drawn[str(j)], np.stack([alphas, coefs[j]], axis=1))
    assert len(axes.get_lines()) == np.any(coefs != 0, axis=1).sum()
    assert axes.get_xscale() == "log"
    assert axes.xaxis_inverted()

    given = plt.figure().add_subplot()
    assert plot_path(alphas, coefs, names=[f"feature {j}" for j in range(12)], axes=given) is given
    assert "feature 5" in curves(given)


def test_a_strength_of_zero_has_a_linear_axis_and_nothing_to_label_no_legend():
    axes = plot_path([1.0, 0.5, 0.0], np.array([[0.0, 1.0, 2.0]]), n_labels=0)
    assert axes.get_xscale() == "linear"
    assert axes.get_legend() is None
    assert plot_path([1.0, 0.5], np.zeros((3, 2))).get_legend() is None


@pytest.mark.parametrize("selection", ["min", "1se"])
@pytest.mark.parametrize("classes", [False, True])
def test_the_curve_of_cross_validation_and_what_it_marks(data, selection, classes):
    X, y = data
    model = (L12ClassifierCV if classes else L12RegressorCV)(alphas=8, eps=0.05, selection=selection)
    axes = model.fit(X, y > 0 if classes else y).plot()
    scores, sign = (model.scores_, 1) if classes else (-model.mse_path_, -1)
    means, drawn = scores.mean(axis=1), curves(axes)
    np.testing.assert_allclose(drawn["mean of the folds"][:, 1], sign * means)
    marked = {label.split(",")[0].split()[0]: {*xy[:, 0]} for label, xy in drawn.items() if "alpha" in label}
    best = model.alphas_[np.argmax(means)]
    assert marked == {"chosen": {model.alpha_}} | ({"best": {best}} if best != model.alpha_ else {})
    band = axes.collections[0].get_paths()[0].vertices
    error = scores.std(axis=1, ddof=1) / np.sqrt(5)
    assert band[:, 1].max() == pytest.approx((sign * means + error).max())


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (L12RegressorCV(loss="poisson"), "Poisson's deviance"),
        (L12RegressorCV(loss="huber"), "twice Huber's loss"),
        (L12CoxRegressorCV(), "concordance"),
        (L12CoxRegressorCV(scoring=None), "log-likelihood of an event"),
        (L12ClassifierCV(scoring="accuracy"), "accuracy"),
        (L12ClassifierCV(), "minus the logistic loss"),
    ],
)
def test_the_curve_is_called_what_the_folds_were_judged_by(data, model, label):
    X, y = data
    y = y > 0 if isinstance(model, L12ClassifierCV) else np.round(np.exp(y / 9)) if "Poisson" in label else y
    assert model.set_params(alphas=3, eps=0.2, cv=2).fit(X, y).plot().get_ylabel() == label


def test_wrong_arguments_and_what_to_install_are_named(monkeypatch):
    with pytest.raises(ValueError, match=r"names must hold one name for each of the 3 features"):
        plot_path([1.0, 2.0], np.zeros((3, 2)), names=["a"])
    with pytest.raises(ValueError, match="not fitted"):  # scikit-learn's NotFittedError is one
        L12RegressorCV().plot()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="extra plots"):
        plot_path([1.0], np.ones((1, 1)))


def test_a_completion_path_marks_its_least_error():
    random = np.random.default_rng(1)
    X = random.standard_normal((20, 2)) @ random.standard_normal((2, 15)) + 0.1 * random.standard_normal((20, 15))
    path = completion_path(X, alphas=5)
    axes = path.plot()
    drawn = curves(axes)
    np.testing.assert_array_equal(drawn["error"], np.stack([path.alphas, path.errors], axis=1))
    marked = next(xy for label, xy in drawn.items() if label.startswith("least"))
    np.testing.assert_array_equal(marked, [[path.alphas[path.best], path.errors.min()]])
    other_axes = next(other for other in axes.figure.axes if other is not axes)
    np.testing.assert_array_equal(other_axes.get_lines()[0].get_ydata(), path.ranks)
    without = completion_path(np.outer(np.arange(1.0, 9), np.arange(1.0, 7)), alphas=3, held_out=0)
    assert plot_completion_path(without).get_lines() == []


def test_every_penalty_has_a_line_and_one_standard_error_is_drawn(data):
    X, y = data
    model = L12RegressorCV(penalty=[L1(), L12(l2_weight=0.5), L12()], alphas=6, cv=3, selection="1se").fit(X, y)
    drawn = curves(model.plot())
    for penalty, alphas, errors in zip(model.penalty, model.alphas_, model.mse_path_, strict=True):
        line = np.stack([alphas, errors.mean(axis=1)], axis=1)
        np.testing.assert_array_equal(drawn[repr(penalty)], line)
    level = next(xy for label, xy in drawn.items() if label.startswith("one standard error"))
    assert level[0, 1] == pytest.approx(model.mse_path_.mean(axis=2).min() + model.standard_error_)
    assert not any(label.startswith("one") for label in curves(model.set_params(selection="min").fit(X, y).plot()))


def test_a_criterion_is_drawn_by_its_name(data):
    for penalty in (L12(), [L12(l2_weight=0.5), L12()]):
        model = L12RegressorCV(penalty=penalty, selection="bic", alphas=8).fit(*data)
        axes = model.plot()
        assert axes.get_ylabel() == "BIC"
        assert any(f"alpha = {model.alpha_:.3g}" in text.get_text() for text in axes.get_legend().get_texts())


def intervals(size=50):
    estimate, error = np.random.default_rng(0).standard_normal(size), np.full(size, 0.5)
    estimate[3] = np.nan
    names, ends = [f"feature with a rather long name {k}" for k in range(size)], (estimate - 1, estimate + 1)
    p_values = np.exp(-np.abs(estimate))
    return Intervals(np.arange(size), names, 0 * error, estimate, error, *ends, p_values, 0.95, "nodewise", 1.0)


def test_the_smallest_p_values_come_first_with_names_that_fit():
    found = intervals()
    axes = plot_intervals(found)
    order = np.argsort(np.where(np.isnan(found.p_values), 2, found.p_values))[:30]
    drawn = np.concatenate([line.get_xdata() for line in axes.lines if line.get_marker() == "o"])
    np.testing.assert_array_equal(np.sort(drawn), np.sort(found.estimate[order]))
    assert all(len(label.get_text()) <= 24 for label in axes.get_yticklabels())
    axes.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(above.y0 >= below.y1 for above, below in itertools.pairwise(boxes))
    assert len(plot_intervals(intervals(), n_features=3).get_yticks()) == 3
    assert len(intervals(4).plot().get_yticks()) == 3
    with pytest.raises(ValueError, match="n_features"):
        plot_intervals(intervals(), n_features=0)


@pytest.mark.parametrize("estimator", [None, Lasso(0.1)])
def test_frequencies_and_the_threshold_are_drawn_and_the_selected_features_named(data, estimator):
    found = StabilitySelection(estimator, n_subsamples=6, most_selected=4, random_state=0).fit(*data)
    axes = found.plot()
    lines = {label: xy[:, 1] for label, xy in curves(axes).items()}
    chosen = found.get_support(indices=True)
    assert set(lines) >= {f"x{j}" for j in chosen} | {"threshold, 0.7"}
    assert set(lines["threshold, 0.7"]) == {0.7}
    for j in chosen:
        expected = found.frequencies_[[j]] if estimator else found.path_frequencies_[:, j]
        np.testing.assert_array_equal(lines[f"x{j}"], expected)
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(legend) == chosen.size + 1
    assert len(axes.get_lines()) - 1 == np.count_nonzero(found.frequencies_)
    given = plt.figure().add_subplot()
    assert plot_stability(found, axes=given, n_labels=1) is given
    assert len(given.get_legend().get_texts()) == 2
