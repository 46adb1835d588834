"""Projections against scikit-image's, their adjoint, and an image from few views."""

import numpy as np
import pytest
import scipy.sparse.linalg
from skimage.transform import iradon, radon

import ell12
from ell12 import datasets
from ell12.operators import adjoint
from ell12.operators.tomography import radon_matrix

THETA = np.array([0.0, 17.0, 45.0, 90.0, 133.3])


def inside_the_circle(size, seed=0):
    place = np.indices((size, size)) - size // 2
    image = np.random.default_rng(seed).random((size, size))
    return np.where((place**2).sum(axis=0) <= (size // 2 - 1) ** 2, image, 0.0)


@pytest.mark.parametrize("size", [16, 17])
def test_projections_are_those_of_scikit_image(size):
    image = inside_the_circle(size)
    found = (radon_matrix(size, THETA) @ image.ravel()).reshape(size, len(THETA))
    np.testing.assert_allclose(found, radon(image, THETA), atol=1e-10)


def test_the_adjoint_is_exact():
    rng, A = np.random.default_rng(0), radon_matrix(16, THETA)
    for operator in (A, scipy.sparse.linalg.aslinearoperator(A)):
        x, y = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
        assert np.vdot(operator @ x, y) == pytest.approx(np.vdot(x, adjoint(operator) @ y), rel=1e-13)


def test_an_image_is_found_from_few_views():
    size, theta = 24, np.arange(0, 180, 12.0)
    clean = datasets.phantom(size)
    sinogram = radon(clean, theta)
    A = radon_matrix(size, theta)
    x = ell12.restore_tv(sinogram.ravel(), A, 0.01, shape=clean.shape, bounds=(0, None), tol=0.05)
    back = iradon(sinogram, theta)
    assert np.linalg.norm(x - clean) < 0.05 * np.linalg.norm(back - clean)
