"""The rivals' published stopping rules, as functions of the history for the ``stop`` of `ell12.minimize`."""

from __future__ import annotations

from collections.abc import Callable

from ell12.checks import check_counts, check_numbers


def objective_settled(
    *, relative: float = 0.0, absolute: float = 0.0, reduced_to: float = 0.0, after: int = 1
) -> Callable[[dict[str, list[float]]], bool]:
    """Stop when ``|F_k - F_{k-1}| <= absolute + relative |F_{k-1}|`` or ``F_k <= reduced_to F_0``.

    Parameters
    ----------
    relative, absolute : float, default 0.0
        How small a change of the objective is small. A change of exactly zero always is.
    reduced_to : float, default 0.0
        What share of the first objective is left where there is nothing more to gain.
    after : int, default 1
        The first step at which to look at the change.

    Returns
    -------
    function
        For the ``stop`` of `ell12.minimize`.

    Examples
    --------
    >>> from ell12_paper.rivals import objective_settled
    >>> stop = objective_settled(relative=0.1)
    >>> stop({"objective": [10.0, 5.0]}), stop({"objective": [10.0, 5.0, 4.9]})
    (False, True)
    """
    check_numbers(relative=relative, absolute=absolute, reduced_to=reduced_to)
    check_counts(after=after)

    def stop(history: dict[str, list[float]]) -> bool:
        column = history["objective"]
        if column[-1] <= reduced_to * column[0]:
            return True
        if len(column) <= max(after, 1):
            return False
        return abs(column[-1] - column[-2]) <= absolute + relative * abs(column[-2])

    return stop
