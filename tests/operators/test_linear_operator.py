"""Operators of every kind against dense matrices, and ours against NumPy and SciPy as independent oracles."""

import tracemalloc

import numpy as np
import pytest
import scipy.ndimage
import scipy.sparse
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from ell12.operators import (
    ArrayOperator,
    Composition,
    Reshaped,
    adjoint,
    as_operator,
    dtype_of,
    input_shape,
    output_shape,
    select_columns,
    to_dense,
)
from ell12.operators.image_operators import Convolution, FiniteDifference, FourierSampling, Sampling

RNG = np.random.default_rng(12)
MASK = RNG.random((4, 5)) < 0.4
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(params=["numpy", "array_api_strict", "torch", "jax.numpy"])
def xp(request):
    """Each array library that is installed."""
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


def random(shape, dtype=np.float64):
    x = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def tolerance(dtype):
    return 200 * np.finfo(dtype).eps


def made_by(library, make):
    """A function of a NumPy matrix that another library serves, where it is installed."""
    return lambda A: make(pytest.importorskip(library, reason=f"{library} is not installed"), A)


def free_operator(A):
    adjoint_A = A.conj().T
    return LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda y: adjoint_A @ y, dtype=A.dtype)


# How to make an operator of a NumPy matrix, and the arrays that it acts on.
KINDS = {
    "array": (np.array, np.array),
    "fortran": (np.asfortranarray, np.array),
    "strided": (lambda A: np.repeat(A, 2, axis=1)[:, ::2], np.array),
    "matrix": (lambda A: A.view(np.matrix), np.array),
    "csr": (sparse.csr_array, np.array),
    "csc": (sparse.csc_array, np.array),
    "coo": (sparse.coo_array, np.array),
    "bsr": (sparse.bsr_array, np.array),
    "spmatrix": (sparse.csr_matrix, np.array),
    "linear operator": (free_operator, np.array),
    "wrapped matrix": (aslinearoperator, np.array),
    "pylops": (made_by("pylops", lambda xp, A: xp.MatrixMult(A, dtype=A.dtype)), np.array),
    "strict": 2 * (made_by("array_api_strict", lambda xp, A: xp.asarray(A)),),
    "torch": 2 * (made_by("torch", lambda xp, A: xp.asarray(A)),),
    "torch sparse": (
        made_by("torch", lambda xp, A: xp.asarray(A).to_sparse()),
        made_by("torch", lambda xp, A: xp.asarray(A)),
    ),
    "jax": 2 * (made_by("jax.numpy", lambda xp, A: xp.asarray(A)),),
}


def ours(dtype=np.float64):
    """Our operators by name, with kernels in the precision of dtype."""
    real = np.finfo(dtype).dtype
    blur = Convolution(random((3, 2), real), (4, 5))
    complex_blur = Convolution(random((2, 3), np.result_type(real, np.complex64)), (4, 5))
    return {
        "neumann": FiniteDifference((4, 5)),
        "periodic": FiniteDifference((4, 5), boundary="periodic"),
        "line": FiniteDifference(7),
        "volume": FiniteDifference((3, 1, 4)),
        "blur": blur,
        "odd blur": Convolution(random((4, 5, 1), real), (6, 5, 3)),
        "complex blur": complex_blur,
        "sampling": Sampling(MASK),
        "fourier": FourierSampling(MASK),
        "composition": Sampling(MASK) @ blur,
        "complex composition": FourierSampling(MASK) @ complex_blur,
        "mixed composition": Composition(random((3, MASK.sum()), real), Sampling(MASK)),
        "transpose": FourierSampling(MASK).T,
        "columns": select_columns(Convolution(random(3, real), (7,)), [4, 0, 3]),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_acts_as_its_dense_matrix(kind, dtype):
    if kind == "jax" and np.finfo(dtype).bits == 64:
        pytest.skip("JAX computes in single precision by default")
    make, array = KINDS[kind]
    dense, columns = random((4, 6), dtype), np.array([5, 0, 2])
    A = as_operator(make(dense))
    part = select_columns(A, columns)
    assert np.dtype(str(dtype_of(A)).split(".")[-1]) == dtype
    for operator, expected in [
        (A, dense),
        (adjoint(A), dense.conj().T),
        (part, dense[:, columns]),
        (adjoint(part), dense[:, columns].conj().T),
    ]:
        assert (output_shape(operator)[0], input_shape(operator)[0]) == expected.shape
        entries = np.asarray(to_dense(operator))
        np.testing.assert_allclose(entries, expected, rtol=tolerance(dtype))
        assert entries.dtype == dtype
        x = random(expected.shape[1], dtype)
        product = np.asarray(operator @ array(x))
        np.testing.assert_allclose(product, expected @ x, rtol=tolerance(dtype), atol=tolerance(dtype))
        assert product.dtype == dtype


@pytest.mark.parametrize("order", ["C", "F"])
def test_selecting_few_columns_does_not_copy_the_matrix(order):
    A, columns = np.ones((500, 1000), order=order), np.arange(0, 1000, 100)
    tracemalloc.start()
    part = select_columns(A, columns)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert part.shape == (500, 10)
    assert peak < A.nbytes / 10


@pytest.mark.parametrize(
    ("A", "error", "message"),
    [
        ([1.0, 2.0], ValueError, r"design must be two-dimensional, got shape \(2,\)"),
        (sparse.coo_array(np.ones(3)), ValueError, "design must be two-dimensional"),
        (np.ones((0, 3)), ValueError, r"design is empty: its shape is \(0, 3\)"),
        (sparse.csr_array((3, 0)), ValueError, "design is empty"),
        (aslinearoperator(np.ones((0, 3))), ValueError, "design is empty"),
        ([[1.0, np.nan]], ValueError, "design holds NaN or infinity"),
        (np.array([[-np.inf, np.inf]], dtype=np.float32), ValueError, "design holds NaN or infinity"),
        (sparse.lil_array([[0.0, np.inf]]), ValueError, "design holds NaN or infinity"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), TypeError, "design must hold numbers"),
        (type("Half", (), {"__matmul__": None})(), TypeError, "design must be a matrix or an operator"),
        (type("Half", (), {"__matmul__": None, "shape": (2, 2)})(), TypeError, "design must be a matrix or an"),
    ],
)
def test_what_is_no_operator_is_refused_by_name(A, error, message):
    with pytest.raises(error, match=message):
        as_operator(A, name="design")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ours())
