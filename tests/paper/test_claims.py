"""Claims are judged as they should be, on made-up trials."""

import math

import pytest

from ell12_paper.comparisons import Answer, Claim, Outcome, Reading, faster, lower_at_end, worst
from ell12_paper.trials import Trials, comparable, differs, geometric_ratio
from ell12_paper.words import RangeInWords

HOLDS, PARTLY, FAILS, OPEN = Outcome


def trials(*times, name="ours", limited=False):
    results = ({"cpu_seconds": t, "rmse": t, "is_limited": limited} for t in times)
    rows = ({"settings": {"repeat": k}, "results": found} for k, found in enumerate(results))
    return Trials(tuple(rows), name)


def test_a_difference_is_distinguished_from_chance_repeat_by_repeat():
    fast, slow = trials(1.0, 2.0, 4.1), trials(10.0, 20.2, 40.4, name="theirs")
    found = [faster("here", fast, slow), faster("here", slow, fast), faster("here", fast, slow, times=20)]
    assert [answer.outcome for answer in found] == [HOLDS, FAILS, FAILS]
    assert "spread" in faster("here", trials(1.0, 2.0), trials(1.1, 1.9)).doubt
    assert "single repeat" in faster("here", trials(1.0), trials(2.0)).doubt
    assert "no rows" in faster("here", trials(), trials(2.0)).doubt
    assert differs({0: 1.0, 1: 2.0}, {0: 1.0 + 1e-16, 1: 2.0}) is False  # rounding
    assert differs({0: 1.0, 1: 2.0}, {0: 2.0, 1: 3.0}) is True
    assert comparable({"a": {0: 1.0}, "b": {0: 2.0}}) == set()
    assert geometric_ratio(trials(1.0, 2.0), trials(4.0, 8.0)) == pytest.approx(4.0)
    assert math.isnan(geometric_ratio(trials(), trials(1.0)))


def test_a_run_at_a_limit_may_lose_but_not_win():
    fast, slow = (1.0, 1.1, 1.2), (5.0, 5.6, 6.1)
    assert faster("here", trials(*fast, limited=True), trials(*slow)).outcome is OPEN
    assert faster("here", trials(*fast), trials(*slow, limited=True)).outcome is HOLDS
    assert lower_at_end("here", "rmse", trials(*fast), trials(*slow, limited=True)).outcome is OPEN
    assert lower_at_end("here", "rmse", trials(*fast), trials(*slow)).outcome is HOLDS


def test_the_worst_of_the_rivals_decides():
    yes, no, open_ = Answer("a", HOLDS), Answer("a", FAILS), Answer("a", OPEN, "why")
    assert worst("a", {"x": yes, "y": no, "z": open_}).outcome is FAILS
    assert worst("a", {"x": yes, "z": open_}) == Answer("a", OPEN, "z: why")
    assert worst("a", {"x": yes}).outcome is HOLDS


@pytest.mark.parametrize(
    ("outcomes", "total"),
    [((HOLDS, HOLDS), HOLDS), ((HOLDS, FAILS), PARTLY), ((HOLDS, OPEN), PARTLY), ((OPEN, FAILS, OPEN), FAILS)],
)
def test_readings_come_to_a_verdict_and_to_one_number(outcomes, total):
    numbers = [RangeInWords([k, k + 5.0], unit="{} s") for k in range(3)]
    readings = (Reading(str(k), o, "", "", numbers[k], "9 s") for k, o in enumerate(outcomes))
    claim = Claim("prox", "paper", "", "", tuple(readings))
    each = "0 to 5 s (0); 1 to 6 s (1)" if len(outcomes) == 2 else "0 to 7 s"
    assert (claim.outcome, claim.brief) == (total, f"{each}; the paper: 9 s")
