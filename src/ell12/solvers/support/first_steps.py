"""Rough answers to a problem whose penalty hardly counts where a run begins."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from ell12.protocols import Iterate
from ell12.solvers.support.place import PiecewiseProblem, Place

# On 500 x 2000 Gaussian columns four steps leave a hundredth of the loss, in a third of the time that a sparse
# answer as good takes; each costs a product with A and one with its adjoint.
STEPS = 5
# The strength falls from the violation at the start by FALL at a time, each time until the violation is at most
# ENOUGH times the strength, and down to STEEP times the penalty's own: rough solutions, soon found. On 500 x 2000
# Gaussian and correlated columns, at 0.003 of the largest alpha, falls of 0.25 and 0.5 took the same time. Where a
# path comes next, which shows little before its end, they may be less rough.
FALL, ENOUGH, ENOUGH_FOR_PATH, STEEP = 0.25, 0.5, 0.2, 16.0
# Where more columns want to change than there are rows, they are dependent, and a path leads on from the strength
# before. The kinks of a path take longer than solutions as long as columns are independent. So a convex problem
# falls more gently in the end: until about NEARLY as many columns are in use as there are rows, each time to
# GENTLEST at most, and down to STEEP_IF_CONVEX times the penalty's own. On 48 Lassos (100 x 400 to 500 x 2000,
# Gaussian, correlated and coherent columns, 3e-4 and less of the largest alpha) this took three quarters of the
# time of falls by FALL alone, and half of the kinks.
GENTLEST, NEARLY, STEEP_IF_CONVEX = 0.75, 0.92, 4.0
# A place whose violation is at most this fraction of the strength counts as stationary beside a lower one.
SETTLED = 1e-3


def first_iterates(problem: PiecewiseProblem, here: Place) -> Generator[Iterate, None, Iterate]:
    """Steps of conjugate gradients on a quadratic loss alone, while the objective falls; return the last."""
    loss, best, slope = problem.loss, here, here.gradient
    direction, square = -slope, float(slope @ slope)
    for _ in range(STEPS):
        move = loss.point(direction)
        bend = loss.gradient(here.point + move) - here.gradient
        curvature = float(direction @ bend)
        if not curvature > 0:
            break
        length = square / curvature
        slope = slope + length * bend
        found = problem.place(best.point + length * move, gradient=slope)
        if not found.objective < best.objective:
            break
        best, before, square = found, square, float(slope @ slope)
        yield best.iterate
        direction = (square / before) * direction - slope
    return best.iterate


def lower_iterates(best: Iterate, iterates: Iterator[Iterate], strength: float) -> Iterator[Iterate]:
    """A run's iterates, the best so far standing in for higher ones; they end where the run settles above it."""
    for iterate in iterates:
        is_higher = iterate.objective > best.objective
        if is_higher and (iterate.stuck or iterate.optimality <= SETTLED * strength):
            return
        yield best if is_higher else iterate


def easier_iterates(problem: Any, here: Place) -> Generator[Iterate, None, Place]:
    """Rough solutions without the subtracted norm at falling strengths, while these are soon found."""
    strength, fall, there, crowds, left = here.violation, FALL, here, 0, None
    most, enough = (1, ENOUGH_FOR_PATH) if problem.path_is_next else (math.inf, ENOUGH)
    steep = STEEP_IF_CONVEX if problem.penalty.is_convex else STEEP
    while strength > steep * problem.pull and left is None and crowds <= most and fall <= GENTLEST:
        easier = problem.at_strength(fall * strength, there)
        rough = easier.place(there.point, gradient=there.gradient)
        while rough.violation > enough * fall * strength and left is None and not easier.is_hopeless(rough):
            new, left = easier.improve(rough)
            if new is None:
                return here
            rough = new
            found = problem.place(rough.point, gradient=rough.gradient)
            here = found if found.objective <= here.objective else here
            yield here.iterate
        crowded, strength = easier.is_crowded(rough), fall * strength
        if not crowded:
            problem.easier.append((easier, rough))
        if problem.penalty.is_convex:
            if crowded:
                strength, fall = strength / fall, math.sqrt(fall)
                continue
            fall = gentle_fall(fall, there, rough)
        there, crowds = rough, crowds + crowded
    return here


def gentle_fall(fall: float, before: Place, here: Place) -> float:
    """How far the strength may fall until there are nearly as many columns in use as there are rows.

    The last fall tells by how much their number grows.
    """
    used = [int(np.count_nonzero(place.x)) for place in (before, here)]
    room, growth = NEARLY * here.point.prediction.shape[0] - used[1], max(used[1] - used[0], 1)
    return max(FALL, fall ** max(room / growth, 0.0))
