"""Objects: what users make can be copied and pickled, and its repr is one line."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from tests.laws.calls import CALLS

CLASSES = sorted(name for name, call in CALLS.items() if isinstance(call.function, type))
WIDEST = 200


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
