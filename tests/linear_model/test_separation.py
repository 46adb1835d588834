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
THREE = np.digitize(X[:, 2], [-0.5, 0.5])  # one line through the features orders all three classes
THREE_MIXED = np.digitize(X[:, 2] + RANDOM.standard_normal(60), [-0.5, 0.5])
FACTORS = np.where(np.arange(6) == 2, 0.0, 1.0)
PAIRS = [0, 0, 1, 1, 2, 2]
FLIPPED, WITHOUT_THREE = np.where(np.arange(60) < 3, ~BY_ONE, BY_ONE), np.where(np.arange(60) < 3, 0.0, 1.0)
FLAG = (np.arange(40) < 8).astype(float)[:, None]  # whoever has it is in the class; the others may be
FLAGGED = (np.arange(40) < 8) | (np.arange(40) % 3 == 0)


def unbounded(model, X, y, **fit):
    """The warning's words, None if there is none, and the statuses."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **fit)
    words = [str(w.message) for w in caught if "no finite minimiser" in str(w.message)]
    assert len(words) <= 1
    assert not any("did not converge" in str(w.message) for w in caught)
    return (words[0] if words else None), [result.status for result in model.results_]


def multinomial(alpha, **options):
    return L12Classifier(alpha, loss="multinomial", tol=1e-3, penalty=L12(**options))


CASES = [
    ("one feature", True, L12Classifier(0.1, penalty=L12()), X, BY_ONE, None),
    ("a ridge", False, L12Classifier(0.1, penalty=L12(ridge=0.1)), X, BY_ONE, None),
    ("a smaller weight", False, L12Classifier(0.1, penalty=L12(l2_weight=0.9)), X, BY_ONE, None),
    ("a penalty that grows", False, L12Classifier(0.1, penalty=LogSum()), X, BY_ONE, None),
    ("MCP, constant far out", True, L12Classifier(0.1, penalty=MCP(), tol=1e-3), X, BY_ONE, None),
    ("no penalty", True, L12Classifier(0.0), X, BY_ONE, None),
    ("no penalty, two together", True, L12Classifier(0.0), X, BY_TWO, None),
    ("no penalty, mixed", False, L12Classifier(0.0), X, MIXED, None),
    ("weight zero", True, L12Classifier(0.05, penalty=L12(weights=FACTORS, l2_weight=0)), X, BY_ONE, None),
    ("weight zero, ridge", True, L12Classifier(0.05, penalty=L12(weights=FACTORS, ridge=1.0)), X, BY_ONE, None),
    ("one of two free", False, L12Classifier(0.01, penalty=L12(l2_weight=0.5, weights=FACTORS)), X, BY_TWO, None),
    ("samples left undecided", True, L12Classifier(0.1, penalty=L12()), FLAG, FLAGGED, None),
    ("one group", True, L12Classifier(0.2, penalty=GroupL12(PAIRS), tol=1e-3), X, BY_ONE, None),
    ("groups, bounded", False, L12Classifier(0.2, penalty=GroupL12(PAIRS, l2_weight=0.5)), X, BY_ONE, None),
    ("three samples against", False, L12Classifier(0.1, penalty=L12()), X, FLIPPED, None),
    ("which have no weight", True, L12Classifier(0.1, penalty=L12()), X, FLIPPED, WITHOUT_THREE),
    ("the wrong sign", False, L12Classifier(0.1, penalty=L12(positive=True)), -X[:, [2, 0]], BY_ONE, None),
    ("the right sign", True, L12Classifier(0.1, penalty=L12(positive=True)), X[:, [2, 0]], BY_ONE, None),
    ("all classes at once", True, multinomial(0.0), X, THREE, None),
    ("mixed classes at once", False, multinomial(0.0), X, THREE_MIXED, None),
    ("penalised classes at once", False, multinomial(0.05, l2_weight=1.0), X, THREE, None),
    ("a search", True, L12ClassifierCV(penalty=L12(), alphas=3, eps=0.1, cv=2, tol=1e-3), X, BY_ONE, None),
]


@pytest.mark.parametrize(("case", "expected", "model", "X", "y", "weight"), CASES, ids=[case[0] for case in CASES])
def test_only_fits_without_a_finite_minimiser_say_so(case, expected, model, X, y, weight):
    words, statuses = unbounded(model, X, y, sample_weight=weight)
    assert (words is not None) == expected
    assert statuses == [Status.UNBOUNDED if expected else Status.CONVERGED]


@pytest.mark.parametrize("form", [np.array, scipy.sparse.csr_array, np.float32])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_one_feature_that_separates_the_classes_is_named_as_the_reason(fit_intercept, form):
    data = X.astype(np.float32) if form is np.float32 else form(X)
    model = L12Classifier(0.1, penalty=L12(), fit_intercept=fit_intercept, tol=1e-3)
    words, _ = unbounded(model, data, X[:, 2] > (0.3 if fit_intercept else 0.0))
    assert words.startswith(
        "L12Classifier has no finite minimiser: features separate the classes, and L12(alpha=0.1)"
    )
    assert not model.results_[0].converged


def test_the_coefficient_grows_as_tol_falls():
    sizes = []
    for tol in (1e-4, 1e-6):
        with pytest.warns(ConvergenceWarning, match="no finite minimiser"):
            sizes.append(np.abs(L12Classifier(0.1, penalty=L12(), tol=tol).fit(X, BY_ONE).coef_).max())
    assert sizes[1] > 1.2 * sizes[0]


@pytest.mark.parametrize("alpha", [1e-3, 0.05])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_several_penalised_features_that_separate_together_are_no_reason(l2_weight, alpha):
    model = L12Classifier(alpha, penalty=L12(l2_weight=l2_weight), tol=1e-6)
    assert unbounded(model, X, BY_TWO) == (None, [Status.CONVERGED])
    assert ((model.decision_function(X) > 0) == BY_TWO).mean() > 0.9


@pytest.mark.parametrize("seed", range(16))
def test_whether_free_features_separate_is_what_a_linear_program_says(seed):
    random = np.random.default_rng(seed)
    features = random.standard_normal((12, 3))
    y = np.where(features @ [1.0, -1.0, 0.5] + 1.5 * random.standard_normal(12) > 0.2, 1.0, -1.0)
    if abs(y.sum()) > 10:
        y[0] = -y[0]
    margins = y[:, None] * np.column_stack([features, np.ones(12)])
    program = linprog(-margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(12), bounds=[(-1, 1)] * 4)
    words, _ = unbounded(L12Classifier(alpha=0.0, tol=1e-6), features, y)
    assert (words is not None) == (-program.fun > 1e-9)


def test_of_several_classes_those_that_are_separated_are_counted():
    words, statuses = unbounded(L12Classifier(0.2, penalty=L12()), X, THREE)  # the middle one is not
    assert "in 2 of 3 problems" in words
    assert statuses == [Status.UNBOUNDED, Status.CONVERGED, Status.UNBOUNDED]


def test_with_a_ridge_classes_that_one_feature_separates_have_a_finite_solution():
    x = np.linspace(-1, 1, 20)[:, None]
    margin, c = (
        np.abs(x[:, 0]),
        L12Classifier(0.1, penalty=L12(ridge=0.5), tol=1e-10).fit(x, x[:, 0] > 0).coef_[0, 0],
    )
    # The slope of the mean loss and of alpha ridge/2 c^2 cancel.
    assert abs(np.mean(-margin / (1 + np.exp(margin * c))) + 0.05 * c) < 1e-9
