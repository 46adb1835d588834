"""The iterations at which checks are made, against the list written out."""

from itertools import pairwise

from ell12.solvers.proximal_step import LONGEST, BackOff


def checks_of(outcomes, iterations):
    """The iterations at which a check was due, where each check ends as the outcomes say."""
    back_off, found = BackOff(), []
    for iteration in range(iterations):
        if back_off.is_due():
            back_off.record(outcomes(len(found)))
            found.append(iteration)
    return found


def test_pauses_double_up_to_the_longest():
    found = checks_of(lambda _: False, 500)
    expected, pause = [0], 1
    while expected[-1] + pause < 500:
        expected.append(expected[-1] + pause)
        pause = min(2 * pause, LONGEST)
    assert found == expected
    assert max(b - a for a, b in pairwise(found)) == LONGEST


def test_a_success_makes_the_pauses_short_again():
    found = checks_of(lambda number: number == 5, 60)
    assert found[:9] == [0, 1, 3, 7, 15, 31, 32, 33, 35]


def test_checks_that_succeed_are_made_at_every_iteration():
    assert checks_of(lambda _: True, 20) == list(range(20))
