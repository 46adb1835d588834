"""Linear systems of images, against dense matrices made column by column."""

import numpy as np
import pytest

from ell12 import TotalVariationL12
from ell12.operators.image_operators import Convolution, FourierSampling, Identity
from ell12.restoration.splitting_parts import difference_symbol, exact_solver, has_exact_solver, normal_product

SHAPE = (5, 6)


def operator(name):
    random = np.random.default_rng(0)
    if name == "identity":
        return Identity(SHAPE)
    return (
        Convolution(random.random((3, 3)), SHAPE)
        if name == "blur"
        else FourierSampling(random.random(SHAPE) < 0.5)
    )


def dense(times):
    """The matrix of a map of images, column by column."""
    return np.stack([times(e.reshape(SHAPE)).ravel() for e in np.eye(30)], axis=1)


def differences(boundary):
    """D'D by its definition: each pixel against its right and its lower neighbour."""
    gram = np.zeros((30, 30))
    number = np.arange(30).reshape(SHAPE)
    for axis in (0, 1):
        ends = np.roll(number, -1, axis)
        for i in np.ndindex(SHAPE):
            if boundary == "periodic" or i[axis] < SHAPE[axis] - 1:
                row = np.zeros(30)
                row[number[i]] -= 1
                row[ends[i]] += 1
                gram += np.outer(row, row)
    return gram


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
def test_the_symbol_holds_the_eigenvalues_of_the_differences(boundary):
    expected = np.linalg.eigvalsh(differences(boundary))
    np.testing.assert_allclose(np.sort(difference_symbol(SHAPE, boundary).ravel()), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "boundary"),
    [("identity", "neumann"), ("identity", "periodic"), ("blur", "periodic"), ("frequencies", "periodic")],
)
def test_exact_solutions_solve_the_system_written_out(name, boundary):
    A, penalty = operator(name), TotalVariationL12(0.1, boundary=boundary)
    assert has_exact_solver(A, penalty)
    matrix = dense(lambda x: A @ x)
    system = (matrix.conj().T @ matrix).real + 0.7 * differences(boundary) + 0.2 * np.eye(30)
    np.testing.assert_allclose(dense(normal_product(A, penalty, 0.7, 0.2)).real, system, atol=1e-12)
    right = np.random.default_rng(1).standard_normal(SHAPE)
    found = exact_solver(A, penalty, right)(right, 0.7, 0.2)
    np.testing.assert_allclose(found.ravel(), np.linalg.solve(system, right.ravel()), atol=1e-11)


def test_what_no_transform_makes_diagonal_is_refused_by_name():
    blur = Convolution(np.ones((3, 3)) / 9, SHAPE)
    penalty = TotalVariationL12(0.1, boundary="neumann")
    assert not has_exact_solver(blur, penalty)
    with pytest.raises(ValueError, match="an exact step needs denoising, or a Convolution"):
        exact_solver(blur, penalty, np.zeros(SHAPE))
