"""Tables in Parquet files, read through Dask, which joins partitions by the columns that are read."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from ell12 import L12, HuberLoss, L12Classifier, L12Regressor, SquaredLoss, minimize
from ell12.distributed import rows_loss

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


def test_a_classification_reads_its_columns_from_files(table, on_disk):
    model = L12Classifier(0.05, tol=1e-7).fit(on_disk[NAMES], on_disk["kind"], sample_weight=on_disk["weight"])
    expected = L12Classifier(0.05, tol=1e-7).fit(table[NAMES], table["kind"], sample_weight=table["weight"])
    assert model.classes_.tolist() == ["high", "low"]
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)
    assert model.score(on_disk[NAMES], on_disk["kind"]) == expected.score(table[NAMES], table["kind"])


@pytest.mark.parametrize("kind", [SquaredLoss, HuberLoss])
def test_a_sum_of_losses_reads_its_columns_from_files(table, on_disk, kind):
    loss = rows_loss(kind, on_disk[NAMES], on_disk["y"], sample_weight=on_disk["weight"])
    expected = kind(table[NAMES].to_numpy(), table["y"].to_numpy(), sample_weight=table["weight"].to_numpy())
    x, other = (minimize(f, L12(1.0), tol=1e-8).x for f in (loss, expected))
    np.testing.assert_allclose(x, other, atol=1e-5)


@pytest.mark.parametrize("form", ["array", "other partitions"])
def test_observations_that_come_in_another_form_are_cut_like_the_rows(table, on_disk, form):
    forms = {
        "array": on_disk["y"].to_dask_array(),
        "other partitions": on_disk["y"].repartition(npartitions=4),
    }
    model = L12Regressor(0.1, tol=1e-6).fit(on_disk[NAMES], forms[form])
    assert_same(model, L12Regressor(0.1, tol=1e-6).fit(table[NAMES], table["y"]))
    assert model.score(on_disk[NAMES], forms[form]) > 0.9
