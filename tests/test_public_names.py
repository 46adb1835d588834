"""The names that users import."""

import importlib
import inspect

import pytest
from tests.architecture import MOST_ARGUMENTS, MOST_NAMES, public_callables

import ell12


@pytest.mark.parametrize("name", ell12.__all__)
def test_every_public_name_is_importable_and_documented(name):
    thing = getattr(ell12, name)
    assert not isinstance(thing, type(ell12)), f"{name} is shadowed by a module"
    assert thing.__doc__
    assert name in dir(ell12)


@pytest.mark.parametrize("name", ell12._modules)
def test_submodules_load_lazily(name):
    assert getattr(ell12, name) is importlib.import_module(f"ell12.{name}")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="No ell12 attribute L13"):
        ell12.L13  # noqa: B018


@pytest.mark.parametrize("name", public_callables())
def test_no_public_callable_has_more_than_12_arguments(name):
    assert len(inspect.signature(public_callables()[name]).parameters) <= MOST_ARGUMENTS


def test_at_most_50_names_stand_at_the_top():
    assert len(ell12.__all__) <= MOST_NAMES
    assert not set(ell12.__all__) & set(ell12._modules)
