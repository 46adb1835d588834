"""How long to wait before an estimate that was too rosy is checked again."""

from __future__ import annotations

# Checks that fail are this many iterations apart at the most: a run that has arrived is soon seen to have.
LONGEST = 64


class BackOff:
    """Waits twice as long after each check that failed, from one iteration to `LONGEST`.

    Examples
    --------
    >>> from ell12.solvers.back_off import BackOff
    >>> back_off, checks = BackOff(), []
    >>> for iteration in range(8):
    ...     if back_off.is_due():
    ...         checks.append(iteration)
    ...         back_off.record(False)
    >>> checks
    [0, 1, 3, 7]
    """

    def __init__(self) -> None:
        self.pause, self.left = 1, 0

    def is_due(self) -> bool:
        """Count an iteration; return whether a check may be made in it."""
        self.left = max(self.left - 1, 0)
        return self.left == 0

    def record(self, success: bool) -> None:
        """Take note of a check."""
        self.left, self.pause = (1, 1) if success else (self.pause, min(2 * self.pause, LONGEST))
