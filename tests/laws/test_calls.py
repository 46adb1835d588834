"""Laws over a plain call of every public name: refused parameters, copies and pickles, checkpoints."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from tests.laws.calls import CALLS

import ell12
from ell12.minimization import Checkpoint

CLASSES = sorted(name for name, call in CALLS.items() if isinstance(call.function, type))
FRONTS = sorted(name for name, call in CALLS.items() if "run" in call.parameters)
WIDEST = 200
CUT = 2  # iterations
JUNK = {
    "object": object(),
    "word": "no such word",
    "array": np.array([0.5, np.nan]),
    "ragged": [[1.0, 2.0], [3.0]],
    "complex": 1j,
    "class": np.ndarray,
}
# What a parameter may be given of these: a path is a word, and NaN stays NaN.
TAKEN = {
    "checkpoint": {"word"},
    "path": {"word"},
    "source": {"word"},
    "columns": JUNK.keys(),  # for tables alone
    "groups": {"array"},
    "dtype": JUNK.keys(),  # NumPy's error
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


def state(thing):
    """What an object holds, arrays as lists."""
    if isinstance(thing, BaseEstimator):
        return {name: repr(value) for name, value in thing.get_params().items()}
    return repr(thing)


@pytest.mark.parametrize("name", CLASSES)
def test_copies_and_pickles_say_the_same(name):
    thing = CALLS[name].make()
    for other in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
        assert type(other) is type(thing)
        assert state(other) == state(thing)
    if isinstance(thing, BaseEstimator):
        assert state(clone(thing)) == state(thing)


@pytest.mark.parametrize("name", CLASSES)
def test_a_repr_is_one_line_that_names_the_class(name):
    text = repr(CALLS[name].make())
    assert "\n" not in text
    assert len(text) <= WIDEST
    assert text.startswith(name)


@pytest.mark.parametrize("name", [name for name in CLASSES if name.endswith("Loss")])
def test_the_pickle_of_a_loss_has_its_value(name):
    loss = CALLS[name].make()
    other = pickle.loads(pickle.dumps(loss))
    start = loss.start()
    assert np.isclose(loss.value(loss.point(start)), other.value(other.point(start)), rtol=1e-14)


def numbers(answer):
    """The solution in an answer, whatever it is called."""
    for name in ("coefs", "coef_", "x", "image"):
        answer = getattr(answer, name, answer)
    return answer.to_array() if hasattr(answer, "to_array") else np.asarray(answer)


@pytest.mark.parametrize("name", FRONTS)
def test_a_run_goes_on_from_its_file(name, tmp_path):
    seen = []
    tol = 1e-3 if "mri" in name or name.endswith("_tv") else 1e-7

    def solve(**run):
        return CALLS[name](tol=tol, **run)

    def cut(history):
        return len(history["objective"]) > CUT

    def watch(history):
        seen.append(len(history["objective"]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is cut short has not converged
        solve(run=ell12.Run(callback=cut, checkpoint=tmp_path / "run.npz"))
    assert list(tmp_path.glob("run*.npz"))
    resumed = Checkpoint(tmp_path / "run.npz", resume=True)
    found = numbers(solve(run=ell12.Run(callback=watch, checkpoint=resumed)))
    assert seen[0] > CUT + 1  # after the start and what was done before
    whole = numbers(solve())
    assert np.linalg.norm(found - whole) <= 10 * tol * np.linalg.norm(whole)
