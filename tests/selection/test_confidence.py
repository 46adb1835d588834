"""Intervals after selection, against the formulas written out with NumPy and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit, softmax
from scipy.stats import norm, t
from sklearn.linear_model import Lasso, LogisticRegression

from ell12 import L1, L12Classifier, L12CoxRegressor, L12Regressor, confidence_intervals
from ell12.linear_model import Huber
from ell12.selection import nodewise as inverses
from ell12.selection.confidence import adjusted_p_values


def problem(rows=60, columns=90, seed=0, toeplitz=0.0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, columns)) + 0.7 * random.standard_normal((rows, 1))
    for j in range(1, columns):
        X[:, j] += toeplitz * X[:, j - 1]
    X *= random.uniform(0.5, 3, columns)
    return X, 2 * X[:, 1] - X[:, 4] + 5 + random.standard_normal(rows)


def labels(rows=400, columns=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, columns))
    return X, np.where(random.uniform(size=rows) < expit(X[:, 0] - 0.5), "yes", "no")


@pytest.mark.parametrize("intercept", [True, False])
def test_with_few_features_they_are_those_of_weighted_least_squares(intercept):
    X, y = problem(50, 6)
    weight = np.random.default_rng(1).uniform(0.5, 2, 50)
    D = np.column_stack([X, np.ones(50)]) if intercept else X
    bread = np.linalg.inv(D.T @ (weight[:, None] * D))
    c = bread @ D.T @ (weight * y)
    rest, excess = y - D @ c, 50 - D.shape[1]
    covariance = bread * (weight @ rest**2) / excess
    robust = bread @ D.T @ ((weight * rest)[:, None] ** 2 * D) @ bread * 50 / excess  # HC1
    model = L12Regressor(0.3, fit_intercept=intercept)
    found = confidence_intervals(X, y, model, sample_weight=7 * weight, level=0.9)
    assert found.inverse == "exact"
    error = np.sqrt(np.diagonal(covariance))[:6]
    np.testing.assert_allclose(found.estimate, c[:6], rtol=1e-9)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-9)
    reach = t(excess).ppf(0.95) * error
    np.testing.assert_allclose([found.lower, found.upper], [c[:6] - reach, c[:6] + reach], rtol=1e-9)
    np.testing.assert_allclose(found.p_values, 2 * t(excess).sf(np.abs(c[:6]) / error), rtol=1e-6)
    np.testing.assert_allclose(found.coef, model.fit(X, y, sample_weight=weight).coef_, rtol=1e-6)
    other = confidence_intervals(X, y, model, sample_weight=weight, variance="robust")
    np.testing.assert_allclose(other.standard_error, np.sqrt(np.diagonal(robust))[:6], rtol=1e-9)


def newton(parts, c):
    """The minimiser of a function, given by its gradient and its Hessian, and the inverse of that."""
    for _ in range(50):
        gradient, hessian = parts(c)
        c = c - np.linalg.solve(hessian, gradient)
    return c, np.linalg.inv(hessian)


def classes():
    X, y = labels()
    D = np.column_stack([X, np.ones(y.size)])

    def parts(c):
        mean = expit(D @ c)
        return D.T @ (mean - (y == "yes")), D.T @ ((mean * (1 - mean))[:, None] * D)

    return X, y, L12Classifier(0.02), {}, parts, 6


def counts():
    X, _ = labels(columns=3)
    random = np.random.default_rng(1)
    offset, weight = random.uniform(0, 1, 400), random.uniform(0.5, 2, 400)
    y = random.poisson(np.exp(0.5 * X[:, 0] + offset))
    D, w = np.column_stack([X, np.ones(400)]), weight / weight.mean()

    def parts(c):
        mean = np.exp(D @ c + offset)
        return D.T @ (w * (mean - y)), D.T @ ((w * mean)[:, None] * D)

    return X, y, L12Regressor(0.1, loss="poisson"), {"sample_weight": weight, "offset": offset}, parts, 4


def survival():
    X, _ = labels(rows=150, columns=3)
    random = np.random.default_rng(2)
    time, event = random.exponential(np.exp(-X[:, 0])), random.uniform(size=150) < 0.7

    def parts(c):
        """Event by event."""
        gradient, hessian = np.zeros(3), np.zeros((3, 3))
        for i in np.flatnonzero(event):
            risk = X[time >= time[i]]
            share = np.exp(risk @ c) / np.exp(risk @ c).sum()
            mean = share @ risk
            gradient += mean - X[i]
            hessian += (risk - mean).T @ (share[:, None] * (risk - mean))
        return gradient, hessian

    return X, np.c_[time, event], L12CoxRegressor(0.01), {}, parts, 3


@pytest.mark.parametrize("case", [classes, counts, survival])
def test_with_few_features_likelihoods_have_those_of_maximum_likelihood(case):
    X, y, model, options, parts, size = case()
    c, covariance = newton(parts, np.zeros(size))
    c, error = c[: X.shape[1]], np.sqrt(np.diagonal(covariance))[: X.shape[1]]
    found = confidence_intervals(X, y, model, inverse="exact", **options)
    np.testing.assert_allclose(found.estimate, c, rtol=1e-8)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-6)
    np.testing.assert_allclose(found.upper, c + norm.ppf(0.975) * error, rtol=1e-6)
    robust = {"inverse": "exact", "variance": "robust"} | options
    if case is survival:
        with pytest.raises(ValueError, match="variance='robust' is not for survival times"):
            confidence_intervals(X, y, model, **robust)
    else:
        errors = confidence_intervals(X, y, model, **robust).standard_error
        assert np.all(np.abs(np.log(errors / error)) < 0.3)


def three_classes(seed, rows, columns):
    random = np.random.default_rng(seed)
    X, rows_of_classes = random.standard_normal((rows, columns)), np.zeros((3, columns))
    rows_of_classes[0, :3], rows_of_classes[1, 2:4] = 1.0, -1.0
    shares = softmax(X @ rows_of_classes.T + 0.3 * np.arange(3), axis=1)
    y = (shares.cumsum(axis=1) < random.uniform(size=(rows, 1))).sum(axis=1)
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("weight", [np.ones(400), np.tile([0.5, 1.5], 200)])
def test_with_few_features_several_classes_have_those_of_maximum_likelihood(weight):
    X, y = three_classes(0, 400, 4)
    D, w, Y = np.column_stack([X, np.ones(400)]), weight, y[:, None] == [*"ab"]

    def parts(c):
        """The gradient and the Hessian in the coefficients of two classes, the third having none."""
        p = softmax(np.column_stack([D @ c.reshape(2, 5).T, np.zeros(400)]), axis=1)[:, :2]
        blocks = [[D.T @ ((w * p[:, i] * ((i == j) - p[:, j]))[:, None] * D) for j in (0, 1)] for i in (0, 1)]
        return (D.T @ (w[:, None] * (p - Y))).T.ravel(), np.block(blocks)

    c, covariance = newton(parts, np.zeros(10))
    model = L12Classifier(0.02, loss="multinomial")
    for label, contrast in (("a", [2, -1]), ("b", [-1, 2]), ("c", [-1, -1])):
        less_mean = np.kron(np.array(contrast) / 3, np.eye(5))[:4]
        found = confidence_intervals(X, y, model, label=label, sample_weight=weight, inverse="exact")
        np.testing.assert_allclose(found.estimate, less_mean @ c, rtol=1e-6)
        error = np.sqrt(np.diagonal(less_mean @ covariance @ less_mean.T))
        np.testing.assert_allclose(found.standard_error, error, rtol=1e-5)


def test_each_class_against_the_rest_has_the_intervals_of_two_classes():
    X, y = three_classes(1, 100, 8)
    model = L12Classifier(0.05, tol=1e-9)
    one = confidence_intervals(X, y, model, label="b")
    np.testing.assert_allclose(one.estimate, confidence_intervals(X, y == "b", model).estimate, rtol=1e-5)
    for label in (None, "d"):
        with pytest.raises(ValueError, match="label be one of"):
            confidence_intervals(X, y, model, label=label)
    with pytest.raises(ValueError, match="label is for several classes"):
        confidence_intervals(X, X[:, 0], label="b")
    with pytest.raises(ValueError, match="nor for loss='multinomial'"):
        confidence_intervals(X, y, L12Classifier(0.05, loss="multinomial"), label="b", variance="robust")


def test_with_few_features_hubers_loss_has_those_of_an_m_estimator():
    X, y = problem(200, 5)
    y = np.where(np.arange(200) % 10 == 0, 50.0, y)
    model = L12Regressor(0.1, loss=Huber(delta=1.0, scale=1.5))
    found = confidence_intervals(X, y, model)
    D = np.column_stack([X, np.ones(200)])

    def parts(c):
        rest = D @ c - y
        return D.T @ np.clip(rest, -1.5, 1.5), D.T @ ((np.abs(rest) <= 1.5)[:, None] * D)

    c, _ = newton(parts, np.linalg.lstsq(D[y < 50], y[y < 50], rcond=None)[0])
    np.testing.assert_allclose(found.estimate, c[:5], rtol=1e-6)
    psi = np.clip(D @ c - y, -1.5, 1.5)
    noise = np.sqrt(psi @ psi / 194) / (np.abs(psi) < 1.5).mean()
    np.testing.assert_allclose(found.noise, noise, rtol=1e-6)
    error = noise * np.sqrt(np.diagonal(np.linalg.inv(D.T @ D)))[:5]
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-6)


@pytest.mark.parametrize("loss", ["poisson", "huber", "cox", "multinomial"])
def test_intervals_of_other_losses_hold_what_they_say(loss):
    """Toeplitz 0.5, 150 x 60: of 60 intervals of level 0.95, fewer than 51 have a chance of 1 %."""
    held = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        X = random.standard_normal((150, 60))
        for j in range(1, 60):
            X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
        truth = np.zeros(60)
        truth[[0, 5, 10]] = 0.8, -0.6, 0.5
        eta, given, model = X @ truth, {}, L12Regressor(0.12, loss=loss)
        if loss == "cox":
            y = np.c_[random.exponential(np.exp(-eta)), random.uniform(size=150) < 0.8]
            model = L12CoxRegressor(0.08)
        elif loss == "multinomial":
            y = (np.outer(eta, [1, 0, 0]) + random.gumbel(size=(150, 3))).argmax(axis=1)
            model, given, truth = L12Classifier(0.05, loss=loss), {"label": 0}, 2 / 3 * truth
        else:
            noisy = eta + 0.7 * random.standard_t(2.5, 150)
            y = random.poisson(np.exp(eta + 0.5)) if loss == "poisson" else noisy
        found = confidence_intervals(X, y, model, features=[0, 5, 10, 1, 11, 50], **given)
        held += list((found.lower <= truth[found.features]) & (truth[found.features] <= found.upper))
        assert found.inverse == "nodewise"
    assert sum(held) >= 51


def nodewise_by_hand(X, weight, j):
    """The direction of the rule, with scikit-learn's Lasso: STEP, INFLATION and MOST_USED as documented."""
    mean = weight @ X / weight.sum()
    A = X - mean
    A = A / np.sqrt(weight @ A**2 / weight.sum())
    rows, size = A.shape
    root = np.sqrt(weight / weight.mean())[:, None]
    others = np.delete(np.arange(size), j)
    first = strength = np.sqrt(np.log(size) / rows)
    reference, kept = np.inf, A[:, j]
    while True:
        lasso = Lasso(strength, fit_intercept=False, tol=1e-10, max_iter=100_000)
        c = lasso.fit(root * A[:, others], root[:, 0] * A[:, j]).coef_
        z = A[:, j] - A[:, others] @ c
        length = np.sqrt(weight @ z**2 / weight.sum())
        error = length / (weight @ (z * A[:, j]) / weight.sum())
        if error > 1.4 * reference or np.count_nonzero(c) > rows / 3:
            return kept
        if reference == np.inf and strength <= first * length:
            reference = error
        kept, strength = z, 0.8 * strength


