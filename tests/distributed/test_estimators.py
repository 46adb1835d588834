"""The estimators on dask arrays and frames, against the same in memory."""

import subprocess
import sys

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.distributed.problem import ROWS, WEIGHT, A, B, assert_same, chunked

from ell12 import L12, HuberLoss, L12Classifier, L12Regressor, RowsL12, SquaredLoss, minimize
from ell12.distributed import rows_loss
from ell12.solvers import ProxSVRG

NAMES = list("pqrst")
TABLE = pd.DataFrame(A, columns=NAMES).assign(y=B, weight=WEIGHT, label=np.where(B > 4, "b", "a"))
NUMBER = np.arange(ROWS)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False}, {"penalty__positive": True}, {"penalty__weights": [1, 0, 1, 2, 1]}]
)
def test_regression(options, weight):
    model = L12Regressor(0.1, penalty=L12(l2_weight=0.5), tol=1e-10).set_params(**options)
    near = model.fit(A, B, weight)
    far = clone(model).fit(chunked(A), chunked(B), weight)
    assert_same(far, near)
    assert far.results_[0].objective == pytest.approx(near.results_[0].objective, rel=1e-9)
    assert far.score(chunked(A), chunked(B), weight) == pytest.approx(near.score(A, B, weight), abs=1e-12)
    prediction = far.predict(chunked(A))
    assert isinstance(prediction, da.Array)
    np.testing.assert_allclose(prediction.compute(), near.predict(A), atol=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_regression_on_several_targets_with_one_support(fit_intercept):
    Y = np.column_stack([B, A[:, 2] - 2 * B])
    model = L12Regressor(0.2, penalty=RowsL12(), fit_intercept=fit_intercept, tol=1e-10)
    near = model.fit(A, Y, WEIGHT)
    far = clone(model).fit(chunked(A), chunked(Y), WEIGHT)
    assert_same(far, near)
    assert isinstance(far.n_iter_, int)
    with pytest.raises(ValueError, match="up to 1000 columns, and more rows"):
        far.fit(chunked(A[:4], 2), Y[:4])


@pytest.mark.parametrize("rows", [ROWS, 4])
def test_regression_on_several_targets(rows):
    """With fewer rows than columns the losses stay on the workers, each a column of its own."""
    X, Y = A[:rows], np.column_stack([B, -2 * B])[:rows]
    near = L12Regressor(0.2, penalty=L12(l2_weight=0.5), tol=1e-10).fit(X, Y)
    far = clone(near).fit(chunked(X, 3), da.from_array(Y, chunks=(3, 1)))
    assert_same(far, near)
    assert far.score(chunked(X, 3), Y) == pytest.approx(near.score(X, Y), abs=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("classes", [["no", "yes"], ["a", "b", "c"]])
def test_classification(classes, fit_intercept):
    cuts = np.quantile(B, np.linspace(0, 1, len(classes) + 1)[1:-1])
    labels = np.array(classes)[np.digitize(B, cuts)]
    near = L12Classifier(0.1, tol=1e-8, fit_intercept=fit_intercept).fit(A, labels, WEIGHT)
    far = clone(near).fit(chunked(A), chunked(labels), WEIGHT)
    assert_same(far, near, atol=1e-6)
    assert list(far.classes_) == classes
    assert far.score(chunked(A), chunked(labels), WEIGHT) == pytest.approx(near.score(A, labels, WEIGHT))
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        ours = getattr(far, method)(chunked(A)).compute()
        np.testing.assert_allclose(ours, getattr(near, method)(A), atol=1e-6)
    assert (far.predict(chunked(A)).compute() == near.predict(A)).all()


@pytest.mark.parametrize("model", [L12Regressor(0.1, tol=1e-4), L12Classifier(0.1, tol=1e-4)])
def test_single_precision_is_kept(model):
    X, y = A.astype(np.float32), (B > 4).astype(np.float32)
    far, near = clone(model).fit(chunked(X), y), clone(model).fit(X, y)
    assert far.coef_.dtype == near.coef_.dtype == np.float32
    assert far.predict(chunked(X)).dtype == near.predict(X).dtype
    assert_same(far, near, atol=1e-3)


def test_names_are_compared_as_in_memory():
    frame = dd.from_pandas(TABLE, npartitions=3)
    near = L12Regressor(0.1).fit(TABLE[NAMES], B)
    far = L12Regressor(0.1).fit(frame[NAMES], frame["y"])
    np.testing.assert_allclose(far.predict(frame[NAMES]).compute(), near.predict(TABLE[NAMES]), atol=1e-4)
    with pytest.raises(ValueError, match="feature names should match"):  # or each would be taken for another
        far.predict(frame[NAMES[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
        far.predict(chunked(A)).compute()
    assert len(caught) == 1
    classifier = L12Classifier(0.1).fit(frame[NAMES], frame["label"])
    assert classifier.predict_proba(frame[NAMES]).compute().shape == (ROWS, 2)
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.score(frame[NAMES[::-1]], frame["label"])
    with pytest.raises(NotFittedError):
        L12Regressor().predict(chunked(A))


def test_warm_start_begins_at_the_last_fit():
    for model, target in ((L12Regressor(0.1), B), (L12Classifier(0.05), B > 4)):
        model.set_params(warm_start=True).fit(chunked(A), target)
        assert np.max(model.fit(chunked(A), target).n_iter_) <= 2


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_partitions_that_a_filter_has_emptied_add_nothing(form):
    labels, kept = np.where(B > 4, "high", "low"), NUMBER >= 85
    mask = chunked(kept)
    rows = chunked(A)[mask].map_blocks(form)
    model = L12Regressor(0.1, tol=1e-10).fit(rows, chunked(B)[mask])
    assert_same(model, L12Regressor(0.1, tol=1e-10).fit(A[kept], B[kept]))
    np.testing.assert_allclose(model.predict(rows).compute(), model.predict(A[kept]))
    assert model.score(rows, chunked(B)[mask]) == pytest.approx(model.score(A[kept], B[kept]))
    model = L12Classifier(0.05, tol=1e-7).fit(rows, chunked(labels)[mask])
    assert_same(model, L12Classifier(0.05, tol=1e-7).fit(A[kept], labels[kept]), atol=1e-6)
    assert model.score(rows, chunked(labels)[mask]) == model.score(A[kept], labels[kept])
    assert model.predict_proba(rows).compute().shape == (kept.sum(), 2)
    result = minimize(rows_loss(HuberLoss, rows, chunked(B)[mask]), L12(1.0), tol=1e-8)
    np.testing.assert_allclose(result.x, minimize(HuberLoss(A[kept], B[kept]), L12(1.0), tol=1e-8).x, atol=1e-7)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_nullable_numbers_and_truth_values_next_to_floats(backend):
    table, y = TABLE[NAMES].assign(flag=A[:, 0] > 0), pd.Series(B)
    expected = L12Regressor(0.1).fit(table, B)
    assert_same(L12Regressor(0.1).fit(dd.from_pandas(table, npartitions=3), dd.from_pandas(y, 3)), expected)
    table = table.convert_dtypes(dtype_backend=backend)
    frame = dd.from_pandas(table, npartitions=3)
    target = dd.from_pandas(y.convert_dtypes(dtype_backend=backend), npartitions=3)
    model = L12Regressor(0.1).fit(frame, target)
    assert_same(model, expected)
    assert model.score(frame, target) == pytest.approx(expected.score(table, B))
    labels = dd.from_pandas((y > 4).astype("Int64"), npartitions=3)
    assert L12Classifier(0.1).fit(frame, labels).classes_.dtype == np.int64
    table.loc[90, "q"] = pd.NA
    with pytest.raises(ValueError, match="block 1: X holds NaN"):
        L12Regressor().fit(dd.from_pandas(table, npartitions=3), target)


@pytest.fixture(scope="module", params=["fsspec", "arrow"])
def on_disk(tmp_path_factory, request):
    """The table in files, whose partitions Dask joins by the columns that are read."""
    folder = tmp_path_factory.mktemp(request.param)
    for number in range(10):
        TABLE[24 * number : 24 * number + 24].to_parquet(folder / f"part.{number}.parquet")
    return dd.read_parquet(folder, filesystem=request.param)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_regression_reads_its_columns_from_files(on_disk, weighted):
    far, near = ({"sample_weight": data["weight"]} if weighted else {} for data in (on_disk, TABLE))
    model = L12Regressor(0.1, tol=1e-6).fit(on_disk[NAMES], on_disk["y"], **far)
    expected = L12Regressor(0.1, tol=1e-6).fit(TABLE[NAMES], B, **near)
    assert_same(model, expected, atol=1e-5)
    score = expected.score(TABLE[NAMES], B, **near)
    assert model.score(on_disk[NAMES], on_disk["y"], **far) == pytest.approx(score)
    here = on_disk[NAMES].compute()  # Dask may read the files in another order
    np.testing.assert_allclose(model.predict(on_disk[NAMES]), expected.predict(here), atol=1e-5)


@pytest.mark.parametrize("form", ["array", "other partitions"])
def test_observations_that_come_in_another_form_are_cut_like_the_rows(on_disk, form):
    y = on_disk["y"].to_dask_array() if form == "array" else on_disk["y"].repartition(npartitions=4)
    model = L12Regressor(0.1, tol=1e-6).fit(on_disk[NAMES], y)
    assert_same(model, L12Regressor(0.1, tol=1e-6).fit(TABLE[NAMES], B), atol=1e-5)
    assert model.score(on_disk[NAMES], y) > 0.9


X, NONE, NAMED = chunked(A), chunked(np.zeros(ROWS, dtype=bool)), np.where(B > 4, "high", "low").astype(object)
FITTED = L12Regressor().fit(A, B)
WRONG = {
    "X has no rows": lambda: L12Regressor().fit(X[NONE], chunked(B)[NONE]),
    "X has no rows: all": lambda: rows_loss(SquaredLoss, X[NONE], chunked(B)[NONE]),
    "no row of positive weight": lambda: FITTED.score(X, B, sample_weight=np.zeros(ROWS)),
    "no row of positive weight is": lambda: (
        L12Classifier().fit(A, B > 4).score(X, B > 4, sample_weight=np.zeros(ROWS))
    ),
    "at least 2 classes of positive weight": lambda: L12Classifier().fit(X, np.zeros(ROWS, dtype=int)),
    "at least 2 classes": lambda: L12Classifier().fit(X, B > 4, sample_weight=(B > 4).astype(float)),
    "sums to zero": lambda: L12Regressor().fit(X, B, sample_weight=np.zeros(ROWS)),
    "block 1: y holds NaN": lambda: L12Regressor().fit(X, np.where(NUMBER == 90, np.nan, B)),
    "block 2: y holds NaN": lambda: FITTED.score(X, np.where(NUMBER == 110, np.nan, B.tolist())),
    "Expected 2D array, got 1D array": lambda: L12Regressor().fit(X[:, 0], B),
    "Expected 2D array, got 1D": lambda: L12Regressor().fit(X, B).predict(X[0]),
    "label type": lambda: L12Classifier().fit(X, B),
    "block 0: y must hold real numbers, got complex": lambda: L12Regressor().fit(X[:30], B[:30] * 1j),
    "block 0: y must hold numbers": lambda: L12Regressor().fit(X[:30], NAMED[:30]),
    "y must have one or two dimensions": lambda: L12Regressor().fit(X, np.ones((ROWS, 2, 2))),
    "sample_weight must have one dimension": lambda: L12Regressor().fit(X, B, sample_weight=np.ones((ROWS, 1))),
    "sample_weight must have one": lambda: L12Regressor().fit(X, B, sample_weight=da.ones((ROWS, 2))),
    "block 1: y must hold labels of one kind": lambda: L12Classifier().fit(X, np.where(NUMBER == 90, None, NAMED)),
    "y must hold labels of one kind": lambda: L12Classifier().fit(X, np.where(NUMBER < 70, 1, NAMED)),
    "y holds over 1000 different": lambda: L12Classifier().fit(da.ones((1200, 1), chunks=1200), np.arange(1200)),
    "X must be a dask array or DataFrame": lambda: L12Regressor().fit(dask.bag.from_sequence([1, 2]), [1.0, 2.0]),
    "X must be a dask array or": lambda: L12Regressor().fit(dask.delayed([[1.0], [2.0]]), [1.0, 2.0]),
    "QuadraticLoss lacks batches": lambda: L12Regressor(solver=ProxSVRG()).fit(X, B),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_fitted_is_named(words):
    with pytest.raises((ValueError, TypeError), match=words):
        WRONG[words]()


def test_without_dask_it_is_said_what_to_install():
    code = "import sys; sys.modules['distributed'] = None; import ell12.distributed"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ell12's extra dask" in found.stderr
