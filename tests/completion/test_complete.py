"""complete_matrix and completion_path: offsets, solvers, hidden entries, wrong arguments."""

import numpy as np
import pytest
import scipy.sparse

from ell12 import L12Imputer, Observed, SpectralL12, Status, complete_matrix, completion_path
from ell12.completion import AlternatingLeastSquares, BlockAPG, FactoredAPG, FullSVD
from ell12.completion.hidden_entries import rank_one_fit
from ell12.penalties import SpectralLogSum

PLAIN = {"center": None, "scale": None}
SOLVERS = [BlockAPG(), FactoredAPG(), AlternatingLeastSquares(), FullSVD()]


def table(shape=(40, 30), known=0.5, seed=0, mean=4.0):
    random = np.random.default_rng(seed)
    X = mean + random.standard_normal((shape[0], 2)) @ random.standard_normal((2, shape[1]))
    X += 0.2 * random.standard_normal(shape)
    return np.where(random.random(shape) < known, X, np.nan), X


@pytest.mark.parametrize("alpha", [None, "noise", 6.0])
@pytest.mark.parametrize("known", [0.1, 0.6])
def test_the_function_and_the_imputer_choose_alike(known, alpha):
    X = table(known=known)[0]
    model = L12Imputer(alpha, random_state=3).fit(X)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    result = complete_matrix(X, alpha, random_state=seed)
    for name in ("alpha", "max_rank", "center", "scale"):
        assert getattr(model, f"{name}_") == getattr(result, name)
    assert model.penalty_.l2_weight == result.penalty.l2_weight
    np.testing.assert_array_equal(model.completion_.to_array(), result.to_array())


def test_the_strength_is_given_next_to_the_penalty_or_in_it():
    known = table()[0]
    inside = complete_matrix(known, penalty=SpectralL12(2.0, 0.5), tol=1e-6)
    apart = complete_matrix(known, 2.0, penalty=SpectralL12(l2_weight=0.5), tol=1e-6)
    assert inside.alpha == apart.alpha == 2.0
    assert repr(inside).startswith("Completion(CONVERGED: objective ")
    assert repr(inside).endswith("alpha 2)")
    np.testing.assert_array_equal(inside.to_array(), apart.to_array())
    with pytest.raises(ValueError, match=r"alpha is given twice: 1\.0 and SpectralL12\(alpha=2\.0\)"):
        complete_matrix(known, 1.0, penalty=SpectralL12(2.0))


def test_the_strength_of_another_penalty_is_chosen_too():
    known, X = table()
    result = complete_matrix(known, penalty=SpectralLogSum())
    assert isinstance(result.penalty, SpectralLogSum)
    assert result.alpha > 0
    assert np.sqrt(np.mean((result.to_array() - X)[np.isnan(known)] ** 2)) < 0.5


@pytest.mark.parametrize("center", [None, "mean", "biases"])
def test_rows_and_columns_of_which_nothing_is_known_have_their_offsets(center):
    known = table()[0]
    known[3], known[:, 4] = np.nan, np.nan
    result = complete_matrix(known, 0.5, center=center, scale=None)
    expected, full = result.offsets.add_to(np.zeros(known.shape)), result.to_array()
    np.testing.assert_allclose(full[3], expected[3], atol=1e-12)
    np.testing.assert_allclose(full[:, 4], expected[:, 4], atol=1e-12)
    np.testing.assert_allclose(result.predict([3, 0, 0], [1, 4, 0]), full[[3, 0, 0], [1, 4, 0]], atol=1e-12)


def test_the_solver_suits_the_problem():
    dense, sparse = table()[0], table(known=0.2)[0]
    assert complete_matrix(dense, 6.0, max_rank=None).solver == "BlockAPG"
    assert complete_matrix(sparse, 6.0, max_rank=None).solver == "FactoredAPG"
    few = complete_matrix(sparse, 6.0)
    assert (few.max_rank, few.solver) == (8, "AlternatingLeastSquares")
    assert complete_matrix(sparse, 6.0, max_rank=8, penalty=SpectralLogSum()).solver == "FactoredAPG"


