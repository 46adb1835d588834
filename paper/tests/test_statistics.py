"""The paired t-test behind the bold figures of the tables."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from ell12_paper.statistics import comparable, differs, paired_p_value, summarize


def by_repeat(values):
    return dict(enumerate(values))


def test_mean_and_deviation():
    summary = summarize([2.0, 4.0, 9.0])
    assert (summary.mean, summary.deviation, summary.count) == (5.0, pytest.approx(np.sqrt(13.0)), 3)


def test_a_single_repeat_has_no_deviation():
    assert summarize([3.5]).deviation is None


def test_nothing_has_no_mean():
    with pytest.raises(ValueError, match="nothing to summarize"):
        summarize([])


@pytest.mark.parametrize("count", [2, 3, 10])
@pytest.mark.parametrize("shift", [0.0, 0.3, 3.0])
def test_p_value_is_that_of_scipy(count, shift):
    random = np.random.default_rng(count)
    first = random.standard_normal(count)
    second = first + shift + 0.5 * random.standard_normal(count)
    expected = ttest_rel(first, second).pvalue
    assert paired_p_value(by_repeat(first), by_repeat(second)) == pytest.approx(expected, rel=1e-10)


def test_p_value_by_hand():
    # Differences 1, 2, 3: mean 2, deviation 1, t = 2 sqrt(3); with two degrees of freedom the tail is elementary.
    t = 2 * np.sqrt(3)
    tail = 0.5 * (1 - t / np.sqrt(2 + t**2))
    assert paired_p_value({0: 2.0, 1: 4.0, 2: 6.0}, {0: 1.0, 1: 2.0, 2: 3.0}) == pytest.approx(2 * tail, rel=1e-12)


def test_pairs_are_the_same_repeat():
    # Repeats differ far more than methods do: only the pairing shows that the second is always slower.
    first = {0: 1.0, 1: 10.0, 2: 100.0, 3: 1000.0}
    second = {3: 1000.5, 2: 100.4, 1: 10.6, 0: 1.5}
    assert differs(first, second) is True
    assert comparable({"first": first, "second": second}) == {"first"}


def test_repeats_that_one_method_lacks_are_left_out():
    first, second = {0: 1.0, 1: 2.0, 2: 4.0, 7: 1e9}, {0: 2.0, 1: 4.0, 2: 5.0, 8: -1e9}
    expected = ttest_rel([1.0, 2.0, 4.0], [2.0, 4.0, 5.0]).pvalue
    assert paired_p_value(first, second) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("second", [{}, {0: 5.0}, {5: 1.0, 6: 2.0}])
def test_fewer_than_two_pairs_allow_no_test(second):
    first = {0: 1.0, 1: 2.0}
    assert paired_p_value(first, second) is None
    assert differs(first, second) is None


def test_constant_differences_leave_no_doubt():
    first = {0: 0.1, 1: 0.2, 2: 0.7}
    assert paired_p_value(first, first) == 1.0
    assert paired_p_value(first, {repeat: value + 0.3 for repeat, value in first.items()}) == 0.0


def test_best_and_comparable():
    values = {
        "best": by_repeat([1.0, 1.2, 0.9, 1.1]),
        "as good": by_repeat([1.1, 1.1, 1.0, 1.0]),
        "worse": by_repeat([2.0, 2.2, 1.9, 2.2]),
    }
    assert comparable(values) == {"best", "as good"}
    assert comparable(values, lowest=False) == {"worse"}


def test_large_spread_makes_a_higher_mean_comparable():
    assert comparable({"a": by_repeat([1.0, 1.0, 1.0]), "b": by_repeat([0.1, 9.0, 2.0])}) == {"a", "b"}


def test_a_single_repeat_is_no_test_and_names_nothing():
    assert comparable({"a": {0: 1.0}, "b": {0: 2.0}}) == set()


def test_the_best_is_found_on_the_repeats_that_all_have():
    few, all_of_them = {0: 1.0, 1: 1.1}, {0: 0.5, 1: 0.6, 2: 9.0, 3: 9.5}
    assert comparable({"few": few, "all": all_of_them}) == {"all"}


def test_methods_without_values_are_not_compared():
    assert comparable({"a": {}, "b": {0: 1.0, 1: 2.0}}) == {"b"}
    assert comparable({}) == comparable({"a": {}}) == set()
