"""Newton's method in the groups that nmAPG finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ell12.backend import as_numpy, like
from ell12.protocols import ColumnLoss, FarLoss, GroupPenalty, Iterate, Needs, Point, offers
from ell12.solvers.proximal_gradient import NonmonotoneAPG
from ell12.solvers.proximal_step import ProximalStep
from ell12.solvers.support.newton import LARGEST_SUPPORT, NewtonStep
from ell12.solvers.support.place import Place, SmoothProblem

# nmAPG takes FIRST_STEPS steps before Newton's method is tried, and twice as many each time after that. Newton's
# method has NEWTON_STEPS each time: some 10 to 40 do as a rule, and more were seen to go to and fro.
FIRST_STEPS, NEWTON_STEPS = 50, 50


@dataclass(frozen=True)
class GroupNewton:
    """The default for groups: nmAPG until some are found, then Newton's method in these.

    Where no group is zero the objective is smooth. Each step solves with its Hessian in the groups in use, shifted
    until it is positive definite; groups that would turn back through zero leave. A proximal step follows, by
    which others enter. Where Newton's method finds no way down, nmAPG goes on, for twice as many steps as before.

    See Also
    --------
    GroupL12 : The penalty it is made for.
    NonmonotoneAPG : The paper's method.
    WorkingSet : The default for single entries.

    Notes
    -----
    For real vectors x, losses whose columns are at hand (`ell12.protocols.ColumnLoss`) and penalties of groups
    (`ell12.protocols.GroupPenalty`). Where columns are out of memory, or more than some thousand are in use, all
    steps are nmAPG's.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import GroupL12, GroupNewton, SquaredLoss, minimize
    >>> loss = SquaredLoss(np.eye(4), [3.0, -4.0, 0.5, 0.5])
    >>> minimize(loss, GroupL12([0, 0, 1, 1], 1.0, l2_weight=0.0), solver=GroupNewton(), tol=1e-12).x.round(4)
    array([ 2.4, -3.2,  0. ,  0. ])
    """

    needs: ClassVar[Needs] = Needs(ColumnLoss, GroupPenalty, x="real vector, columns at hand")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        problem, point, steps = SmoothProblem(loss, penalty), start, FIRST_STEPS
        take_newton_step = _StepInGroups(problem)
        take_proximal_step = ProximalStep(loss, penalty, "backtracking", start)
        is_far = offers(loss, FarLoss) and loss.is_far
        while True:
            for n, iterate in enumerate(NonmonotoneAPG().iterates(loss, penalty, point), 1):
                yield iterate
                if n >= steps and not is_far:
                    break
            here = problem.place(iterate.point)
            for _ in range(NEWTON_STEPS):
                new = take_newton_step(here)
                old, lower = here, new or here
                here = problem.lower(take_proximal_step(lower.point), lower)
                yield here.iterate
                if new is None or not problem.is_progress(old, here):
                    break
            point, steps = here.point, 2 * steps


class _StepInGroups(NewtonStep):
    """A step of Newton's method in the groups that are not zero."""

    def __call__(self, here: Place) -> Place | None:
        """The place after the step; None where there is none, or too many columns are in use."""
        return super().__call__(here) if np.count_nonzero(here.x) <= LARGEST_SUPPORT else None

    def columns(self, here: Place) -> Any:
        """Those in use: groups enter by proximal steps."""
        return np.flatnonzero(here.x)

    def stopping(self, here: Place) -> Callable[[Any], Any]:
        """The map from an x to the entries of groups that would turn back through zero."""
        x, used = here.point.x, here.x != 0
        return lambda full: used & as_numpy(self.problem.penalty.turned(x, like(full, x)))
