"""Masked arrays are refused wherever their masks would be passed over, by an error that names the argument."""

import numpy as np
import pytest
import scipy.sparse

import ell12
from ell12 import distributed
from ell12.path import falling

random = np.random.default_rng(0)
A, b = random.standard_normal((12, 4)), random.standard_normal(12)
S, ones, image = scipy.sparse.csr_array(A), np.ones(12), random.random((16, 16))
labels = np.sign(b)


def masked(values):
    return np.ma.array(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) == 1)


REGRESSOR, CLASSIFIER = ell12.L12Regressor(0.1), ell12.L12Classifier(0.1)
ENTRIES = {
    "prox_l12 z": lambda: ell12.prox_l12(masked(b), 1.0),
    "prox_l12 weights": lambda: ell12.prox_l12(b, 1.0, weights=masked(ones)),
    "moreau_l12 z": lambda: ell12.prox.moreau_l12(masked(b), 1.0),
    "prox_l12_groups z": lambda: ell12.prox.prox_l12_groups(masked(b), 1.0, groups=np.arange(12) // 3),
    "prox_l12_spectral z": lambda: ell12.prox.prox_l12_spectral(masked(A), 1.0),
    "L12 value": lambda: ell12.L12(1.0).value(masked(b)),
    "L12 prox": lambda: ell12.L12(1.0).prox(masked(b), 0.5),
    "L1 value": lambda: ell12.L1(1.0).value(masked(b)),
    "L12 weights": lambda: ell12.L12(1.0, weights=masked(ones)),
    "GroupL12 value": lambda: ell12.GroupL12(np.arange(12) // 3, 1.0).value(masked(b)),
    "SpectralL12 value": lambda: ell12.SpectralL12(1.0).value(masked(A)),
    "SquaredLoss A": lambda: ell12.SquaredLoss(masked(A), b),
    "SquaredLoss b": lambda: ell12.SquaredLoss(A, masked(b)),
    "SquaredLoss b beside a sparse A": lambda: ell12.SquaredLoss(S, masked(b)),
    "SquaredLoss weights": lambda: ell12.SquaredLoss(A, b, sample_weight=masked(ones)),
    "LogisticLoss b": lambda: ell12.LogisticLoss(S, masked(labels)),
    "HuberLoss b": lambda: ell12.HuberLoss(A, masked(b)),
    "QuadraticLoss G": lambda: ell12.losses.QuadraticLoss(masked(np.eye(4)), np.ones(4)),
    "QuadraticLoss c": lambda: ell12.losses.QuadraticLoss(np.eye(4), masked(np.ones(4))),
    "RowsLoss A": lambda: ell12.losses.RowsLoss([(masked(A), b)]).start(),
    "RowsLoss b": lambda: ell12.losses.RowsLoss([(A, masked(b))]).start(),
    "RowsLoss weights": lambda: ell12.losses.RowsLoss([(A, b, masked(ones))]).start(),
    "minimize x0": lambda: ell12.minimize(ell12.SquaredLoss(A, b), ell12.L12(0.1), masked(np.ones(4))),
    "stationarity x": lambda: ell12.stationarity(ell12.SquaredLoss(A, b), ell12.L12(0.1), masked(np.ones(4))),
    "l12_path X": lambda: ell12.l12_path(masked(A), b),
    "l12_path y": lambda: ell12.l12_path(A, masked(b)),
    "l12_path weights": lambda: ell12.l12_path(A, b, sample_weight=masked(ones)),
    "alphas": lambda: falling(masked(np.ones(3))),
    "regressor X": lambda: REGRESSOR.fit(masked(A), b),
    "regressor y": lambda: REGRESSOR.fit(S, masked(b)),
    "regressor sample_weight": lambda: REGRESSOR.fit(A, b, masked(ones)),
    "regressor partial_fit": lambda: ell12.L12Regressor(0.1).partial_fit(masked(A), b),
    "regressor predict": lambda: ell12.L12Regressor(0.1).fit(A, b).predict(masked(A)),
    "regressor score": lambda: ell12.L12Regressor(0.1).fit(A, b).score(A, masked(b)),
    "regressor CV": lambda: ell12.L12RegressorCV(alphas=3, cv=2).fit(A, masked(b)),
    "classifier X": lambda: CLASSIFIER.fit(masked(A), labels),
    "classifier y": lambda: CLASSIFIER.fit(A, masked(labels)),
    "classifier score": lambda: ell12.L12Classifier(0.1).fit(A, labels).score(A, masked(labels)),
    "classifier CV": lambda: ell12.L12ClassifierCV(alphas=3, cv=2).fit(masked(A), labels),
    "denoise_tv": lambda: ell12.denoise_tv(masked(image), 0.1),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_masked_array_is_refused(entry):
    with pytest.raises(TypeError, match="masked array"):
        ENTRIES[entry]()


def test_a_masked_block_on_a_worker_is_refused():
    dask_array = pytest.importorskip("dask.array")
    X, y = dask_array.from_array(A, chunks=(6, 4)), dask_array.from_array(b, chunks=6)
    for X_given, y_given in (
        (dask_array.ma.masked_greater(X, 1.0), y),
        (X, dask_array.ma.masked_greater(y, 1.0)),
    ):
        with pytest.raises(TypeError, match="masked array"):
            distributed.rows_loss(ell12.SquaredLoss, X_given, y_given, gram=True)


def test_a_masked_entry_of_a_matrix_to_complete_is_unknown():
    found = ell12.Observed.of(masked(A))
    assert found.values.size == A.size - 1