def debiased_by_hand(X, y, c, mean, weight, j):
    """The estimate of the formula without its factor, and its standard error for a variance of 1."""
    z = nodewise_by_hand(X, weight, j)
    z = z - weight @ z / weight.sum()
    product = weight @ (z * X[:, j])
    return c[j] + z @ (y - mean) / product, np.sqrt(weight @ z**2) / abs(product)


@pytest.mark.parametrize("toeplitz", [0.0, 0.7])  # where correlated, the standard error ends the search
def test_nodewise_intervals_are_the_debiased_formula(toeplitz):
    X, y = problem(toeplitz=toeplitz)
    model = L12Regressor(0.3).fit(X, y)
    found = confidence_intervals(X, y, model, features=[1, 7, -3])
    np.testing.assert_array_equal(found.features, [1, 7, 87])
    c, mean = model.coef_, model.predict(X)
    excess = 59 - np.count_nonzero(c)
    noise = np.sqrt((y - mean) @ (y - mean) / excess)
    gain = 59 / excess  # Bellec & Zhang's n / (n - k) of centred columns
    for k, j in enumerate((1, 7, 87)):
        estimate, error = debiased_by_hand(X, y, c, mean, np.ones(60), j)
        np.testing.assert_allclose(found.estimate[k], c[j] + gain * (estimate - c[j]), rtol=1e-4)
        np.testing.assert_allclose(found.standard_error[k], gain * noise * error, rtol=1e-4)
        reach = t(excess).ppf(0.975) * gain * noise * error
        np.testing.assert_allclose(found.upper[k] - found.lower[k], 2 * reach, rtol=1e-4)


