"""Bounds on false selections, against linear programs and by hand."""

import numpy as np
import pytest
from scipy.optimize import linprog

from ell12.selection.stability import THRESHOLD, expected_false_bound, settle


def largest_tail(mean, share, n_pairs):
    """The most that P(X >= share) can be for X on {0, 1/B, ..., 1} with one mode and at most this mean."""
    values, best = np.arange(n_pairs + 1) / n_pairs, 0.0
    for mode in range(n_pairs + 1):
        signs = np.where(np.arange(n_pairs) < mode, 1.0, -1.0)  # rising up to the mode, then falling
        steps = signs[:, None] * (np.eye(n_pairs, n_pairs + 1) - np.eye(n_pairs, n_pairs + 1, 1))
        found = linprog(
            -(values >= share - 1e-9).astype(float),
            A_ub=np.vstack([steps, values]),
            b_ub=np.append(np.zeros(n_pairs), mean),
            A_eq=np.ones((1, n_pairs + 1)),
            b_eq=[1.0],
        )
        if found.success:  # with a late mode no mean is so small
            best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("chance", [0.1, 0.4])
@pytest.mark.parametrize("threshold", [0.66, 0.75, 0.81, 0.9, 1.0])
def test_the_unimodal_bound_is_the_optimum_of_a_linear_program(chance, threshold):
    n_pairs, p = 10, 20
    q = round(chance * p)
    share = np.ceil(2 * n_pairs * threshold - 1e-9) / (2 * n_pairs)  # frequencies are multiples of 1/20
    # Of p features that are selected with this chance, both halves of a pair select each with its square.
    expected = p * largest_tail(chance**2, 2 * share - 1, n_pairs)
    found = expected_false_bound(q, p, threshold, 2 * n_pairs, "unimodal")
    assert found == pytest.approx(min(expected, q**2 / ((2 * threshold - 1) * p)))


def test_where_the_unimodal_theorem_says_nothing_the_plain_bound_stands():
    assert expected_false_bound(14, 20, 0.9, 20, "unimodal") == expected_false_bound(14, 20, 0.9, 20)
    assert expected_false_bound(8, 20, 0.55, 20, "unimodal") == expected_false_bound(8, 20, 0.55, 20)
    assert expected_false_bound(20, 20, 0.6, 20) == 20.0  # no more than there are


@pytest.mark.parametrize("assumption", [None, "unimodal"])
@pytest.mark.parametrize("p", [10, 40, 160, 1000])
def test_two_settings_give_the_third_and_it_is_the_best_there_is(p, assumption):
    for threshold in (0.6, 0.75, 0.9):
        for wanted in (1.0, 2.0):
            found = settle(p, 100, threshold=threshold, expected_false=wanted, assumption=assumption)
            bounds = [expected_false_bound(q, p, threshold, 100, assumption) for q in range(1, p + 1)]
            good = [q for q, bound in enumerate(bounds, 1) if bound <= wanted * (1 + 1e-9)]
            assert found.most_selected == max(good)
            assert found.bound == bounds[found.most_selected - 1]
    found = settle(p, 100, most_selected=2, expected_false=1.5, assumption=assumption)
    assert found.bound <= 1.5
    below = found.threshold - 0.01
    assert below <= 0.5 or expected_false_bound(2, p, below, 100, assumption) > 1.5
    for threshold in (0.6, 0.7, 0.8, 0.9):  # nothing that was asked for is exceeded by rounding
        assert settle(p, 100, threshold=threshold, expected_false=1.0, assumption=assumption).bound <= 1.0


def test_a_plain_call_with_few_features_lets_halves_select_one_and_says_what_that_promises():
    found = settle(1, 10)
    assert (found.most_selected, found.threshold) == (1, THRESHOLD)
    assert found.bound == 1.0
    assert settle(100, 10, most_selected=7) == settle(100, 10, most_selected=7, threshold=THRESHOLD)


IMPOSSIBLE = [
    *(("threshold", {"threshold": value}) for value in (0.5, 1.01, "high")),
    ("expected_false", {"expected_false": 0.0}),
    ("expected_false", {"expected_false": 0.001, "threshold": 0.6}),
    ("expected_false", {"expected_false": 0.1, "most_selected": 30}),
    ("most_selected", {"most_selected": 0}),
    ("most_selected", {"most_selected": 5, "threshold": 0.7, "expected_false": 1.0}),
    ("assumption", {"assumption": "r-concave"}),
]


@pytest.mark.parametrize(("name", "settings"), IMPOSSIBLE)
def test_impossible_settings_are_refused_by_name(name, settings):
    with pytest.raises(ValueError, match=f"^{name}"):
        settle(100, 100, **settings)
