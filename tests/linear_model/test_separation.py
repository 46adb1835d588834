"""Classes that features separate at no cost have no finite minimiser: that is said, and never without reason."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from ell12 import L12, MCP, GroupL12, L12Classifier, L12ClassifierCV, Status
from ell12.penalties import LogSum

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 6))
BY_ONE = X[:, 2] > 0.3  # separated by one feature
BY_TWO = X[:, 2] + X[:, 4] > 0.3  # by two together, by none alone
MIXED = X[:, 2] + RANDOM.standard_normal(60) > 0.3


def unbounded(model, X, y, **fit):
    """The warning's words, None if there is none, and the statuses."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **fit)
    words = [str(w.message) for w in caught if "no finite minimiser" in str(w.message)]
    assert len(words) <= 1
    assert not any("did not converge" in str(w.message) for w in caught)
    return (words[0] if words else None), [result.status for result in model.results_]


@pytest.mark.parametrize("form", [np.array, scipy.sparse.csr_array, np.float32])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_one_feature_that_separates_the_classes_is_named_as_the_reason(fit_intercept, form):
    data = X.astype(np.float32) if form is np.float32 else form(X)
    y = X[:, 2] > (0.3 if fit_intercept else 0.0)
    model = L12Classifier(0.1, penalty=L12(), fit_intercept=fit_intercept, tol=1e-3)
    words, statuses = unbounded(model, data, y)
    assert "features separate the classes, and L12(alpha=0.1) does not bound" in words
    assert statuses == [Status.UNBOUNDED]
    assert not model.results_[0].converged
    for bounded in (L12(ridge=0.1), L12(l2_weight=0.9), LogSum()):
        model = L12Classifier(0.1, penalty=bounded, fit_intercept=fit_intercept, tol=1e-3)
        assert unbounded(model, data, y)[0] is None
    model = L12Classifier(0.1, penalty=MCP(), fit_intercept=fit_intercept, tol=1e-3)
    assert unbounded(model, data, y)[1] == [Status.UNBOUNDED]  # MCP is constant far out


def test_the_coefficient_grows_as_tol_falls():
    sizes = []
    for tol in (1e-4, 1e-6):
        with pytest.warns(ConvergenceWarning, match="no finite minimiser"):
            sizes.append(np.abs(L12Classifier(0.1, penalty=L12(), tol=tol).fit(X, BY_ONE).coef_).max())
    assert sizes[1] > 1.2 * sizes[0]


@pytest.mark.parametrize("y", [BY_ONE, BY_TWO])
def test_without_a_penalty_all_features_count(y):
    words, statuses = unbounded(L12Classifier(alpha=0.0, tol=1e-4), X, y)
    assert "Raise alpha" in words
    assert statuses == [Status.UNBOUNDED]
    assert unbounded(L12Classifier(alpha=0.0), X, MIXED) == (None, [Status.CONVERGED])


def test_features_of_factor_zero_count_whatever_the_l2_weight():
    factors = np.where(np.arange(6) == 2, 0.0, 1.0)
    for options in ({"l2_weight": 0.0}, {"l2_weight": 1.0}, {"ridge": 1.0}):
        words, _ = unbounded(L12Classifier(0.05, penalty=L12(weights=factors, **options)), X, BY_ONE)
        assert "no finite minimiser" in words
    # Two features separate these classes together, but only one of them is free.
    assert unbounded(L12Classifier(0.01, penalty=L12(l2_weight=0.5, weights=factors)), X, BY_TWO)[0] is None


@pytest.mark.parametrize("alpha", [1e-3, 1e-2, 0.05])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_several_penalised_features_that_separate_together_are_no_reason(l2_weight, alpha):
    model = L12Classifier(alpha, penalty=L12(l2_weight=l2_weight), tol=1e-6)
    words, statuses = unbounded(model, X, BY_TWO)
    assert (words, statuses) == (None, [Status.CONVERGED])
    assert ((model.decision_function(X) > 0) == BY_TWO).mean() > 0.9


def test_a_feature_that_leaves_some_samples_undecided_counts_too():
    flag = (np.arange(40) < 8).astype(float)[:, None]  # whoever has it is in the class; the others may be
    y = (np.arange(40) < 8) | (np.arange(40) % 3 == 0)
    words, _ = unbounded(L12Classifier(0.1, penalty=L12()), flag, y)
    assert "separate the classes" in words