@pytest.mark.parametrize("alpha", [0.1, 0.2])
def test_nodewise_intervals_of_classes_are_linear_near_the_fit_that_is_less_shrunken(alpha):
    X, y = problem(150, 90)
    y = (y + 4 * np.random.default_rng(1).standard_normal(150) > 5).astype(int)
    model = L12Classifier(alpha).fit(X, y)
    c, mean = np.ravel(model.coef_), model.predict_proba(X)[:, 1]
    used = np.flatnonzero(c)
    first = [debiased_by_hand(X, y, c, mean, mean * (1 - mean), j) for j in used]
    sure = [j for j, (estimate, error) in zip(used, first, strict=True) if abs(estimate) > 2.5 * error]
    assert 0 < len(sure) < used.size
    plain = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(X[:, sure], y)
    wider = plain.decision_function(X[:, sure]).std() > model.decision_function(X).std()
    assert wider == (alpha == 0.2)
    if wider:
        mean, c = plain.predict_proba(X[:, sure])[:, 1], np.zeros(90)
        c[sure] = plain.coef_
    found = confidence_intervals(X, y, model, features=[1, 7])
    np.testing.assert_array_equal(found.coef, np.ravel(model.coef_)[[1, 7]])
    for k, j in enumerate((1, 7)):
        estimate, error = debiased_by_hand(X, y, c, mean, mean * (1 - mean), j)
        np.testing.assert_allclose(found.estimate[k], estimate, rtol=1e-4)
        np.testing.assert_allclose(found.standard_error[k], error, rtol=1e-4)
        np.testing.assert_allclose(found.upper[k] - found.lower[k], 2 * norm.ppf(0.975) * error, rtol=1e-4)


