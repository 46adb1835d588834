"""Containers: numbers in another form give the same answer; what holds no numbers is refused, NaN stays NaN."""

import math
import re
import warnings

import numpy as np
import pytest
import scipy.sparse
from tests.laws.case import assert_close
from tests.laws.linear_cases import MATRICES, PENALTIES
from tests.laws.table import each

from ell12.backend import as_numpy
from ell12.penalties import MCP, SCAD, CappedL1, LogSum, Lp, TransformedL1


def read_only(x, folder):
    x = x.copy()
    x.flags.writeable = False
    return x


def mapped(x, folder):
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", mmap_mode="r")


def with_zeros(x, folder):
    """All entries stored, zeros too."""
    rows, columns = np.indices(x.shape)
    return scipy.sparse.csr_array(scipy.sparse.coo_array((x.ravel(), (rows.ravel(), columns.ravel())), x.shape))


def with_duplicates(x, folder):
    """Every entry as the sum of two."""
    rows, columns = (np.tile(index.ravel(), 2) for index in np.indices(x.shape))
    return scipy.sparse.coo_array((np.concatenate([0.25 * x.ravel(), 0.75 * x.ravel()]), (rows, columns)), x.shape)


def frame(x, folder):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(x) if x.ndim > 1 else pandas.Series(x)


NUMPY = {
    "Fortran": lambda x, folder: np.asfortranarray(x),
    "read-only": read_only,
    "mapped": mapped,
    "strided": lambda x, folder: np.repeat(x, 2, axis=0)[::2],
    "backwards": lambda x, folder: np.ascontiguousarray(x[::-1])[::-1],
    "foreign bytes": lambda x, folder: x.astype(x.dtype.newbyteorder(">")),
}
SPARSE = {
    "csr": lambda x, folder: scipy.sparse.csr_array(x),
    "csc": lambda x, folder: scipy.sparse.csc_matrix(x),
    "zeros": with_zeros,
    "duplicates": with_duplicates,
}
WITH_ARRAYS = each(lambda case: case.arrays)


def check(case, containers, arguments, folder):
    """The answer is the same where all these arguments are in another container."""
    data = case.data(np.random.default_rng(1))
    plain = case.solve(**data).numbers
    for kind, container in containers.items():
        for name in arguments:
            (folder / kind / name).mkdir(parents=True)
        given = {name: container(data[name], folder / kind / name) for name in arguments}
        assert_close(case.solve(**data | given).numbers, plain, 1e-6)


@WITH_ARRAYS
def test_numpy_arrays_of_any_layout_give_the_same_numbers(case, tmp_path):
    check(case, NUMPY, case.arrays, tmp_path)


@each(lambda case: case.arrays and "tensor" in case.kinds)
def test_tensors_give_the_same_numbers(case, tmp_path):
    torch = pytest.importorskip("torch")
    check(case, {"tensor": lambda x, folder: torch.as_tensor(x.copy())}, case.arrays, tmp_path)


@each(lambda case: case.sparse)
def test_sparse_matrices_give_the_same_numbers(case, tmp_path):
    check(case, SPARSE, case.sparse, tmp_path)


@each(lambda case: case.frames)
def test_frames_give_the_same_numbers(case, tmp_path):
    check(case, {"pandas": frame}, case.frames, tmp_path)


WRONG = {
    "masked": lambda x: np.ma.array(x, mask=np.arange(x.size).reshape(x.shape) == 1),
    "strings": lambda x: np.full(x.shape, "word"),
    "objects": lambda x: np.full(x.shape, object()),
}


@WITH_ARRAYS
def test_what_holds_no_plain_numbers_is_refused_by_the_name_of_the_argument(case):
    data = case.data(np.random.default_rng(1))
    for kind in case.refused:
        for argument in case.arrays:
            with pytest.raises((TypeError, ValueError)) as raised:
                case.solve(**data | {argument: WRONG[kind](data[argument])})
            name = case.named.get(argument, argument)
            assert re.search(rf"\b{name}\b", str(raised.value)), (kind, argument, str(raised.value))


NAMES = [name for name in PENALTIES if name not in ("TotalVariationL12", "NoPenalty")]


def with_one(name, value):
    """An array of a shape that the penalty takes, with this number in it."""
    x = np.linspace(-2.0, 3.0, 12).reshape(4, 3) if name in MATRICES else np.linspace(-2.0, 3.0, 12)
    if name == "GroupL12":
        x = np.linspace(-2.0, 3.0, PENALTIES[name].groups.labels.size)
    x.flat[4] = value
    return x


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays(name):
    penalty, x = PENALTIES[name], with_one(name, math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (lambda: penalty.value(x), lambda: as_numpy(penalty.prox(x, 0.7)).flat[4]):
            assert math.isnan(make())


@pytest.mark.parametrize("kind", [LogSum, CappedL1, Lp, MCP, SCAD, TransformedL1])
def test_infinity_is_shrunk_by_next_to_nothing(kind):
    z = np.array([math.inf, -math.inf, 0.1])
    np.testing.assert_array_equal(kind(0.5).prox(z, 0.7)[:2], z[:2])
