"""Bad arguments that once reached NumPy, SciPy or scikit-learn: the error names the argument."""

import numpy as np
import pytest

import ell12

A = np.random.default_rng(0).standard_normal((12, 3))
b = A[:, 0]
RAGGED = [[1.0, 2.0], [3.0]]


def minimized(**options):
    return ell12.minimize(ell12.SquaredLoss(A, b), ell12.L12(0.5), **options)


CALLS = [
    ("z", lambda: ell12.prox_l12(RAGGED, 1.0)),
    ("Z", lambda: ell12.prox_l12_spectral(RAGGED, 1.0)),
    ("X", lambda: ell12.complete_matrix(RAGGED, 1.0)),
    ("axis", lambda: ell12.prox_l12(A, 1.0, axis="word")),
    ("axis", lambda: ell12.prox_l12(A, 1.0, axis=0.5)),
    ("U", lambda: ell12.LowRank([1.0], np.ones(1), np.ones((2, 1)))),
    ("s", lambda: ell12.LowRank(np.ones((2, 1)), np.array(["a"]), np.ones((2, 1)))),
    ("G", lambda: ell12.QuadraticLoss(object(), b)),
    ("c", lambda: ell12.QuadraticLoss(np.eye(2), np.array(["a", "b"]))),
    ("G", lambda: ell12.QuadraticLoss(1j * np.eye(2), np.ones(2))),
    ("constant", lambda: ell12.QuadraticLoss(np.eye(2), np.ones(2), "word")),
    ("shape", lambda: ell12.Observed([0], [0], [1.0], 0.5)),
    ("shape", lambda: ell12.Observed([0], [0], [1.0], (1.5, 2))),
    ("engine", lambda: ell12.complete_matrix(A, 1.0, engine={})),
    ("alpha", lambda: ell12.complete_matrix(A, np.array([0.5, 2.0]))),
    ("alpha", lambda: ell12.complete_matrix(A, 10**400)),
    ("max_rank", lambda: ell12.FullSVD(np.array([1, 2]))),
    ("random_state", lambda: ell12.L12Imputer(random_state="word").fit(A)),
    ("stop", lambda: minimized(stop=1.0)),
    ("chunks", lambda: ell12.minimize(ell12.StreamedLoss(3), ell12.L12(0.5))),
    ("X", lambda: ell12.L12Regressor().fit(b, b)),
    ("X", lambda: ell12.L12Classifier().fit(A[:-1], b > 0)),
    ("sample_weight", lambda: ell12.L12Regressor().fit(A, b, sample_weight="")),
    ("sample_weight", lambda: ell12.L12Regressor().fit(A, b, sample_weight=[])),
    ("fit_intercept", lambda: ell12.L12Regressor(fit_intercept=np.array([0.5, 2.0])).fit(A, b)),
    ("positive", lambda: ell12.L12Regressor(positive="no").fit(A, b)),
    ("x", lambda: ell12.SpectralL12(1.0).value(np.full((2, 2), "word"))),
    ("x", lambda: ell12.TruncatedNuclear(1.0).prox(np.ones(3), 1.0)),
    ("step", lambda: ell12.SpectralLogSum(1.0).prox(np.eye(2), "word")),
    ("x", lambda: ell12.TotalVariationL12(1.0).value(np.ma.masked_less(A, 0))),
    ("image", lambda: ell12.inpaint_tv(np.ma.masked_less(A, 0), A > 0, 0.1)),
    ("data", lambda: ell12.reconstruct_mri(np.ma.masked_less(A, 0), A > 0, 0.1)),
    ("y", lambda: ell12.L12Regressor().fit(A, np.full(12, "word"))),
    ("y", lambda: ell12.L12Regressor().fit(A, np.full(12, object()))),
    ("X", lambda: ell12.L12Imputer().fit(np.full((4, 3), "word"))),
    ("solver", lambda: ell12.denoise_tv(A, 0.1, solver=np.array([0.5, 2.0]))),
    ("cv", lambda: ell12.L12RegressorCV(cv=0).fit(A, b)),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_the_error_names_the_argument(number):
    name, call = CALLS[number]
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        call()


def test_a_sparse_tensor_is_refused_where_an_array_is_wanted():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="z must be a dense array"):
        ell12.prox_l12(torch.eye(3).to_sparse(), 1.0)


def test_subclasses_of_arrays_are_arrays():
    found = ell12.prox_l12(A.view(type("Subclass", (np.ndarray,), {})), 0.5)
    np.testing.assert_array_equal(found, ell12.prox_l12(A, 0.5))
