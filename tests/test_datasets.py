"""Problems by seed."""

import numpy as np
import pytest

from ell12.datasets import compressed_sensing, correlated_design, photographs


def test_a_seed_names_a_problem():
    first, again, other = compressed_sensing(3), compressed_sensing(3), compressed_sensing(4)
    np.testing.assert_array_equal(first.A, again.A)
    np.testing.assert_array_equal(first.b, again.b)
    assert not np.array_equal(first.b, other.b)


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


def test_relative_error():
    problem = compressed_sensing(0, n_samples=20)
    assert problem.relative_error(problem.x) == 0
    assert problem.relative_error(0 * problem.x) == 1


def test_neighbours_correlate():
    problem = correlated_design(0, n_samples=20_000, n_features=5, n_nonzero=2)
    correlation = np.corrcoef(problem.A.T)
    np.testing.assert_allclose(np.diag(correlation, 1), 0.9, atol=0.01)
    np.testing.assert_allclose(np.diag(correlation, 2), 0.81, atol=0.01)


def test_an_unknown_setup_is_named():
    with pytest.raises(ValueError, match="setup"):
        compressed_sensing(0, setup="printed")


def test_the_photographs_are_grey_and_in_range():
    images = photographs()
    assert list(images) == ["Mountain", "Sea", "Windows"]
    for image in images.values():
        assert image.shape == (512, 512)
        assert image.dtype == np.float64
        assert image.min() >= 0
        assert image.max() <= 1
        assert image.max() - image.min() > 0.3
