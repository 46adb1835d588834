"""One completion, and a path of them: offsets, strengths, engines, hidden entries, the figure."""

import numpy as np
import pytest
import scipy.sparse

import ell12
from ell12 import (
    AlternatingLeastSquares,
    BlockAPG,
    CompletionLoss,
    FactoredAPG,
    Observed,
    SpectralL12,
    SpectralLogSum,
    Status,
    complete_matrix,
    completion_path,
    minimize,
)
from ell12.completion.matrix_strength import largest_strength, noise_alpha, rank_one_fit
from ell12.completion.offsets import SHRINKAGE, fit_offsets
from ell12.completion.solve import choose_engine

PLAIN = {"center": None, "scale": None}


def table(shape=(40, 30), known=0.5, seed=0, mean=4.0):
    random = np.random.default_rng(seed)
    X = mean + random.standard_normal((shape[0], 2)) @ random.standard_normal((2, shape[1]))
    X += 0.2 * random.standard_normal(shape)
    return np.where(random.random(shape) < known, X, np.nan), X


# Offsets


def test_biases_solve_their_least_squares():
    observed = ell12.as_observed(table((12, 9))[0])
    offsets = fit_offsets(observed, "biases")
    residual = observed.values - offsets.entries(observed.rows, observed.columns)
    sums = np.bincount(observed.rows, residual, minlength=12)
    np.testing.assert_allclose(sums, SHRINKAGE * offsets.rows, atol=1e-10)  # the last step solved for the rows
    sums = np.bincount(observed.columns, residual, minlength=9)
    np.testing.assert_allclose(sums, SHRINKAGE * offsets.columns, atol=1e-3)


def test_columns_are_means_and_an_empty_one_has_the_mean_of_all():
    X = np.array([[1.0, np.nan, 4.0], [3.0, np.nan, np.nan]])
    offsets = fit_offsets(ell12.as_observed(X), "columns")
    np.testing.assert_allclose(offsets.add_to(np.zeros((2, 3)))[0], [2.0, 8 / 3, 4.0])


@pytest.mark.parametrize("center", [None, "mean", "columns", "biases"])
def test_centring_comes_back(center):
    known, X = table()
    result = complete_matrix(known, 1.0, center=center)
    full = result.to_array()
    np.testing.assert_allclose(result.predict([3, 0], [2, 29]), full[[3, 0], [2, 29]])
    assert np.sqrt(np.mean((full - X)[np.isnan(known)] ** 2)) < 0.5


# Strengths


def test_the_rank_one_fit_is_the_best():
    known = table((15, 12), mean=1.0)[0]
    observed = ell12.as_observed(known)
    best = CompletionLoss(observed)
    value = best.value(best.point(rank_one_fit(observed)))
    random = np.random.default_rng(0)
    for _ in range(5):  # alternating from random starts finds nothing lower
        v = random.standard_normal(12)
        for _ in range(300):
            u = np.nansum(known * v, axis=1) / np.sum(~np.isnan(known) * v**2, axis=1)
            v = np.nansum(known.T * u, axis=1) / np.sum(~np.isnan(known.T) * u**2, axis=1)
        assert value <= 0.5 * np.nansum((known - np.outer(u, v)) ** 2) * (1 + 1e-4)


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_the_largest_strength_is_where_the_least_rank_ends(l2_weight):
    loss = CompletionLoss(table()[0])
    top, least = largest_strength(loss, l2_weight), int(l2_weight == 1)

    def rank(alpha):
        return minimize(loss, SpectralL12(alpha, l2_weight), solver=BlockAPG(), tol=1e-5).x.rank

    assert rank(1.01 * top) == least
    assert rank(0.97 * top) > least


def test_the_size_of_noise():
    random = np.random.default_rng(0)
    mask = random.random((200, 150)) < 0.3
    observed = Observed.from_mask(2.0 * random.standard_normal(mask.shape), mask)
    size = np.linalg.norm(observed.dense(), 2)
    assert noise_alpha(observed) == pytest.approx(size, rel=0.1)
    assert noise_alpha(observed, max_rank=5) == noise_alpha(observed) / 2
    assert noise_alpha(observed, max_rank=5, l2_weight=0.5) == noise_alpha(observed)
    assert complete_matrix(observed, "noise", center=None).alpha == noise_alpha(observed)


# Engines


def test_the_engine_suits_the_problem():
    dense, sparse = CompletionLoss(table()[0]), CompletionLoss(table(known=0.2)[0])
    chosen = {
        BlockAPG: (dense, SpectralL12(1.0), None),
        FactoredAPG: (sparse, SpectralL12(1.0), None),
        AlternatingLeastSquares: (sparse, SpectralL12(1.0), 8),
    }
    for kind, (loss, penalty, rank) in chosen.items():
        assert type(choose_engine("auto", loss, penalty, rank, 0)) is kind
    assert type(choose_engine("auto", sparse, SpectralLogSum(1.0), 8, 0)) is FactoredAPG


@pytest.mark.parametrize("engine", ["block", "factored", "als", "full", BlockAPG()])
def test_every_engine_by_its_name(engine):
    known = table()[0]
    expected = complete_matrix(known, 6.0, center="mean", tol=1e-5, engine="full")
    result = complete_matrix(known, 6.0, center="mean", tol=1e-5, engine=engine)
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)


