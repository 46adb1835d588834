"""Laws over the table of cases: units, order, weights, precision, convergence, interruption, purity."""

import hashlib
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.case import FEW, assert_close
from tests.laws.table import CASES, WITHOUT_LAWS, each

import ell12

PROGRAM = """
import numpy
from tests.laws.test_cases import CASES, bits
for number, case in reversed(list(enumerate(CASES))):
    print(number, bits(case.solve(**case.data(numpy.random.default_rng(2)))))
"""
SEEDS = st.integers(0, 10)


def test_every_public_name_has_a_case_or_a_reason_to_have_none():
    covered = {case.name for case in CASES}
    assert not covered & WITHOUT_LAWS.keys()
    missing = set(ell12.__all__) - covered - WITHOUT_LAWS.keys()
    assert not missing, f"add cases to tests/laws/table.py for {sorted(missing)}"


@each(lambda case: case.units)
@settings(max_examples=4, **FEW)
@given(power=st.floats(-6, 6), seed=st.integers(0, 2))
def test_scaled_data_give_the_scaled_answer_in_at_most_twice_the_steps(case, power, seed):
    c = 10.0**power
    data = case.data(np.random.default_rng(seed))
    plain = case.solve(**data)
    for unit in case.units:
        scaled = data | {name: c * data[name] for name in unit.arguments}
        found = case.solve(**scaled, **unit.options(c))
        assert_close(found.numbers * c**-unit.power, plain.numbers, 1e-6)
        assert found.steps <= 2 * max(plain.steps, 1), (unit.arguments, c, found.steps, plain.steps)
        assert found.converged == plain.converged


@each(lambda case: case.orders)
@settings(max_examples=3, **FEW)
@given(seed=SEEDS)
def test_a_permutation_of_the_data_is_one_of_the_answer_at_most(case, seed):
    random = np.random.default_rng(seed)
    data = case.data(random)
    plain = case.solve(**data).numbers
    for order in case.orders:
        (size,) = {data[name].shape[axis] for name, axis in order.axes.items()}
        shuffled = random.permutation(size)
        moved = data | {name: np.take(data[name], shuffled, axis=axis) for name, axis in order.axes.items()}
        found = case.solve(**moved).numbers
        expected = plain if order.answer is None else np.take(plain, shuffled, axis=order.answer)
        assert_close(found, expected, 1e-6)


@each(lambda case: case.weights)
@settings(max_examples=3, **FEW)
@given(seed=SEEDS)
def test_whole_weights_are_repeated_rows_and_zero_is_a_missing_row(case, seed):
    data = case.data(np.random.default_rng(seed))
    weight = data["sample_weight"].astype(int)
    assert (weight == 0).any()
    repeated = data | {name: np.repeat(data[name], weight, axis=0) for name in case.weights}
    repeated["sample_weight"] = np.ones(weight.sum())
    weighted = case.solve(**data).numbers
    assert_close(weighted, case.solve(**repeated).numbers, 1e-6)
    del repeated["sample_weight"]
    assert_close(weighted, case.solve(**repeated).numbers, 1e-6)


@each(lambda case: case.single)
@pytest.mark.parametrize("seed", [0, 1])
def test_single_precision_agrees_with_double_and_stays_single(case, seed):
    data = case.data(np.random.default_rng(seed))
    single = {"c": np.complex64, "f": np.float32}
    narrow = {name: x.astype(single.get(x.dtype.kind, x.dtype)) for name, x in data.items()}
    wide = {name: x.astype(np.result_type(x, float)) if x.dtype.kind in "fc" else x for name, x in narrow.items()}
    found = case.solve(**narrow, **case.loose).numbers
    assert found.dtype in single.values()
    assert_close(found, case.solve(**wide).numbers, case.single)


@each(lambda case: case.violation)
@settings(max_examples=3, **FEW)
@given(seed=st.integers(0, 20))
def test_a_claim_of_convergence_is_true_by_the_first_order_condition(case, seed):
    data = case.data(np.random.default_rng(seed))
    answer = case.solve(**data)
    assert answer.converged is not False  # these problems are easy
    assert case.violation(data, answer) <= 1.01


@each(lambda case: case.interrupts)
@settings(max_examples=3, **FEW)
@given(share=st.floats(0, 1))
def test_ctrl_c_returns_what_was_found_and_the_next_call_is_as_ever(case, share):
    data = case.data(np.random.default_rng(3))
    whole = case.solve(**data)
    step = 1 + int(share * max(whole.steps - 1, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # estimators warn of what has not converged
        part = case.solve(**data, interrupt_at=step)
    assert np.isfinite(part.numbers).all()
    assert part.numbers.shape == whole.numbers.shape
    assert not part.converged or part.steps >= whole.steps
    assert np.array_equal(case.solve(**data).numbers, whole.numbers)


def bits(answer):
    """A checksum of the numbers."""
    return hashlib.sha256(np.ascontiguousarray(answer.numbers).tobytes()).hexdigest()


@pytest.fixture(scope="module")
def elsewhere():
    """The bits of every answer in a new process, which solves in the opposite order."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number].name)
def test_the_same_call_gives_the_same_bits_again_in_threads_and_elsewhere(number, elsewhere):
    case = CASES[number]
    data = case.data(np.random.default_rng(2))
    before = {name: x.copy() for name, x in data.items()}
    first = bits(case.solve(**data))
    with ThreadPoolExecutor(3) as pool:
        assert {first} == set(pool.map(lambda _: bits(case.solve(**data)), range(3)))
    assert bits(case.solve(**data)) == first
    assert all(np.array_equal(data[name], x, equal_nan=x.dtype.kind in "fc") for name, x in before.items())
    assert elsewhere[str(number)] == first


@each(lambda case: case.shared)
def test_a_loss_that_threads_share_or_that_was_used_before_gives_the_same_bits(case):
    data = case.data(np.random.default_rng(2))
    first, loss = bits(case.solve(**data)), case.shared(**data)
    with ThreadPoolExecutor(3) as pool:
        assert {first} == set(pool.map(lambda _: bits(case.solve(**data, shared=loss)), range(3)))
    assert bits(case.solve(**data, shared=loss)) == first
