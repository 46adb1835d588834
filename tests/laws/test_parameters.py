"""Parameters: what cannot be used in place of one is refused by its name."""

import re
import warnings

import numpy as np
import pytest
from tests.laws.calls import CALLS

JUNK = {"object": object(), "word": "no such word", "array": np.array([0.5, np.nan])}
# What a parameter may be given of these: a path is a word, and NaN stays NaN.
TAKEN = {
    "checkpoint": {"word"},
    "path": {"word"},
    "source": {"word"},
    "columns": {"object", "word", "array"},  # for tables alone
    "groups": {"array"},
    "dtype": {"object", "word", "array"},  # NumPy's error
    "z": {"array"},
    "s": {"array"},
}
UNCHECKED = {"DCA-inner", "Restarts-n_starts", "Restarts-random_state", "Restarts-solver"}  # until they run
PAIRS = [
    (name, parameter)
    for name, call in CALLS.items()
    for parameter in call.parameters
    if f"{name}-{parameter}" not in UNCHECKED
]


@pytest.mark.parametrize(("name", "parameter"), PAIRS, ids=[f"{name}-{parameter}" for name, parameter in PAIRS])
def test_what_cannot_be_used_is_refused_by_the_name_of_the_parameter(name, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a checkpoint may be called by any word
    for junk in JUNK.keys() - TAKEN.get(parameter, set()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises((TypeError, ValueError)) as raised:
                CALLS[name](**{parameter: JUNK[junk]})
        assert re.search(rf"\b{parameter}\b", str(raised.value)), (junk, str(raised.value))
