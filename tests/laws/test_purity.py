"""Purity: arguments are not written to, and no answer depends on anything but them."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.laws.programs.bits import bits
from tests.laws.table import CASES, cases, names

PROGRAM = Path(__file__).parent / "programs" / "bits.py"


@pytest.fixture(scope="module")
def elsewhere():
    """The bits of every answer in a new process, which solves in the opposite order."""
    root = Path(__file__).parents[2]
    command = [sys.executable, str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.parametrize("number", range(len(CASES)), ids=names(CASES))
def test_the_same_call_gives_the_same_bits_here_again_and_elsewhere(number, elsewhere):
    case = CASES[number]
    data = case.data(np.random.default_rng(2))
    before = {name: x.copy() for name, x in data.items()}
    first = bits(case.solve(**data))
    assert bits(case.solve(**data)) == first
    assert all(np.array_equal(data[name], x, equal_nan=x.dtype.kind in "fc") for name, x in before.items())
    assert elsewhere[str(number)] == first


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_calls_in_other_threads_give_the_same_bits(case):
    data = case.data(np.random.default_rng(2))
    first = bits(case.solve(**data))
    with ThreadPoolExecutor(3) as pool:
        assert {first} == set(pool.map(lambda _: bits(case.solve(**data)), range(3)))


SHARED = cases(lambda case: case.shared)


@pytest.mark.parametrize("case", SHARED, ids=names(SHARED))
def test_a_loss_that_threads_share_or_that_was_used_before_gives_the_same_bits(case):
    data = case.data(np.random.default_rng(2))
    first, loss = bits(case.solve(**data)), case.shared(**data)
    with ThreadPoolExecutor(3) as pool:
        assert {first} == set(pool.map(lambda _: bits(case.solve(**data, shared=loss)), range(3)))
    assert bits(case.solve(**data, shared=loss)) == first