def test_classes_with_no_feature_that_is_sure_have_intervals_near_the_shares_of_the_classes(monkeypatch):
    monkeypatch.setattr(inverses, "TOL", 1e-9)
    X, _ = problem(40, 60)
    y = np.arange(40) % 4 == 0
    found = confidence_intervals(X, y, L12Classifier(1.0), features=[3])
    estimate, error = debiased_by_hand(X, y, np.zeros(60), np.full(40, 0.25), np.full(40, 0.1875), 3)
    np.testing.assert_allclose([found.estimate[0], found.standard_error[0]], [estimate, error], rtol=1e-4)


def test_ridge_intervals_are_those_of_buehlmann():
    X, y = problem()
    model = L12Regressor(0.3).fit(X, y)
    found = confidence_intervals(X, y, model, inverse="ridge")
    A = (X - X.mean(axis=0)) / X.std(axis=0)
    inverse = np.linalg.inv(A.T @ A / 60 + np.eye(90) / 60)
    projection = inverse @ A.T @ A / 60
    plain, own = inverse @ A.T @ y / 60, np.diagonal(projection)
    others = projection - np.diag(own)
    scaled = model.coef_ * X.std(axis=0)
    estimate = (plain - others @ scaled) / own / X.std(axis=0)
    np.testing.assert_allclose(found.estimate, estimate, rtol=1e-8)
    covariance = inverse @ A.T @ A @ inverse / 60**2
    error = found.noise * np.sqrt(np.diagonal(covariance)) / own / X.std(axis=0)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-8)
    bias = found.noise * np.abs(others).max(axis=1) / own / X.std(axis=0) * (np.log(90) / 60) ** 0.45
    reach = t(59 - np.count_nonzero(model.coef_)).ppf(0.975) * error + bias
    np.testing.assert_allclose(found.upper - estimate, reach, rtol=1e-8)
    wide = np.abs(estimate) < bias
    assert wide.any()
    assert (found.p_values[wide] == 1).all()


