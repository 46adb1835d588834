"""The imputer gives arrays back as they came."""

import numpy as np
import sklearn
from library import array

from ell12 import L12Imputer
from ell12.backend import as_numpy

sklearn.set_config(array_api_dispatch=True)
random = np.random.default_rng(0)
X = random.standard_normal((30, 2)) @ random.standard_normal((2, 12))
X = np.where(random.random(X.shape) < 0.3, np.nan, X).astype("float32")
expected = L12Imputer(random_state=0).fit(X)
model = L12Imputer(random_state=0).fit(array(X))
for found, wanted in (
    (model.transform(array(X)), expected.transform(X)),
    (model.predict(array(X)), expected.predict(X)),
    (model.fit_transform(array(X)), expected.transform(X)),
):
    assert type(found) is type(array(X))
    assert found.dtype == array(X).dtype
    assert found.device == array(X).device
    np.testing.assert_array_equal(as_numpy(found), wanted)
assert isinstance(model.transform(X), np.ndarray)
