"""Stability selection against plain loops over the halves, and its bounds against linear programs."""

import warnings

import joblib
import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lasso, LogisticRegression, lasso_path
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ell12
from ell12 import (
    L1,
    L12,
    GroupL12,
    L12Classifier,
    L12CoxRegressor,
    L12Regressor,
    L12RegressorCV,
    RowsL12,
    StabilitySelection,
)
from ell12.selection.half_samples import complementary_pairs
from ell12.selection.stability import THRESHOLD, expected_false_bound, settle

N, P = 40, 12
TRUE = (2, 5)
FEW = {"n_subsamples": 6, "alphas": 30, "random_state": 0}
SHORT = {"n_subsamples": 2, "alphas": 8, "eps": 0.05, "random_state": 0}  # where nothing is compiled


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((N, P))
    return X, 2 * X[:, 2] - 2 * X[:, 5] + random.standard_normal(N)


def halves():
    """Those that random_state=0 makes: the generator is asked for them first."""
    return np.concatenate(list(complementary_pairs(3, np.arange(N), None, np.random.RandomState(0))))


def first_features(coefs, most):
    """By the definition: column after column, those that are not zero yet, the larger first."""
    found, numbers = [], []
    for k, column in enumerate(coefs.T):
        new = [j for j in np.argsort(-np.abs(column)) if column[j] != 0 and j not in found]
        found += new
        numbers += [k] * len(new)
    return found[:most], numbers[:most]


def frequencies(paths, most, n_alphas):
    """The share of the paths that have selected each feature down to each strength."""
    shares = np.zeros((n_alphas, P))
    for coefs in paths:
        for j, k in zip(*first_features(coefs, most), strict=True):
            shares[k:, j] += 1 / len(paths)
    return shares


def check_path(found, path, most):
    """That the frequencies are those of a loop over the halves with another path of the same penalty."""
    expected = frequencies([path(rows) for rows in halves()], most, found.alphas_.size)
    np.testing.assert_allclose(found.path_frequencies_, expected, atol=1e-12)
    np.testing.assert_array_equal(found.frequencies_, found.path_frequencies_[-1])
    assert np.any((expected[-1] > 0) & (expected[-1] < 1))  # else this compares little
    np.testing.assert_array_equal(found.get_support(), expected[-1] >= 0.7)


def test_frequencies_are_those_of_a_loop_with_the_lasso_path_of_scikit_learn(data):
    X, y = data
    found = StabilitySelection(L12Regressor(penalty=L1(), tol=1e-8), most_selected=4, **FEW).fit(X, y)
    centred = lambda rows: (X[rows] - X[rows].mean(axis=0), y[rows] - y[rows].mean())  # noqa: E731
    check_path(found, lambda rows: lasso_path(*centred(rows), alphas=found.alphas_, tol=1e-10)[1], 4)
    penalty = L12(l2_weight=0.7, positive=True, ridge=0.1)  # and with another penalty of l12_path
    found = StabilitySelection(L12Regressor(penalty=penalty), most_selected=3, **FEW).fit(X, y)
    check_path(found, lambda rows: ell12.l12_path(*centred(rows), alphas=found.alphas_, penalty=penalty).x, 3)


def test_several_targets_and_classes_count_where_any_coefficient_does(data):
    X, y = data
    targets = np.column_stack([y, X[:, 7] + 0.1 * y])
    found = StabilitySelection(L12Regressor(penalty=L1(), tol=1e-8), most_selected=4, **FEW).fit(X, targets)

    def path(rows):
        A = X[rows] - X[rows].mean(axis=0)
        pair = [lasso_path(A, b - b.mean(), alphas=found.alphas_, tol=1e-10)[1] for b in targets[rows].T]
        return np.where(np.abs(pair[0]) > np.abs(pair[1]), *pair)

    check_path(found, path, 4)
    classes = np.digitize(y, [-1, 1])
    for model in (L12Classifier(), L12Classifier(loss="multinomial")):
        found = StabilitySelection(model, most_selected=4, **SHORT).fit(X, classes)
        assert set(TRUE) <= set(found.get_support(indices=True))
    shared = StabilitySelection(L12Regressor(penalty=RowsL12()), most_selected=4, **SHORT).fit(X, targets)
    assert {*TRUE, 7} <= set(shared.get_support(indices=True))


