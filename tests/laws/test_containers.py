"""Containers: the same numbers in another form give the same answer; what holds no numbers is refused by name."""

import re

import numpy as np
import pytest
import scipy.sparse
from tests.laws.case import assert_close
from tests.laws.table import each


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
