"""The one class that reads finished trials: choosing, order, repeats, and other ends of the same runs."""

import math

from ell12_paper.rows import make_row
from ell12_paper.trials import Trials


def made(method, image, repeat, value):
    settings = {"method": method, "image": image, "repeat": repeat}
    return make_row("fake", settings, {"value": value, "half": None, "is_limited": value > 2}, {})


ROWS = (
    made("b", "Sea", 1, 3.0),
    made("b", "Sea", 0, 1.0),
    made("a", "Sea", 0, 2.0),
    made("a", "Lake", 0, math.nan),
)
TRIALS = Trials(ROWS, "all", ("a", "b"), "image", ("Lake", "Sea"))


def test_trials_are_chosen_by_their_settings():
    assert TRIALS.where(method="b").rows == ROWS[:2]
    assert TRIALS.where(method="b", colour="red").rows == ()
    chosen = TRIALS.at("b", "Sea", repeat=1)
    assert (chosen.rows, chosen.name) == (ROWS[:1], "b")


def test_settings_are_listed_in_a_given_order_or_as_they_come():
    assert TRIALS.seen("method") == ("b", "a")
    assert TRIALS.seen("method", ("c", "a", "b")) == ("a", "b")
    assert TRIALS.n_repeats == 2


def test_values_are_those_that_were_measured_by_repeat():
    assert list(TRIALS.at("b", "Sea").values("value").items()) == [(0, 1.0), (1, 3.0)]
    assert TRIALS.at("a", "Lake").values("value") == {}
    assert TRIALS.at("a", "Lake").summary("value") is None
    assert math.isnan(TRIALS.at("a", "Lake").mean("value"))
    assert TRIALS.at("b", "Sea").mean("value") == 2.0
    assert TRIALS.where(image="Sea").n_limited == 1


def test_the_same_runs_may_be_read_as_another_rule_ended_them():
    halved = TRIALS.where(image="Sea").ended(
        lambda results: None if results["is_limited"] else {"value": results["value"] / 2}
    )
    assert halved.at("b", "Sea").values("value") == {0: 0.5}
    assert TRIALS.at("b", "Sea").values("value") == {0: 1.0, 1: 3.0}