def test_halves_are_disjoint_equal_and_keep_the_shares_of_the_strata():
    random, strata = np.random.RandomState(1), np.repeat([0, 1, 2], [2, 9, 14])
    for half, other in complementary_pairs(20, np.arange(25), strata, random):
        assert half.size == other.size == 12
        assert np.intersect1d(half, other).size == 0
        counts = np.stack([np.bincount(strata[rows], minlength=3) for rows in (half, other)])
        assert np.abs(counts[0] - counts[1]).max() <= 1
    left = [
        np.setdiff1d(np.arange(5), np.concatenate(pair))
        for pair in complementary_pairs(99, np.arange(5), None, random)
    ]
    assert set(np.concatenate(left)) == set(range(5))  # not always the same one


def test_a_group_counts_as_one_and_free_or_constant_features_do_not_count(data):
    X, y = data
    grouped = L12Regressor(penalty=GroupL12(np.arange(P) // 3))
    found = StabilitySelection(grouped, most_selected=1, **SHORT).fit(X, y)
    assert found.n_candidates_ == 4
    assert (found.frequencies_.reshape(4, 3) == found.frequencies_[::3, None]).all()
    assert found.frequencies_[::3].sum() == pytest.approx(1.0)
    constant = X.copy()
    constant[:, 1] = 3.0
    factors = np.where(np.arange(P) == 9, 0.0, 1.0)
    factors[8] = np.inf
    found = StabilitySelection(L12Regressor(penalty=L12(weights=factors)), most_selected=2, **FEW).fit(constant, y)
    assert found.n_candidates_ == P - 3
    assert found.bound_ == pytest.approx(2**2 / (0.4 * (P - 3)))
    assert (found.frequencies_[[1, 8, 9]] == [0.0, 0.0, 1.0]).all()
    assert found.n_selected_ == 2.0
    assert set(TRUE) | {9} == set(found.get_support(indices=True))


def test_copies_of_a_column_share_its_frequency(data):
    X, y = data
    doubled = np.column_stack([X, X[:, 2]])
    plain = StabilitySelection(most_selected=2, **FEW).fit(X, y).frequencies_[2]
    found = StabilitySelection(most_selected=2, **FEW).fit(doubled, y).frequencies_
    assert found[2] + found[P] >= plain == 1.0
    assert not np.isnan(found).any()


def test_survival_times_and_counts_and_weights(data):
    X, y = data
    times = np.column_stack([np.exp(-y), np.arange(N) % 3 > 0])
    cox = StabilitySelection(L12CoxRegressor(), most_selected=4, **SHORT).fit(X, times)
    assert set(TRUE) <= set(cox.get_support(indices=True))
    counts = np.random.default_rng(1).poisson(np.exp(0.7 * y))
    poisson = StabilitySelection(L12Regressor(loss="poisson"), most_selected=4, **FEW).fit(X, counts)
    assert set(TRUE) <= set(poisson.get_support(indices=True))
    weight = np.where(np.arange(N) < 30, 2.0, 0.0)
    weighted = StabilitySelection(**FEW).fit(X, y, sample_weight=weight)
    left_out = StabilitySelection(**FEW).fit(X[:30], y[:30])
    np.testing.assert_array_equal(weighted.path_frequencies_, left_out.path_frequencies_)


def test_other_estimators_select_their_largest_coefficients(data):
    X, y = data
    found = StabilitySelection(Lasso(0.3), most_selected=3, **FEW).fit(X, y)
    counts = np.zeros(P)
    for rows in halves():
        coef = np.abs(Lasso(0.3).fit(X[rows], y[rows]).coef_)
        counts[[j for j in np.argsort(-coef)[:3] if coef[j] > 0]] += 1
    np.testing.assert_allclose(found.frequencies_, counts / 6)
    assert not hasattr(found, "path_frequencies_")
    forest = RandomForestRegressor(2)
    one, two = (StabilitySelection(forest, **SHORT).fit(X, y).frequencies_ for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert forest.random_state is None
    logistic = StabilitySelection(LogisticRegression(), most_selected=4, **FEW).fit(X, y > 0)
    assert logistic.get_support()[list(TRUE)].all()
    chosen = StabilitySelection(L12RegressorCV(alphas=5, eps=0.1, cv=KFold(2)), **SHORT).fit(X, y)
    assert chosen.get_support()[list(TRUE)].all()


def test_any_number_of_jobs_gives_the_same_bits(data):
    X, y = data
    one = StabilitySelection(**FEW).fit(X, y)
    with joblib.parallel_config("threading"):  # processes take seconds to start
        two = StabilitySelection(**FEW, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.path_frequencies_, two.path_frequencies_)
    other = StabilitySelection(**FEW | {"random_state": 1}).fit(X, y)
    assert not np.array_equal(one.path_frequencies_, other.path_frequencies_)


def test_ctrl_c_leaves_the_last_fit_as_it_was(data, monkeypatch):
    X, y = data
    found = StabilitySelection(**FEW).fit(X, y)
    before = {name: value for name, value in vars(found).items() if name.endswith("_")}

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ell12.path.screened.ScreenedPath.next_block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, 2 * y)
    assert all(vars(found)[name] is value for name, value in before.items())
    monkeypatch.setattr("ell12.path.paths.screened_path", lambda *_: None)
    monkeypatch.setattr("ell12.minimization.loop.certificate", interrupted)  # which a run of its own answers
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, 2 * y)


def test_a_feature_that_separates_the_classes_comes_in_first(data):
    X = data[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for l2_weight in (0.5, 1.0):
            model = L12Classifier(penalty=L12(l2_weight=l2_weight))
            found = StabilitySelection(model, most_selected=1, **SHORT).fit(X, X[:, 4] > 0)
            assert found.frequencies_[4] == 1.0


def test_paths_that_do_not_converge_are_reported_once(data):
    X, y = data
    model = L12Regressor(solver=ell12.solvers.ProximalGradient(), max_iter=2)
    with pytest.warns(UserWarning, match=r"did not converge in \d+ of \d+ problems") as reported:
        StabilitySelection(model, **SHORT).fit(X, y)
    assert len(reported) == 1


RARE, NEGATIVE = np.arange(N) == 1, {"sample_weight": np.full(N, -1.0)}
BAD = [
    *(("n_subsamples", {"n_subsamples": count}, {}) for count in (5, 0, 2.5)),
    ("random_state", {"random_state": "word"}, {}),
    ("alphas", {"alphas": 0}, {}),
    ("samples", {}, {"X": np.ones((3, P)), "y": np.arange(3.0)}),
    *(("NaN", {"estimator": own}, {"X": np.full((N, P), np.nan)}) for own in (None, Lasso())),
    *(("X has no column", {"estimator": own}, {"X": np.ones((N, P))}) for own in (None, Lasso())),
    ("y must hold at least 2 samples", {"estimator": L12Classifier()}, {"y": RARE}),
    ("y must hold at least 2 samples", {"estimator": LogisticRegression()}, {"y": RARE}),
    ("y must hold at least 2 events", {"estimator": L12CoxRegressor()}, {"y": np.c_[np.ones(N), RARE]}),
    ("sample_weight", {}, NEGATIVE),
    ("sample_weight", {"estimator": LogisticRegression()}, {"y": np.arange(N) > 9} | NEGATIVE),
    ("estimator must have coef_", {"estimator": make_pipeline(StandardScaler(), Lasso())}, {}),
    ("estimator must have coef_", {"estimator": KNeighborsRegressor()}, {}),
    ("samples of positive weight", {}, {"sample_weight": (np.arange(N) < 3).astype(float)}),
]


@pytest.mark.parametrize(("words", "options", "change"), BAD)
def test_bad_arguments_and_data_are_refused(data, words, options, change):
    with pytest.raises(ValueError, match=words):
        StabilitySelection(**FEW | options).fit(**{"X": data[0], "y": data[1]} | change)


@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks([StabilitySelection(n_subsamples=2, alphas=16, random_state=0)])
def test_it_passes_the_checks_of_scikit_learn_but_that_a_weight_is_no_number_of_rows(estimator, check):
    if "sample_weight_equivalence" in str(check):  # copies of a row may be in both halves; the notes say so
        with pytest.raises(AssertionError, match="is not equivalent to fitting with removed or repeated"):
            check(estimator)
    else:
        check(estimator)


def largest_tail(mean, share, n_pairs):
    """The most that P(X >= share) can be for X on {0, 1/B, ..., 1} with one mode and at most this mean."""
    values, best = np.arange(n_pairs + 1) / n_pairs, 0.0
    for mode in range(n_pairs + 1):
        signs = np.where(np.arange(n_pairs) < mode, 1.0, -1.0)  # rising up to the mode, then falling
        steps = signs[:, None] * (np.eye(n_pairs, n_pairs + 1) - np.eye(n_pairs, n_pairs + 1, 1))
        found = linprog(
            -(values >= share - 1e-9).astype(float),
            A_ub=np.vstack([steps, values]),
            b_ub=np.append(np.zeros(n_pairs), mean),
            A_eq=np.ones((1, n_pairs + 1)),
            b_eq=[1.0],
        )
        if found.success:  # with a late mode no mean is so small
            best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("chance", [0.1, 0.4])
@pytest.mark.parametrize("threshold", [0.66, 0.75, 0.81, 0.9, 1.0])
def test_the_unimodal_bound_is_the_optimum_of_a_linear_program(chance, threshold):
    n_pairs, p = 10, 20
    q = round(chance * p)
    share = np.ceil(2 * n_pairs * threshold - 1e-9) / (2 * n_pairs)  # frequencies are multiples of 1/20
    # Of p features that are selected with this chance, both halves of a pair select each with its square.
    expected = p * largest_tail(chance**2, 2 * share - 1, n_pairs)
    found = expected_false_bound(q, p, threshold, 2 * n_pairs, "unimodal")
    assert found == pytest.approx(min(expected, q**2 / ((2 * threshold - 1) * p)))


def test_where_the_unimodal_theorem_says_nothing_the_plain_bound_stands():
    assert expected_false_bound(14, 20, 0.9, 20, "unimodal") == expected_false_bound(14, 20, 0.9, 20)
    assert expected_false_bound(8, 20, 0.55, 20, "unimodal") == expected_false_bound(8, 20, 0.55, 20)
    assert expected_false_bound(20, 20, 0.6, 20) == 20.0  # no more than there are


@pytest.mark.parametrize("assumption", [None, "unimodal"])
@pytest.mark.parametrize("p", [10, 40, 160, 1000])
def test_two_settings_give_the_third_and_it_is_the_best_there_is(p, assumption):
    for threshold in (0.6, 0.75, 0.9):
        for wanted in (1.0, 2.0):
            found = settle(p, 100, threshold=threshold, expected_false=wanted, assumption=assumption)
            bounds = [expected_false_bound(q, p, threshold, 100, assumption) for q in range(1, p + 1)]
            good = [q for q, bound in enumerate(bounds, 1) if bound <= wanted * (1 + 1e-9)]
            assert found.most_selected == max(good)
            assert found.bound == bounds[found.most_selected - 1]
    found = settle(p, 100, most_selected=2, expected_false=1.5, assumption=assumption)
    assert found.bound <= 1.5
    below = found.threshold - 0.01
    assert below <= 0.5 or expected_false_bound(2, p, below, 100, assumption) > 1.5
    for threshold in (0.6, 0.7, 0.8, 0.9):  # nothing that was asked for is exceeded by rounding
        assert settle(p, 100, threshold=threshold, expected_false=1.0, assumption=assumption).bound <= 1.0


def test_a_plain_call_with_few_features_lets_halves_select_one_and_says_what_that_promises():
    found = settle(1, 10)
    assert (found.most_selected, found.threshold) == (1, THRESHOLD)
    assert found.bound == 1.0
    assert settle(100, 10, most_selected=7) == settle(100, 10, most_selected=7, threshold=THRESHOLD)


IMPOSSIBLE = [
    *(("threshold", {"threshold": value}) for value in (0.5, 1.01, "high")),
    ("expected_false", {"expected_false": 0.0}),
    ("expected_false", {"expected_false": 0.001, "threshold": 0.6}),
    ("expected_false", {"expected_false": 0.1, "most_selected": 30}),
    ("most_selected", {"most_selected": 0}),
    ("most_selected", {"most_selected": 5, "threshold": 0.7, "expected_false": 1.0}),
    ("assumption", {"assumption": "r-concave"}),
]


@pytest.mark.parametrize(("name", "settings"), IMPOSSIBLE)
def test_impossible_settings_are_refused_by_name(name, settings):
    with pytest.raises(ValueError, match=f"^{name}"):
        settle(100, 100, **settings)
