import numpy as np
import pytest

from ell12 import L12, l12_path
from ell12.datasets import compressed_sensing, correlated_design


def problem(seed=0, n=40, p=15):
    random = np.random.default_rng(seed)
    A = random.standard_normal((n, p)) * random.uniform(0.3, 3, p)
    return A, A[:, 2] - 0.5 * A[:, 7] + 0.3 * random.standard_normal(n)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphas": 0}, "alphas must be a whole number >= 1"),
        ({"alphas": 2.5}, "alphas must be a vector"),
        ({"eps": "a"}, "eps must lie between 0 and 1"),
        ({"alphas": ["a"]}, "alphas must hold real numbers"),
        ({"penalty": L12(weights=[1.0, 2.0])}, "weights of shape"),
        ({"sample_weight": np.zeros(4)}, "sample_weight sums to zero"),
        ({"y": 3.0}, "y must be a vector"),
        ({"y": np.ones((4, 2))}, "y must be a vector"),
    ],
)
def test_wrong_arguments_of_a_path_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        l12_path(np.eye(4), **{"y": [4.0, 3.0, 0.0, 1.0]} | options)


def test_a_path_begins_with_one_entry_and_falls():
    alphas, coefs, results = l12_path(*problem(), alphas=8)
    assert np.count_nonzero(coefs[:, 0]) == 1
    assert np.count_nonzero(coefs[:, -1]) > 5
    assert (np.diff(alphas) < 0).all()
    assert np.isclose(alphas[-1], 1e-3 * alphas[0])
    assert coefs.shape == (15, 8)
    assert all(result.converged for result in results)


def test_what_warm_starts_lose_and_save():
    """Continuation may end in other minima than runs from zero; on these problems the objectives agree."""
    for data in (correlated_design(0), compressed_sensing(0, n_samples=125)):
        options = {"alphas": 10, "eps": 0.01, "tol": 1e-3}
        _, _, warm = l12_path(data.A, data.b, **options)
        _, _, cold = l12_path(data.A, data.b, warm_start=False, **options)
        ratios = [w.objective / c.objective for w, c in zip(warm, cold, strict=True)]
        assert sum(result.n_iter for result in cold) > 10 * sum(result.n_iter for result in warm)
        assert max(ratios) < 1.005


def test_a_path_in_single_precision_asks_for_no_more_than_rounding_allows():
    A, b = problem()
    alphas, _, results = l12_path(A.astype(np.float32), b, alphas=10, eps=1e-4, tol=1e-6, max_iter=1000)
    assert all(result.converged for result in results)
    assert results[-1].x.dtype == np.float32
    assert results[-1].stationarity * alphas[-1] < 1e-5 * alphas[0]


def test_paths_on_other_arrays(each_library):
    A, b = problem()
    options = {
        "alphas": 3,
        "eps": 0.5,
        "penalty": L12(l2_weight=0.0),
        "tol": 1e-5 if each_library.float64 else 1e-3,
    }
    expected = tuple(l12_path(A, b, **options))
    alphas, coefs, _ = l12_path(each_library.make_array(A), each_library.make_array(b), **options)
    assert type(coefs) is type(each_library.make_array(A))
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if each_library.float64 else {"rtol": 2e-2, "atol": 2e-3}
    np.testing.assert_allclose(alphas, expected[0], **tolerance)
    np.testing.assert_allclose(each_library.to_numpy(coefs), expected[1], **tolerance)