def test_problems_without_a_gram_matrix_and_on_threads_have_the_same_errors(monkeypatch):
    monkeypatch.setattr(inverses, "TOL", 1e-9)
    given = (*problem(40, 130), L12Regressor(0.3))
    expected = confidence_intervals(*given, features=[5, 0, 77]).standard_error
    on_threads = confidence_intervals(*given, features=[5, 0, 77], n_jobs=2).standard_error
    np.testing.assert_array_equal(on_threads, expected)
    monkeypatch.setattr(inverses, "LARGEST", 100)
    found = confidence_intervals(*given, features=[5, 0, 77]).standard_error
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("container", [scipy.sparse.csc_array, np.asarray])
@pytest.mark.parametrize("case", ["a model", "no model", "classes"])
def test_units_of_columns_and_rows_of_weight_zero_change_nothing_else(container, case):
    columns, logistic = 60 if case == "a model" else 12, case == "classes"
    X, y = problem(40, columns)
    y = y + 6 * np.random.default_rng(2).standard_normal(40) > 5 if logistic else y
    unit = 10.0 ** np.random.default_rng(1).uniform(-6, 6, columns)
    weight = np.append(np.ones(30), [0.0, 2.0] * 5)

    def intervals(X, c):
        model = L12Regressor(0.3, penalty=L1(weights=c), tol=1e-9) if case == "a model" else None
        return confidence_intervals(container(X * c), y, model, sample_weight=weight)

    plain, other = intervals(X, np.ones(columns)), intervals(X, unit)
    for name in ("coef", "estimate", "standard_error", "lower", "upper"):
        wanted = getattr(plain, name)
        tolerance = {"rtol": 1e-5, "atol": 1e-6 * np.abs(wanted).max()}
        np.testing.assert_allclose(getattr(other, name) * unit, wanted, **tolerance)
    np.testing.assert_allclose(other.p_values, plain.p_values, rtol=1e-4)
    if not logistic:
        X[30::2] *= 100  # rows of weight 0
        again = intervals(X, np.ones(columns))
        np.testing.assert_allclose(again.estimate, plain.estimate, rtol=1e-6)


def test_names_come_from_the_frame_and_tables_and_pictures_show_them():
    pandas = pytest.importorskip("pandas")
    X, y = problem(50, 6)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    found = confidence_intervals(frame, y, L12Regressor(0.3), features=["e", "b"])
    assert found.names == ["e", "b"]
    assert found.table["feature"].tolist() == ["e", "b"]
    assert "95 % confidence intervals" in str(found)
    assert "<table" in found._repr_html_()
    np.testing.assert_array_equal(found.adjusted("bh"), np.minimum(found.p_values.max(), 2 * found.p_values))
    with pytest.raises(ValueError, match=r"features must hold .* got \['z'\]"):
        confidence_intervals(frame, y, L12Regressor(0.3), features=["z"])


def test_features_may_be_a_mask_and_a_slice_is_refused_by_name():
    X, y = problem(50, 6)
    model = L12Regressor(0.3).fit(X, y)
    for mask in (model.coef_ != 0, (model.coef_ != 0)[None], list(model.coef_ != 0)):  # a classifier has rows
        found = confidence_intervals(X, y, model, features=mask)
        np.testing.assert_array_equal(found.features, np.flatnonzero(model.coef_))
    assert len(confidence_intervals(X[:9], y[:9], model, features=[], inverse="nodewise")) == 0
    for wrong, message in [(slice(2), "features: "), ([True, False], "features must hold"), (2.0, "features: ")]:
        with pytest.raises((TypeError, ValueError), match=message):
            confidence_intervals(X, y, model, features=wrong)