@pytest.mark.parametrize("call", [complete_matrix, completion_path, lambda X, **kw: L12Imputer(**kw).fit(X)])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rank": 0}, "max_rank"),
        ({"tol": None}, "tol must be a number >= 0, got None"),
        ({"max_iter": 1.5}, "max_iter must be a whole number"),
        *(({"alpha": alpha}, "alpha") for alpha in (-1.0, np.inf)),
    ],
)
def test_wrong_options(call, options, message):
    if call is completion_path and "alpha" in options:
        options = {"alphas": options["alpha"]}
    with pytest.raises((ValueError, TypeError), match=message):
        call(table()[0], **options)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e-200), (np.float64, 1e200), (np.float32, 1e-30)])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_entries_without_squares_are_refused(dtype, scale, as_sparse):
    X = (table()[0] * scale).astype(dtype)
    if as_sparse:
        X = scipy.sparse.coo_array((X[~np.isnan(X)], np.nonzero(~np.isnan(X))), shape=X.shape)
    with pytest.raises(ValueError, match=r"^X holds numbers up to .*, too (small|large) for their squares in"):
        complete_matrix(X)
    assert complete_matrix(np.zeros((3, 3))).x.rank == 0


def test_a_path_is_validated_on_what_it_has_not_seen():
    known, X = table()
    path = completion_path(known, alphas=8, eps=0.02, center="mean", scale=None)
    assert path.ranks[0] == 1
    assert path.ranks[-1] > path.ranks[0]
    assert 0 < path.best < 7
    assert np.all(np.diff(path.alphas) < 0)
    best = path.results[path.best]
    error = best.predict(path.held_out.rows, path.held_out.columns) - path.held_out.values
    assert path.errors[path.best] == pytest.approx(np.sqrt(np.mean(error**2)))
    hidden = X[np.isnan(known)]
    assert np.sqrt(np.mean((best.to_array()[np.isnan(known)] - hidden) ** 2)) < 0.3


@pytest.mark.parametrize("solver", SOLVERS[:3])
def test_a_path_begins_with_the_best_matrix_of_rank_one(solver):
    for seed in range(5):
        known = table(mean=0.0, seed=seed)[0]
        first = completion_path(known, held_out=0, alphas=2, eps=0.5, **PLAIN, solver=solver).results[0]
        assert first.x.rank == 1
        errors = [np.nansum((fit.to_array() - known) ** 2) for fit in (first.x, rank_one_fit(Observed.of(known)))]
        assert errors[0] == pytest.approx(errors[1], rel=1e-5)


def test_a_path_that_is_interrupted_has_the_strengths_that_are_done():
    class Interrupted(BlockAPG):
        runs = 0

        def iterates(self, loss, penalty, start):
            Interrupted.runs += 1
            for n, iterate in enumerate(super().iterates(loss, penalty, start)):
                if (Interrupted.runs, n) == (2, 1):
                    raise KeyboardInterrupt
                yield iterate

    path = completion_path(table()[0], alphas=4, solver=Interrupted(), tol=1e-6)
    assert [result.status for result in path.results] == [Status.CONVERGED, Status.STOPPED]
    assert path.alphas.size == path.errors.size == 2


def test_given_entries_and_strengths():
    train, hidden = Observed.of(table()[0]).split(0.2, 3)
    path = completion_path(train, alphas=[1.0, 3.0, 2.0], held_out=hidden, penalty=SpectralL12(l2_weight=0.5))
    assert path.held_out is hidden
    assert path.alphas.tolist() == [3.0, 2.0, 1.0]
    unjudged = completion_path(train, held_out=0, alphas=2)
    assert np.isnan(unjudged.errors).all()
    with pytest.raises(ValueError, match="hidden"):
        _ = unjudged.best


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.eye(3) + np.where(np.eye(3) > 0, 0, np.nan), {}, "held_out=0.1 of 3 known entries is none"),
        (table()[0], {"held_out": 1.5}, "held_out must lie between 0 and 1, got 1.5"),
        (table()[0], {"penalty": SpectralLogSum(5.0, 2.0)}, "alpha is given twice"),
        (table()[0], {"held_out": scipy.sparse.eye_array(3)}, "shape"),
        (table()[0], {"eps": 2.0}, "eps"),
        (table()[0], {"alphas": [[1.0]]}, "alphas"),
    ],
)
def test_wrong_paths(X, options, message):
    with pytest.raises(ValueError, match=message):
        completion_path(X, **options)