def test_another_penalty():
    result = complete_matrix(table()[0], penalty=SpectralLogSum(5.0, 2.0), center="mean")
    assert result.converged
    assert result.alpha == 5.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "newton"}, "engine"),
        ({"max_rank": 0}, "max_rank"),
        ({"alpha": "best"}, "alpha"),
        ({"scale": "rows"}, "scale"),
        ({"l2_weight": "most"}, "l2_weight"),
        ({"alpha": -1.0}, "alpha"),
        ({"center": "rows"}, "center"),
        ({"engine": None}, "engine"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        complete_matrix(table()[0], **options)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e-200), (np.float64, 1e200), (np.float32, 1e-30)])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_entries_without_squares_are_refused(dtype, scale, as_sparse):
    X = (table()[0] * scale).astype(dtype)
    if as_sparse:
        X = scipy.sparse.coo_array((X[~np.isnan(X)], np.nonzero(~np.isnan(X))), shape=X.shape)
    with pytest.raises(ValueError, match=r"^X holds numbers up to .*, too (small|large) for their squares in"):
        complete_matrix(X)
    assert complete_matrix(np.zeros((3, 3))).x.rank == 0


def test_a_sparse_vector_is_no_matrix():
    with pytest.raises(ValueError, match=r"X must be a matrix, got shape \(2,\)"):
        complete_matrix(scipy.sparse.coo_array(np.array([1.0, 2.0])))


# The path


def test_a_path_is_judged_on_what_it_has_not_seen():
    known, X = table()
    path = completion_path(known, n_alphas=8, eps=0.02, center="mean", scale=None)
    assert path.ranks[0] == 1
    assert path.ranks[-1] > path.ranks[0]
    assert 0 < path.best < 7
    assert np.all(np.diff(path.alphas) < 0)
    best = path.results[path.best]
    error = best.predict(path.held_out.rows, path.held_out.columns) - path.held_out.values
    assert path.errors[path.best] == pytest.approx(np.sqrt(np.mean(error**2)))
    hidden = X[np.isnan(known)]
    assert np.sqrt(np.mean((best.to_array()[np.isnan(known)] - hidden) ** 2)) < 0.3


@pytest.mark.parametrize("engine", ["block", "factored", "als"])
def test_a_path_begins_with_the_best_matrix_of_rank_one(engine):
    for seed in range(5):
        random = np.random.default_rng(seed)
        X = random.standard_normal((40, 3)) @ random.standard_normal((3, 30)) + 0.3 * random.standard_normal(
            (40, 30)
        )
        known = np.where(random.random(X.shape) < 0.5, X, np.nan)
        first = completion_path(known, held_out=0, n_alphas=2, eps=0.5, **PLAIN, engine=engine).results[0]
        assert first.x.rank == 1
        errors = [
            np.nansum((fit.to_array() - known) ** 2) for fit in (first.x, rank_one_fit(ell12.as_observed(known)))
        ]
        assert errors[0] == pytest.approx(errors[1], rel=1e-5)


def test_given_entries_to_judge_by_and_patience():
    known = table()[0]
    train, hidden = ell12.as_observed(known).split(0.2, 3)
    path = completion_path(train, held_out=hidden, n_alphas=15, center="mean", patience=2)
    assert path.held_out is hidden
    assert len(path.alphas) == path.best + 3
    unjudged = completion_path(train, held_out=0, n_alphas=2)
    assert np.isnan(unjudged.errors).all()
    with pytest.raises(ValueError, match="hidden"):
        _ = unjudged.best


def test_ctrl_c_ends_a_path_with_what_is_done(ctrl_c_after):
    path = completion_path(table()[0], n_alphas=50, stop=ctrl_c_after(30), tol=1e-6)
    assert path.results[-1].status is Status.STOPPED
    assert len(path.alphas) < 50


def test_progress_and_the_figure(capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    path = completion_path(table()[0], n_alphas=3, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "error on hidden entries" in lines[0]
    axes = path.plot()
    np.testing.assert_allclose(axes.lines[0].get_ydata(), path.errors)
    assert "hidden" in axes.get_ylabel()
    matplotlib.pyplot.close(axes.figure)


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.eye(3) + np.where(np.eye(3) > 0, 0, np.nan), {}, "held_out=0.1 of 3 known entries is none"),
        (table()[0], {"held_out": 1.5}, "held_out must lie between 0 and 1, got 1.5"),
        (table()[0], {"patience": -1}, "patience"),
        (table()[0], {"patience": 2, "held_out": 0}, "patience needs hidden entries"),
        (table()[0], {"penalty": SpectralLogSum(5.0, 2.0)}, "penalty"),
        (table()[0], {"l2_weight": -1.0}, "l2_weight"),
        (table()[0], {"held_out": scipy.sparse.eye_array(3)}, "shape"),
        (table()[0], {"eps": 2.0}, "eps"),
    ],
)
def test_wrong_paths(X, options, message):
    with pytest.raises(ValueError, match=message):
        completion_path(X, **options)


@pytest.mark.parametrize(("engine", "max_rank"), [("block", None), ("factored", None), ("als", 3)])
def test_a_completion_goes_on_from_its_checkpoint(tmp_path, engine, max_rank):
    X, _ = table()
    options = {"engine": engine, "max_rank": max_rank, "checkpoint": tmp_path / "x.npz"}
    whole = complete_matrix(X, 1.0, engine=engine, max_rank=max_rank, tol=1e-6)
    part = complete_matrix(X, 1.0, max_iter=3, tol=1e-6, **options)
    assert part.status is Status.MAX_ITER
    rest = complete_matrix(X, 1.0, tol=1e-6, resume=True, **options)
    assert rest.status is whole.status
    assert rest.history["objective"][:4] == part.history["objective"]
    assert rest.objective == pytest.approx(whole.objective, rel=1e-6)
