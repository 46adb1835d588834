"""The names that users import."""

import importlib

import pytest

import ell12


@pytest.mark.parametrize("name", ell12.__all__)
def test_every_public_name_is_importable_and_documented(name):
    thing = getattr(ell12, name)
    assert not isinstance(thing, type(ell12)), f"{name} is shadowed by a module"
    assert thing.__doc__
    assert name in dir(ell12)


def test_the_names_of_the_front_page_agree():
    assert set(ell12.__all__) == set(ell12._HOME_OF)


@pytest.mark.parametrize("name", ell12._MODULES)
def test_submodules_load_lazily(name):
    assert getattr(ell12, name) is importlib.import_module(f"ell12.{name}")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'L13'"):
        ell12.L13  # noqa: B018
