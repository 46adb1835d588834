"""The summary of a model: that what it says is what was fitted, whatever the model and the data are."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss

from ell12 import (
    L1,
    L12,
    Columns,
    L12Classifier,
    L12ClassifierCV,
    L12CoxRegressor,
    L12Regressor,
    L12RegressorCV,
    StabilitySelection,
    confidence_intervals,
    information_criteria,
    summary,
)
from ell12.minimization import Status
from ell12.selection import Intervals
from ell12.selection.confidence import adjusted_p_values

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 8)) * np.array([1, 100, 1, 1, 0.01, 1, 1, 1.0])
Y = X[:, 0] + 0.03 * X[:, 1] - 80 * X[:, 4] + 0.3 * RANDOM.standard_normal(60) + 2
NAMES = [f"gene {letter}" for letter in "abcdefgh"]
BOTH = L12Regressor(0.1).fit(X, np.c_[Y, X[:, 2]])
MODEL = L12Regressor(1e-4, penalty=L12(weights=[1, 100, 1, 1, 1, 1, 1, 1])).fit(X, Y)


def test_features_stand_by_their_effect_with_their_names():
    found = summary(MODEL, X, names=NAMES)
    effect = MODEL.coef_ * X.std(axis=0)
    order = [j for j in np.argsort(-np.abs(effect)) if effect[j] != 0]
    assert list(found.table["feature"]) == [NAMES[j] for j in order]
    np.testing.assert_allclose(found.table["per_sd"], effect[order])
    np.testing.assert_array_equal(found.table["coefficient"], MODEL.coef_[order])
    plain = summary(MODEL)
    assert plain.table["feature"][0] == str(np.argmax(np.abs(MODEL.coef_)))
    assert "per_sd" not in plain.table
    frame = found.table
    assert list(frame.columns) == ["feature", "coefficient", "per_sd"]
    assert len(frame) == np.count_nonzero(MODEL.coef_)


def test_weights_and_sparse_columns_have_their_own_deviations():
    weight = RANDOM.integers(0, 3, 60)
    repeated = np.repeat(X, weight, axis=0)
    for given in (X, scipy.sparse.csr_array(X), Columns(X)):
        found = summary(MODEL, given, sample_weight=weight)
        columns = [int(name) for name in found.table["feature"]]
        np.testing.assert_allclose(found.table["per_sd"], (MODEL.coef_ * repeated.std(axis=0))[columns])


def test_the_head_says_how_the_strength_was_chosen():
    grid = {"alphas": 5, "eps": 0.1}
    folds = L12RegressorCV(**grid, cv=3, selection="1se", penalty=[L1(), L12(l2_weight=0.5)]).fit(X, Y)
    head = summary(folds).head
    assert "within one standard error of the best of 5 strengths by the mean of 3 folds" in head["alpha"]
    assert head["penalty"].endswith("the best of L1(), L12(l2_weight=0.5)")
    chosen = L12RegressorCV(**grid, selection="ebic", penalty=L12(positive=True, ridge=0.1)).fit(X, Y)
    head = summary(chosen).head
    assert "least EBIC of 5 strengths" in head["alpha"]
    assert head["penalty"] == "L12(positive=True, ridge=0.1)"
    assert ("smallest that was tried" in head["alpha"]) == (chosen.alpha_ == chosen.alphas_[-1])
    scored = L12ClassifierCV(**grid, cv=2, scoring="accuracy").fit(X, Y > 2)
    assert "by the mean accuracy of 2 folds" in summary(scored).head["alpha"]
    assert summary(MODEL).head["alpha"] == "0.0001, as given"


def test_the_head_says_how_well_the_model_fits():
    share = f"{MODEL.score(X, Y):.1%} of the variance explained"
    assert summary(MODEL, X, Y, intervals=False).head["fit"] == share
    labels = np.where(Y + RANDOM.standard_normal(60) > 2, "yes", "no")
    penalty = L12(l2_weight=0.5, weights=[1, 0.01, 1, 1, 1, 1, 1, 1])
    model = L12Classifier(0.05, penalty=penalty).fit(X, labels)
    found = summary(model, X, labels, intervals=False)
    alone = np.full(60, np.mean(labels == "yes"))
    share = 1 - log_loss(labels, model.predict_proba(X)) / log_loss(labels, np.c_[1 - alone, alone])
    assert found.head["fit"].startswith(f"{share:.1%} of the deviance explained")
    assert found.title == "L12Classifier, logistic loss: yes against no"
    time = np.c_[RANDOM.exponential(np.exp(-X[:, 0])), np.arange(60) % 3 > 0]
    cox = L12CoxRegressor(0.1).fit(X, time)
    head = summary(cox, X, time, intervals=False).head
    assert head["fit"] == f"concordance {cox.score(X, time):.3f}"
    assert "intercept" not in head
    counts, offset = RANDOM.poisson(3, 60), RANDOM.standard_normal(60)
    poisson = L12Regressor(0.5, loss="poisson").fit(X, counts, offset=offset)
    share = poisson.score(X, counts, offset=offset)
    assert summary(poisson, X, counts, offset=offset).head["fit"] == f"{share:.1%} of the deviance explained"


def test_several_targets_and_classes_have_rows_of_their_own():
    found = summary(BOTH, X)
    pairs = list(zip(found.table["target"], map(int, found.table["feature"]), strict=True))
    assert set(pairs) == set(zip(*np.nonzero(BOTH.coef_), strict=True))
    assert list(found.table["target"]) == sorted(found.table["target"])
    classes = np.array(["low", "mid", "high"])[np.digitize(Y, [0, 4])]
    for model in (L12Classifier(0.05), L12Classifier(0.05, loss="multinomial")):
        found = summary(model.fit(X, classes), X, classes)
        assert set(found.table["class"]) <= {"low", "mid", "high"}
        assert any(note.startswith("No intervals: ") for note in found.notes)
        assert "3 classes" in found.title


def test_the_status_is_given_in_its_own_words():
    with pytest.warns(ConvergenceWarning):
        short = L12Regressor(0.01, max_iter=1, tol=1e-14).fit(X, Y)
    assert summary(short).head["status"] == f"Not converged: {short.results_[0].status.value}"
    assert summary(MODEL).head["status"] == f"Converged: {Status.CONVERGED.value}"
    chunks = L12Classifier(0.1).partial_fit(X, Y > 2, classes=[False, True])
    assert "no certificate" in summary(chunks).head["status"]


def test_a_model_without_features_and_tiny_ones_say_so():
    empty = summary(L12Regressor(1e6, penalty=L1()).fit(X, Y), X, Y)
    assert empty.head["features"] == "0 of 8 selected"
    assert "No feature is selected." in repr(empty)
    assert "No feature is selected." in empty._repr_html_()
    assert empty.table.empty
    tiny = L12Regressor(0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.1])
    assert summary(tiny, [[0.0], [1.0], [2.0]]).table["feature"].tolist() == ["0"]


def test_models_from_pickle_and_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=NAMES)
    model = pickle.loads(pickle.dumps(L12RegressorCV(alphas=4, eps=0.2, cv=2).fit(frame, Y)))
    found = summary(model, frame, Y, intervals=False)
    assert set(found.table["feature"]) <= set(NAMES)
    assert repr(pickle.loads(pickle.dumps(found))) == repr(found)
    refit = information_criteria(frame, Y, alphas=5).refit("bic")
    assert "refitted without a penalty" in summary(refit).head["options"]


def test_print_and_notebook_keep_to_their_width_and_escape_names():
    wide = RANDOM.standard_normal((40, 50))
    model = L12Regressor(0.01).fit(wide, wide @ RANDOM.standard_normal(50))
    names = [f"<b>a feature with a rather long name, and a number: {j}</b>" for j in range(50)]
    found = summary(model, wide, names=names, stability=stable(50), intervals=debiased([0, 1, 2]))
    lines = repr(found).splitlines()
    assert max(map(len, lines)) <= 120
    assert sum("feature with" in line for line in lines) == 30 < np.count_nonzero(model.coef_)
    assert "<b>" not in found._repr_html_()
    assert len(found.table) == np.count_nonzero(model.coef_)


def stable(size):
    """What a fitted StabilitySelection tells."""
    fitted = StabilitySelection()
    fitted.frequencies_ = np.linspace(1, 0, size)
    fitted.threshold_, fitted.bound_ = 0.75, 1.0
    return fitted


def debiased(features):
    """What `confidence_intervals` tells of some features."""
    features = np.array(features)
    estimate, p_values = 1.0 + features, 10.0 ** -(3 + features)
    ends = estimate - 1, estimate + 1
    return Intervals(features, [*map(str, features)], *[estimate] * 3, *ends, p_values, 0.9, "exact", 1.0)


def test_frequencies_and_intervals_stand_next_to_their_features():
    selection = StabilitySelection(n_subsamples=10, random_state=0).fit(X, Y)
    found = summary(MODEL, X, stability=selection, intervals=debiased([4, 1, 6]), adjust="bh")
    features = np.array([int(name) for name in found.table["feature"]])
    np.testing.assert_array_equal(found.table["frequency"], selection.frequencies_[features])
    known = np.isin(features, [1, 4, 6])
    np.testing.assert_array_equal(found.table["estimate"][known], 1.0 + features[known])
    assert np.isnan(found.table["lower"][~known]).all()
    p_values = np.ones(8)
    p_values[[1, 4, 6]] = 10.0 ** -np.array([4, 7, 9])
    expected = np.where(known, adjusted_p_values(p_values, "bh")[features], np.nan)
    np.testing.assert_array_equal(found.table["adjusted_p"], expected)
    assert "90 % intervals" in found.notes[-1]
    assert "10 halves" in found.notes[0]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"model": L12Regressor()}, NotFittedError, "not fitted"),
        ({"y": Y}, ValueError, "y needs X"),
        ({"sample_weight": Y}, ValueError, "sample_weight needs X"),
        ({"X": X[:, :5]}, ValueError, "X has 5 features"),
        ({"X": X, "y": Y[:-1]}, ValueError, "inconsistent numbers of samples"),
        ({"X": X, "sample_weight": np.ones(3)}, ValueError, "sample_weight"),
        ({"names": "abcdefgh"}, ValueError, "names must hold"),
        ({"names": ["a"]}, ValueError, "names must hold one name for each of the 8 features"),
        ({"intervals": True}, ValueError, "intervals=True needs X and y"),
        ({"model": BOTH, "intervals": debiased([0])}, ValueError, "intervals are of one target"),
        ({"intervals": debiased([9])}, ValueError, "intervals are of a feature of number 9"),
        ({"stability": stable(3)}, ValueError, "stability was fitted to 3 features"),
        ({"stability": StabilitySelection()}, NotFittedError, "not fitted"),
        ({"X": X, "y": Y * np.inf}, ValueError, r"\by\b"),
        ({"X": X, "y": np.ma.array(Y, mask=Y > 2)}, TypeError, r"\by\b"),
    ],
)
def test_wrong_arguments_are_named(arguments, kind, words):
    with pytest.raises(kind, match=words):
        summary(**{"model": MODEL} | arguments)


def test_intervals_are_made_of_the_features_selected():
    found = summary(MODEL, X, Y)
    features = np.array([int(name) for name in found.table["feature"]])
    made = confidence_intervals(X, Y, MODEL, features=features)
    np.testing.assert_array_equal(found.table["lower"], made.lower)
    np.testing.assert_array_equal(found.table["p_value"], made.p_values)
    # Those that are not selected count with a p value of 1: the factor of the smallest is the number of all.
    smallest = np.argmin(made.p_values)
    assert found.table["adjusted_p"][smallest] == pytest.approx(8 * made.p_values[smallest])
    every = summary(MODEL, X, Y, intervals=confidence_intervals(X, Y, MODEL))
    assert np.all(every.table["adjusted_p"] <= found.table["adjusted_p"])
    classes = np.digitize(Y, [0, 4])
    several = L12Classifier(0.05).fit(X, classes)
    with pytest.raises(ValueError, match="2 classes"):
        summary(several, X, classes, intervals=True)
    full = L12Regressor(1e-9, penalty=L1()).fit(X[:8], Y[:8])
    assert summary(full, X[:8], Y[:8]).notes[0].startswith("No intervals: ")