@pytest.mark.parametrize("seed", range(16))
def test_whether_free_features_separate_is_what_a_linear_program_says(seed):
    random = np.random.default_rng(seed)
    features = random.standard_normal((12, 3))
    y = np.where(features @ [1.0, -1.0, 0.5] + 1.5 * random.standard_normal(12) > 0.2, 1.0, -1.0)
    if abs(y.sum()) > 10:
        y[0] = -y[0]
    margins = y[:, None] * np.column_stack([features, np.ones(12)])
    program = linprog(-margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(12), bounds=[(-1, 1)] * 4)
    separable = -program.fun > 1e-9
    words, _ = unbounded(L12Classifier(alpha=0.0, tol=1e-6), features, y)
    assert (words is not None) == separable


def test_of_several_classes_those_that_are_separated_are_counted():
    y = np.digitize(X[:, 2], [-0.5, 0.5])  # the outer classes are separated from the rest, the middle one is not
    words, statuses = unbounded(L12Classifier(0.2, penalty=L12()), X, y)
    assert "in 2 of 3 problems" in words
    assert statuses == [Status.UNBOUNDED, Status.CONVERGED, Status.UNBOUNDED]


def test_all_classes_at_once_are_judged_by_their_differences():
    apart = np.digitize(X[:, 2], [-0.5, 0.5])  # one line through the features orders all three classes
    mixed = np.digitize(X[:, 2] + RANDOM.standard_normal(60), [-0.5, 0.5])
    words, statuses = unbounded(L12Classifier(alpha=0.0, loss="multinomial", tol=1e-3), X, apart)
    assert "Raise alpha" in words
    assert statuses == [Status.UNBOUNDED]
    assert unbounded(L12Classifier(alpha=0.0, loss="multinomial", tol=1e-3), X, mixed)[0] is None
    for options in ({"l2_weight": 0.5}, {"l2_weight": 1.0}, {"l2_weight": 1.0, "ridge": 0.1}):
        model = L12Classifier(0.05, loss="multinomial", tol=1e-3, penalty=L12(**options))
        assert unbounded(model, X, apart) == (None, [Status.CONVERGED])


def test_groups_that_stand_alone_count_as_one_feature():
    groups = [0, 0, 1, 1, 2, 2]
    words, _ = unbounded(L12Classifier(0.2, penalty=GroupL12(groups), tol=1e-3), X, BY_ONE)
    assert "GroupL12" in words
    assert unbounded(L12Classifier(0.2, penalty=GroupL12(groups, l2_weight=0.5), tol=1e-3), X, BY_ONE)[0] is None


def test_samples_without_weight_have_no_say():
    y, weight = BY_ONE.copy(), np.ones(60)
    y[:3], weight[:3] = ~y[:3], 0.0
    assert unbounded(L12Classifier(0.1, penalty=L12()), X, y)[0] is None
    assert unbounded(L12Classifier(0.1, penalty=L12()), X, y, sample_weight=weight)[0] is not None


def test_signs_that_keep_a_feature_out_keep_the_minimiser_finite():
    negative = np.column_stack([-X[:, 2], X[:, 0]])
    assert unbounded(L12Classifier(0.1, penalty=L12(positive=True)), negative, BY_ONE)[0] is None
    assert unbounded(L12Classifier(0.1, penalty=L12(positive=True)), -negative, BY_ONE)[0] is not None


def test_a_cross_validation_says_it_of_its_last_fit():
    words, statuses = unbounded(L12ClassifierCV(penalty=L12(), alphas=3, eps=0.1, cv=2, tol=1e-3), X, BY_ONE)
    assert words.startswith("L12ClassifierCV has no finite minimiser")
    assert statuses == [Status.UNBOUNDED]


def test_with_a_ridge_classes_that_one_feature_separates_have_a_finite_solution():
    x = np.linspace(-1, 1, 20)[:, None]
    found = [L12Classifier(0.1, penalty=L12(ridge=0.5), tol=tol).fit(x, x[:, 0] > 0) for tol in (1e-6, 1e-10)]
    assert all(model.results_[0].converged for model in found)
    # The slope of the mean loss and of alpha ridge/2 c^2 cancel.
    margin = np.abs(x[:, 0])
    slope = [np.mean(-margin / (1 + np.exp(margin * c))) + 0.05 * c for c in (m.coef_[0, 0] for m in found)]
    assert abs(slope[1]) < 1e-9
    assert abs(found[0].coef_[0, 0] - found[1].coef_[0, 0]) < 1e-4