@pytest.mark.parametrize("rows", [25, 80])
def test_constant_and_repeated_columns_have_no_interval_and_are_named(rows):
    X, y = problem(rows, 12)
    X[:, 2], X[:, 7] = 3.0, 2 * X[:, 5]
    with pytest.warns(UserWarning, match="no interval for the features 2, 5, 7:"):
        found = confidence_intervals(X, y, L12Regressor(0.3))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found.lower)), [2, 5, 7])
    np.testing.assert_array_equal(np.isnan(found.p_values), np.isnan(found.estimate))
    assert np.isfinite(np.delete(found.estimate, [2, 5, 7])).all()
    with pytest.raises(ValueError, match="inverse='exact' needs"):
        confidence_intervals(problem(rows, 12)[0][:, [0, 0, 1]], y, L12Regressor(0.3), inverse="exact")


def test_classes_that_are_separated_are_warned_of():
    X, y = problem(60, 90)
    X[:, 0] = np.where(y > np.median(y), 1, -1) * (1 + 0.1 * X[:, 0] ** 2)
    with pytest.warns(UserWarning, match="separates the two classes without error"):
        confidence_intervals(X, y > np.median(y), L12Classifier(0.05), features=[0, 1])
    with pytest.raises(ValueError, match="inverse='exact' needs"):
        confidence_intervals(X[:, :2], y > np.median(y), L12Classifier(0.05), inverse="exact")


def test_what_has_no_intervals_is_refused_by_name():
    X, y = problem(40, 5)
    wrong = np.where(np.arange(40) == 3, np.nan, y)
    classes = L12Classifier(0.1).fit(X, y > 5)
    for arguments, message in [
        ((X, wrong), "y"),
        ((np.where(X > 4, np.nan, X), y, L12Regressor()), "X"),
        ((X, np.column_stack([y, y]), L12Regressor()), "y must hold one target"),
        ((X, y, Lasso()), "model must be an L12Regressor"),
        ((X, np.full(40, "a")), "y must hold at least 2 classes"),
        ((X, (np.arange(40) % 12).astype(str)), "^y: "),  # too few of each for folds
        ((X, np.arange(40) % 3, L12Classifier()), "y must hold 2 classes"),
        ((X, np.ones(40, dtype=bool), classes), "y must hold at least 2 classes"),
        ((X[:, :4], y, L12Regressor(0.3).fit(X, y)), "X has 4 features"),
        ((X[:5], y[:5], L12Regressor(0.0)), "nothing is left to tell the noise from"),
        ((X, X[:, 0], L12Regressor(0.0)), "without error"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            confidence_intervals(*arguments)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        confidence_intervals(X, y, level=95)


# Many tests


def rejected_by_holm(p, level):
    """Step down by the definition: the smallest against level/m, the next against level/(m - 1), ..."""
    found = set()
    for k, j in enumerate(np.argsort(p, kind="stable")):
        if p[j] > level / (len(p) - k):
            break
        found.add(int(j))
    return found


def rejected_by_bh(p, level):
    """Step up by the definition: all up to the last rank k with p_(k) <= k level/m."""
    order = np.argsort(p, kind="stable")
    good = [k for k, j in enumerate(order, start=1) if p[j] <= k * level / len(p)]
    return {int(j) for j in order[: max(good, default=0)]}


@pytest.mark.parametrize(("method", "rejected"), [("holm", rejected_by_holm), ("bh", rejected_by_bh)])
def test_adjusted_values_reject_what_the_definition_rejects_at_every_level(method, rejected):
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        p = random.uniform(size=size) ** 3
        adjusted = adjusted_p_values(p, method)
        for level in (0.01, 0.05, 0.2, 0.9):
            assert set(np.flatnonzero(adjusted <= level).tolist()) == rejected(p, level)
    found = adjusted_p_values(np.array([0.01, np.nan, 0.04]), method)  # what is missing stays and does not count
    np.testing.assert_array_equal(found, np.insert(adjusted_p_values(np.array([0.01, 0.04]), method), 1, np.nan))
