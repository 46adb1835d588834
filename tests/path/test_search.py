"""The search for the best strength on a logarithmic grid."""

import math

import pytest

from ell12.path import best_on_log_grid


def scored(function):
    """The function, and the list of what it was called with."""
    calls = []

    def score(alpha):
        calls.append(alpha)
        return function(alpha)

    return score, calls


@pytest.mark.parametrize("best", [0.01, 0.9, 1.0, 1.1, 70.0])
def test_a_parabola_in_the_logarithm_is_solved_exactly_and_no_strength_is_scored_twice(best):
    score, calls = scored(lambda alpha: math.log(alpha / best) ** 2 + 3.0)
    assert best_on_log_grid(score, 1.0) == pytest.approx(best)
    assert len(calls) == len(set(calls))


@pytest.mark.parametrize("function", [lambda a: a, lambda a: -a, lambda a: -(math.log(a) ** 2)])
def test_the_result_lies_within_the_bounds_and_within_what_was_scored(function):
    score, calls = scored(function)
    found = best_on_log_grid(score, 1.0, least=0.05, most=20.0)
    assert 0.05 <= min(calls) <= found <= max(calls) <= 20.0


def test_one_rise_by_chance_does_not_end_the_search():
    score, _ = scored(lambda alpha: (alpha - 0.1) ** 2 + (0.9 if abs(alpha - 1 / 1.5) < 1e-9 else 0.0))
    assert best_on_log_grid(score, 1.0) == pytest.approx(0.1, rel=0.3)


def test_scores_that_are_not_finite_are_the_worst():
    assert best_on_log_grid(lambda alpha: math.nan if alpha < 1 else alpha, 4.0) == pytest.approx(1.0, rel=0.5)
    assert best_on_log_grid(lambda alpha: math.nan, 4.0) == 4.0


def test_a_score_that_falls_for_ever_ends_the_search_at_a_bound():
    score, calls = scored(lambda alpha: 1 / alpha)
    assert best_on_log_grid(score, 0.3) == max(calls) <= 0.3e6


def test_the_vertex_stays_near_the_best_where_a_lower_neighbour_gained_too_little():
    scores = {-2: 3.0, -1: 1 - 2e-4, 0: 1.0, 1: 1 + 2.1e-4, 2: 4.0}

    def score(alpha):
        return scores[round(math.log(alpha, 1.5))]

    assert 1.5**-0.5 <= best_on_log_grid(score, 1.0, gain=1e-3) <= 1.5**0.5
