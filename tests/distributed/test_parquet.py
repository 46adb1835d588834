"""Tables in Parquet files, read through Dask, which joins partitions by the columns that are read."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from ell12 import L12Regressor

NAMES = list("abcdefgh")


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.standard_normal((400, 8)), columns=NAMES)
    y = 2 * table["a"] - table["c"] + 0.3 * random.standard_normal(400) + 1
    return table.assign(y=y, weight=random.random(400), kind=np.where(y > 1, "high", "low"))


def write(table, by, folder):
    """A file for each part of the rows."""
    for number, (_, rows) in enumerate(table.groupby(by)):
        rows.to_parquet(folder / f"part.{number}.parquet")


@pytest.fixture(scope="module", params=["fsspec", "arrow"])
def on_disk(table, tmp_path_factory, request):
    folder = tmp_path_factory.mktemp(request.param)
    write(table, np.arange(400) // 40, folder)
    return dd.read_parquet(folder, filesystem=request.param)


def assert_same(one, other):
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_regression_reads_its_columns_from_files(table, on_disk, weighted):
    weights = [{"sample_weight": data["weight"]} if weighted else {} for data in (on_disk, table)]
    model = L12Regressor(0.1, tol=1e-6).fit(on_disk[NAMES], on_disk["y"], **weights[0])
    expected = L12Regressor(0.1, tol=1e-6).fit(table[NAMES], table["y"], **weights[1])
    assert_same(model, expected)
    score = expected.score(table[NAMES], table["y"], **weights[1])
    assert model.score(on_disk[NAMES], on_disk["y"], **weights[0]) == pytest.approx(score)
    np.testing.assert_allclose(
        model.predict(on_disk[NAMES]), expected.predict(on_disk[NAMES].compute()), atol=1e-5
    )


@pytest.mark.parametrize("form", ["array", "other partitions"])
def test_observations_that_come_in_another_form_are_cut_like_the_rows(table, on_disk, form):
    forms = {
        "array": on_disk["y"].to_dask_array(),
        "other partitions": on_disk["y"].repartition(npartitions=4),
    }
    model = L12Regressor(0.1, tol=1e-6).fit(on_disk[NAMES], forms[form])
    assert_same(model, L12Regressor(0.1, tol=1e-6).fit(table[NAMES], table["y"]))
    assert model.score(on_disk[NAMES], forms[form]) > 0.9