def test_adjoint_satisfies_the_dot_product_test(xp, name, dtype):
    if xp.__name__ == "jax.numpy" and np.finfo(dtype).bits == 64:
        pytest.skip("JAX computes in single precision by default")
    if name == "mixed composition" and xp is not np:
        pytest.skip("a NumPy matrix is part of this operator")
    A = ours(dtype)[name]
    x = random(A.input_shape, dtype)
    image = A @ xp.asarray(x)
    y = random(A.output_shape, np.asarray(image).dtype)
    back = A.H @ xp.asarray(y)
    assert type(image) is type(back) is type(xp.asarray(x))
    image, back = np.asarray(image), np.asarray(back)
    assert image.shape == A.output_shape == A.H.input_shape
    assert back.shape == A.input_shape == A.H.output_shape
    scale = np.linalg.norm(image) * np.linalg.norm(y)
    assert abs(np.vdot(y, image) - np.vdot(back, x)) <= tolerance(dtype) * scale


@pytest.mark.parametrize("name", ours())
def test_adjoint_transpose_and_the_bound_on_the_norm_are_those_of_the_dense_matrix(name):
    A = ours()[name]
    dense = to_dense(A)
    assert dense.shape == (np.prod(A.output_shape), np.prod(A.input_shape))
    assert name == "mixed composition" or np.linalg.norm(dense, 2) ** 2 <= A.norm_squared * (1 + 1e-12)
    for operator, expected in [
        (A.H, dense.conj().T),
        (A.T, dense.T),
        (A.H.H, dense),
        (A.T.T, dense),
        (A.T.H, dense.conj()),
        (A.H.T, dense.conj()),
    ]:
        np.testing.assert_allclose(to_dense(operator), expected, atol=1e-14)


@pytest.mark.parametrize("shape", [(7,), (4, 5), (1, 3), (2, 3, 4)])
def test_differences_against_numpy(shape):
    x = random(shape)
    neumann, periodic = (FiniteDifference(shape, boundary) @ x for boundary in ("neumann", "periodic"))
    for axis in range(len(shape)):
        last, first = np.take(x, [-1], axis=axis), np.take(x, [0], axis=axis)
        np.testing.assert_array_equal(neumann[..., axis], np.diff(x, axis=axis, append=last))
        np.testing.assert_array_equal(periodic[..., axis], np.diff(x, axis=axis, append=first))


def test_differences_of_images_are_divided_by_distances():
    x, y = random((3, 4, 5)), random((3, 4, 5, 2))
    D, plain = FiniteDifference((3, 4, 5), ndim=2, spacing=(0.5, 2.0)), FiniteDifference((3, 4, 5), ndim=2)
    np.testing.assert_allclose(D @ x, (plain @ x) / [0.5, 2.0])
    np.testing.assert_allclose(np.vdot(y, D @ x), np.vdot(D.H @ y, x))
    np.testing.assert_array_equal((plain @ x)[1], FiniteDifference((4, 5)) @ x[1])


