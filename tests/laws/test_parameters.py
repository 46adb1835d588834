"""Parameters: what cannot be used in place of one is refused by its name."""

import re
import warnings

import numpy as np
import pytest
from tests.laws.calls import CALLS

JUNK = {
    "object": object(),
    "word": "no such word",
    "array": np.array([0.5, np.nan]),
    "ragged": [[1.0, 2.0], [3.0]],
    "complex": 1j,
}
# What a parameter may be given of these: a path is a word, and NaN stays NaN.
TAKEN = {
    "checkpoint": {"word"},
    "path": {"word"},
    "source": {"word"},
    "columns": {"object", "word", "array", "ragged", "complex"},  # for tables alone
    "groups": {"array"},
    "dtype": {"object", "word", "array", "ragged", "complex"},  # NumPy's error
    "z": {"array", "complex"},
    "s": {"array"},
    "blocks": {"ragged"},  # the error names a part of the block
}
PAIRS = [(name, parameter) for name, call in CALLS.items() for parameter in call.parameters]


@pytest.mark.parametrize(("name", "parameter"), PAIRS, ids=[f"{name}-{parameter}" for name, parameter in PAIRS])
def test_what_cannot_be_used_is_refused_by_the_name_of_the_parameter(name, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a checkpoint may be called by any word
    for junk in JUNK.keys() - TAKEN.get(parameter, set()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises((TypeError, ValueError)) as raised:
                CALLS[name](**{parameter: JUNK[junk]})
        assert re.search(rf"\b{parameter}\b", str(raised.value)), (junk, str(raised.value))
