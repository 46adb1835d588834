"""Weights of classes, by scikit-learn's logistic regression and by weights of samples."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.class_weight import compute_class_weight

from ell12 import L1, L12Classifier, L12ClassifierCV

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((90, 8))
SCORE = X[:, 0] - X[:, 3] + RANDOM.standard_normal(90)
TWO = np.where(SCORE > 1, "rare", "common")
THREE = np.digitize(SCORE, [-1.0, 1.2])
WEIGHT = RANDOM.uniform(0.5, 2, 90)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [{"rare": 4.0}, {"rare": 3.0, "common": 0.5}, "balanced"])
def test_without_the_l2_norm_it_is_logistic_regression_with_class_weights(class_weight, weighted):
    weight = WEIGHT if weighted else None
    ours = L12Classifier(0.03, penalty=L1(), class_weight=class_weight, fit_intercept=False, tol=1e-10)
    ours.fit(X, TWO, weight)
    classes, samples = np.unique(TWO), np.ones(90) if weight is None else weight
    own = dict(zip(classes, compute_class_weight(class_weight, classes=classes, y=TWO), strict=True))
    if class_weight == "balanced":  # counted by weights
        own = {label: samples.sum() / (2 * samples[label == TWO].sum()) for label in classes}
    total = sum(samples * [own[label] for label in TWO])
    exact = {"fit_intercept": False, "tol": 1e-12, "max_iter": 10_000, "random_state": 0}
    theirs = LogisticRegression(C=1 / (0.03 * total), l1_ratio=1, class_weight=own, solver="liblinear", **exact)
    theirs.fit(X, TWO, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


@pytest.mark.parametrize("form", [np.array, scipy.sparse.csr_array, np.float32])
def test_class_weights_are_weights_of_samples(form):
    data = X.astype(np.float32) if form is np.float32 else form(X)
    tol, close = (1e-3, 1e-3) if form is np.float32 else (1e-10, 1e-9)
    model = L12Classifier(0.02, class_weight={0: 2.0, 2: 5.0}, tol=tol).fit(data, THREE, WEIGHT)
    weighted = L12Classifier(0.02, tol=tol).fit(data, THREE, WEIGHT * np.array([2.0, 1.0, 5.0])[THREE])
    np.testing.assert_allclose(model.coef_, weighted.coef_, atol=close)
    assert model.coef_.dtype == data.dtype


def test_folds_share_the_weights_and_scores_do_not_have_them():
    model = L12ClassifierCV(alphas=[0.02, 0.1], class_weight="balanced", cv=StratifiedKFold(3), tol=1e-9)
    model.fit(X, TWO)
    weight = (90 / (2 * np.unique(TWO, return_counts=True)[1]))[(TWO == "rare").astype(int)]
    for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, TWO)):
        for k, alpha in enumerate(model.alphas_):
            single = L12Classifier(alpha, tol=1e-9).fit(X[train], TWO[train], weight[train])
            shares = single.predict_proba(X[test])[np.arange(len(test)), (TWO[test] == "rare").astype(int)]
            assert model.scores_[k, fold] == pytest.approx(np.log(shares).mean(), abs=1e-6)


def test_chunks_take_weights_by_label():
    model = L12Classifier(0.02, class_weight={"rare": 3.0})
    given = clone(model).partial_fit(X, TWO, classes=["common", "rare"])
    weighted = L12Classifier(0.02).partial_fit(
        X, TWO, classes=["common", "rare"], sample_weight=np.where(TWO == "rare", 3.0, 1.0)
    )
    np.testing.assert_allclose(given.coef_, weighted.coef_, atol=1e-12)
    with pytest.raises(ValueError, match="class_weight must be a dict or None in partial_fit"):
        clone(model).set_params(class_weight="balanced").partial_fit(X, TWO, classes=["common", "rare"])


@pytest.mark.parametrize(
    "wrong", [{"rare": 1.0, "typo": 2.0}, {"rare": -1.0}, {"rare": np.nan}, "equal", [1.0, 2.0]]
)
def test_wrong_class_weights_are_named(wrong):
    for kind in (L12Classifier, L12ClassifierCV):
        with pytest.raises(ValueError, match="class_weight"):
            kind(class_weight=wrong).fit(X, TWO)
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="class_weight needs data in memory"):
        L12Classifier(class_weight="balanced").fit(da.from_array(X), da.from_array(THREE))