@pytest.mark.parametrize(
    ("kernel", "shape"),
    [((3,), (8,)), ((4,), (9,)), ((3, 3), (6, 7)), ((2, 5), (6, 5)), ((1, 4), (3, 8)), ((3, 2, 1), (4, 5, 2))],
)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_convolution_against_scipy(kernel, shape, dtype):
    kernel, x = random(kernel, dtype), random(shape)
    expected = scipy.ndimage.convolve(x.astype(dtype), kernel, mode="wrap")
    np.testing.assert_allclose(Convolution(kernel, shape) @ x, expected, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_samples_against_indexing_and_numpys_fft(dtype):
    x, y, filled = random((4, 5), dtype), random(MASK.sum(), np.complex128), np.zeros((4, 5), complex)
    filled[MASK] = y
    np.testing.assert_array_equal(Sampling(MASK) @ x, x[MASK])
    np.testing.assert_array_equal(Sampling(MASK).H @ y, filled)
    np.testing.assert_allclose(FourierSampling(MASK) @ x, np.fft.fft2(x, norm="ortho")[MASK], atol=1e-14)
    np.testing.assert_allclose(FourierSampling(MASK).H @ y, np.fft.ifft2(filled, norm="ortho"), atol=1e-14)


def test_composition_multiplies():
    A, B = Sampling(MASK), Convolution([[0.2, 0.5, 0.3]], (4, 5))
    np.testing.assert_allclose(to_dense(A @ B), to_dense(A) @ to_dense(B), atol=1e-15)
    assert (A @ B).norm_squared == A.norm_squared * B.norm_squared
    matrix = random((3, MASK.sum()))
    np.testing.assert_allclose(to_dense(Composition(matrix, A)), matrix @ to_dense(A), atol=1e-15)
    assert Composition(matrix, A).norm_squared is None
    with pytest.raises(ValueError, match=r"A acts on shape \(4, 5\), but B returns \(8,\)"):
        Composition(B, Sampling(np.ones(8, bool)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FiniteDifference(()), ValueError, "shape must hold positive integers"),
        (lambda: FiniteDifference((3, 0)), ValueError, r"shape must hold positive integers, got \(3, 0\)"),
        (lambda: FiniteDifference((2.5,)), ValueError, "shape must hold positive integers"),
        (lambda: FiniteDifference((2, 2), "mirror"), ValueError, "boundary must be 'neumann' or 'periodic', got"),
        (lambda: Convolution(np.ones(3), (4, 4)), ValueError, r"kernel of shape \(3,\) does not fit"),
        (lambda: Convolution(np.ones((5, 1)), (4, 4)), ValueError, r"kernel .* image of shape \(4, 4\)"),
        (lambda: Convolution(np.ones((0, 1)), (4, 4)), ValueError, "kernel"),
        (lambda: Convolution([1.0, np.nan], (4,)), ValueError, "kernel holds NaN or infinity"),
        (lambda: Convolution(["a"], (4,)), TypeError, "kernel must hold numbers"),
        (lambda: Reshaped(np.eye(4), (2, 3)), ValueError, r"shape \(2, 3\) does not hold the 4 entries"),
        (lambda: Sampling([1.0, 0.0]), TypeError, "mask must hold truth values, got dtype float64"),
        (lambda: Sampling([[False, False]]), ValueError, r"mask of shape \(1, 2\) keeps no entry"),
        (lambda: FourierSampling(np.array([0, 1])), TypeError, "mask must hold truth values"),
        (lambda: np.eye(4) @ FiniteDifference((4,)), TypeError, "unsupported operand"),
        (lambda: FiniteDifference((2,)) @ ["a", "b"], TypeError, "x must hold numbers"),
        (lambda: FiniteDifference((2,)) @ np.ones(3), ValueError, r"x must have shape \(2,\) for this operator"),
    ],
)
def test_wrong_constructions(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_an_operator_of_ones_own_needs_only_its_two_products():
    class Doubling(ArrayOperator):
        def __init__(self):
            self._set(input_shape=(3,), output_shape=(3,))

        def _apply(self, x):
            return 2 * x

        def _apply_adjoint(self, y):
            return 2 * y

    assert as_operator(Doubling()).dtype is None
    np.testing.assert_array_equal(to_dense(Doubling().H @ Doubling()), 4 * np.eye(3))
