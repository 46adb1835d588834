"""Problems by seed."""

import numpy as np
import pytest

from ell12.datasets import compressed_sensing, correlated_design, phantom, piecewise_constant, radial_lines


def test_a_seed_names_a_problem():
    first, again, other = compressed_sensing(3), compressed_sensing(3), compressed_sensing(4)
    np.testing.assert_array_equal(first.A, again.A)
    np.testing.assert_array_equal(first.b, again.b)
    assert not np.array_equal(first.b, other.b)
    assert (first.relative_error(first.x), first.relative_error(0 * first.x)) == (0, 1)
    with pytest.raises(ValueError, match="setup"):
        compressed_sensing(0, setup="printed")


@pytest.mark.parametrize(("setup", "length", "noise"), [("stated", 1.0, 0.01), ("calibrated", 0.5, 0.004)])
def test_the_papers_problem_has_the_papers_sizes(setup, length, noise):
    problem = compressed_sensing(0, setup=setup)
    assert problem.A.shape == (500, 2000)
    assert np.count_nonzero(problem.x) == 100
    # The mean square of a cosine is one half; the last columns see many periods.
    np.testing.assert_allclose(np.linalg.norm(problem.A[:, -500:], axis=0), length * np.sqrt(0.5), rtol=0.15)
    assert np.std(problem.b - problem.A @ problem.x) == pytest.approx(noise, rel=0.15)


def test_one_draw_per_row_has_low_numerical_rank():
    A = compressed_sensing(0, one_draw_per_row=True).A
    assert np.linalg.matrix_rank(A, tol=1e-6) < 250
    assert np.linalg.matrix_rank(compressed_sensing(0).A, tol=1e-6) == 500


def test_neighbours_correlate():
    problem = correlated_design(0, n_samples=20_000, n_features=5, n_nonzero=2)
    correlation = np.corrcoef(problem.A.T)
    np.testing.assert_allclose(np.diag(correlation, 1), 0.9, atol=0.01)
    np.testing.assert_allclose(np.diag(correlation, 2), 0.81, atol=0.01)


def test_the_phantom_is_that_of_scikit_image():
    data = pytest.importorskip("skimage.data", reason="the other phantom ships with scikit-image")
    shipped, ours = data.shepp_logan_phantom(), phantom(400)
    assert np.mean(abs(shipped - ours) > 0.02) < 0.01  # edges may fall on the other side of a pixel


@pytest.mark.parametrize("size", [33, 64])
def test_drawn_images_have_few_values_and_many_flat_pixels(size):
    images = piecewise_constant(size)
    assert list(images) == ["Rectangles", "Discs", "Phantom"]
    for image in images.values():
        assert (image.min() >= 0, image.max() <= 1) == (True, True)
        assert 4 <= np.unique(image.round(9)).size <= 13
        flat = (np.diff(image, axis=0)[:, :-1] == 0) & (np.diff(image, axis=1)[:-1] == 0)
        assert flat.mean() > 0.7


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_radial_lines_pass_the_centre_at_equal_angles(count):
    mask = np.fft.fftshift(radial_lines(64, count))
    assert mask[32, 32]
    row, column = np.nonzero(mask)
    row, column = row - 32, column - 32
    angles = np.pi * np.arange(count) / count
    away = abs(np.outer(row, np.cos(angles)) - np.outer(column, np.sin(angles)))
    assert away.min(axis=1).max() <= 0.5 + 1e-9
    assert 64 * count - 40 * count**2 / 2 <= np.count_nonzero(mask) <= 64 * count
    far = np.maximum(abs(row), abs(column)) >= 31
    assert set(away[far].argmin(axis=1)) == set(range(count))
