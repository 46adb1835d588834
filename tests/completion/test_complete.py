"""complete_matrix with nothing said: the same choices as the imputer, and a word where biases alone do better."""

import warnings

import numpy as np
import pytest

from ell12 import L12Imputer, Observed, SpectralL12, Status, complete_matrix
from ell12.completion.offsets import fit_offsets
from ell12.datasets import synthetic_ratings


def ratings(seed=0, shape=(150, 120), count=3000, **options):
    drawn = synthetic_ratings(seed, *shape, count, **options)
    return Observed(drawn.rows, drawn.columns, drawn.values, drawn.shape)


def low_rank(seed=0, shape=(30, 20), known=0.6):
    random = np.random.default_rng(seed)
    X = random.standard_normal((shape[0], 2)) @ random.standard_normal((2, shape[1]))
    return np.where(random.random(shape) < known, X, np.nan), X


@pytest.mark.parametrize("alpha", ["holdout", "noise", 6.0])
@pytest.mark.parametrize("observed", [ratings(count=2000), Observed.from_mask(low_rank()[1], low_rank()[1] > -1)])
def test_the_function_and_the_imputer_choose_alike(observed, alpha):
    X = np.where(observed.mask(), observed.dense(), np.nan)
    model = L12Imputer(alpha, random_state=3, n_alphas=6).fit(X)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    result = complete_matrix(X, alpha, random_state=seed, n_alphas=6, tol=model.tol)
    for name in ("alpha", "l2_weight", "max_rank", "center", "scale"):
        assert getattr(model, f"{name}_") == getattr(result, name)
    np.testing.assert_array_equal(model.completion_.to_array(), result.to_array())


def test_a_matrix_of_low_rank_is_found_by_the_plain_call():
    known, X = low_rank()
    result = complete_matrix(known)
    assert result.center is None
    missing = np.isnan(known)
    assert np.linalg.norm((result.to_array() - X)[missing]) < 0.05 * np.linalg.norm(X[missing])


def test_a_penalty_of_its_own_is_minimised_as_it_is():
    known, _ = low_rank()
    result = complete_matrix(known, penalty=SpectralL12(0.5), tol=1e-6)
    expected = complete_matrix(known, 0.5, l2_weight=1.0, center=None, scale=None, max_rank=None, tol=1e-6)
    assert (result.center, result.scale, result.max_rank) == (None, None, None)
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)


def test_ratings_are_capped_unless_no_bound_is_asked_for():
    observed = ratings()
    assert complete_matrix(observed, "noise").max_rank is not None
    assert complete_matrix(observed, 30.0).max_rank == 8
    assert complete_matrix(observed, 30.0, max_rank=None).max_rank is None


def test_a_strength_that_does_worse_than_biases_is_said():
    """Hardly any penalty, and little signal: the factors follow the noise."""
    observed = ratings(rank=0, noise=1.0)
    train, hidden = observed.split(0.2, 5)
    with pytest.warns(UserWarning, match="biases of rows and columns alone predict hidden entries with an error"):
        fit = complete_matrix(train, 0.5)
    errors = [
        np.linalg.norm(guess - hidden.values)
        for guess in (
            fit.predict(hidden.rows, hidden.columns),
            fit_offsets(train, "biases").entries(hidden.rows, hidden.columns),
        )
    ]
    assert errors[0] > errors[1]  # which the warning is about


def test_nothing_is_said_where_the_fit_is_better_or_everything_was_given():
    signal = ratings(rank=2, factor_deviation=1.0, noise=0.3)
    noise = ratings(rank=0, noise=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        complete_matrix(signal, 10.0)
        complete_matrix(noise, 0.5, l2_weight=1.0, max_rank=2, center="biases", scale=None)


def test_ctrl_c_in_the_search_gives_the_best_so_far(ctrl_c_after):
    result = complete_matrix(ratings(), stop=ctrl_c_after(12))
    assert result.status is Status.STOPPED
    assert result.search.stopped
    assert np.isfinite(result.predict([0, 1], [2, 3])).all()


def test_rows_and_columns_of_which_nothing_is_known_have_the_biases_of_the_other_side():
    known, _ = low_rank()
    known[3], known[:, 4] = np.nan, np.nan
    result = complete_matrix(known + 2.0, 0.5, center=None, scale=None)
    biases = fit_offsets(Observed.from_mask(np.nan_to_num(known + 2.0), ~np.isnan(known)), "biases")
    expected = biases.add_to(np.zeros(known.shape))
    full = result.to_array()
    np.testing.assert_allclose(full[3], expected[3])
    np.testing.assert_allclose(full[:, 4], expected[:, 4])
    np.testing.assert_allclose(result.predict([3, 0, 0], [1, 4, 0]), full[[3, 0, 0], [1, 4, 0]])
