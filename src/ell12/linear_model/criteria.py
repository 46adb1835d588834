"""Information criteria, which judge a strength by one path on all data, without folds.

With k parameters, n samples and the likelihood L, AIC is ``-2 log L + 2 k`` and BIC ``-2 log L + k log n``. EBIC
(Chen & Chen, doi:10.1093/biomet/asn034) adds ``2 log C(p, s)``, twice the logarithm of the number of models with s
of p features; with this factor it finds the right model however fast p grows with n. For k stand the degrees of
freedom: on the support the fitted values change with the observations as ``H (H + P)^-1`` says, whose trace they
are; H is the Hessian of the loss and P that of the penalty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from ell12.backend import as_numpy, precision
from ell12.linear_model.fit_problem import FitProblem, as_vector
from ell12.linear_model.refit import refit_path, support
from ell12.losses import HuberLoss, SquaredLoss
from ell12.losses.cox import CoxLoss
from ell12.minimization import Result
from ell12.protocols import Array, with_alpha

CRITERIA = ("aic", "bic", "ebic")
# Strengths whose degrees of freedom exceed this share of the samples are not considered. With an unknown variance
# the likelihood of a squared loss grows without end as the degrees of freedom come near n.
MOST_FREEDOM = 0.5


def degrees_of_freedom(loss: Any, penalty: Any, x: Array, columns: Array) -> float:
    """``trace(H (H + P)^-1)`` in the given columns of x; NaN where x is no strict minimum in these.

    Without a subtracted norm and a ridge, P is zero, and this is the rank of H.

    Parameters
    ----------
    loss : Loss
        An `ell12.protocols.ColumnLoss`.
    penalty : Penalty
        One with a ``curvature``.
    x : array of shape (n,)
        A solution.
    columns : NumPy array of int
        The entries that can move: the support, and what is not penalised.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L1, L12, SquaredLoss
    >>> from ell12.linear_model.criteria import degrees_of_freedom
    >>> loss, x = SquaredLoss(np.eye(3), [4.0, 3.0, 0.1]), np.array([3.0, 2.0, 0.0])
    >>> degrees_of_freedom(loss, L1(1.0), x, np.array([0, 1]))
    2.0
    """
    if columns.size == 0:
        return 0.0
    hessian = np.asarray(as_numpy(loss.hessian(loss.point(x), columns)), dtype=np.float64)
    own = np.asarray(penalty.curvature(x).matrix(columns), dtype=np.float64)
    if not own.any():
        return float(np.linalg.matrix_rank(hessian, hermitian=True))
    values, vectors = np.linalg.eigh(hessian + own)
    images = hessian @ vectors
    flat = values <= values.size * np.finfo(float).eps * values[-1]
    if np.any(flat & (np.abs(images).max(axis=0) > 1e-8 * values[-1])):  # else nothing changes along it
        return math.nan
    return float(np.sum((vectors * images).sum(axis=0)[~flat] / values[~flat]))


def deviance(loss: Any, x: Array, n_samples: int) -> float:
    """``-2 log L`` less what is the same for every x, where the loss is a mean over the samples.

    The variance of a squared loss is not known and takes its most likely value: ``n log(RSS / n)``.
    """
    value = loss.value(loss.point(x))
    if isinstance(loss, HuberLoss):
        raise ValueError("an information criterion needs a likelihood, which loss='huber' has none of")
    if not isinstance(loss, SquaredLoss):
        return 2 * n_samples * value
    alone = loss.value(loss.point(loss.start()))  # what is left of it by rounding is no better fit
    smallest = max((8 * precision(loss.b)) ** 2 * alone, np.finfo(float).tiny)
    return n_samples * math.log(2 * max(value, smallest))


def criterion(name: str, deviance: Any, freedom: Any, n_samples: int, sizes: tuple[Any, Any]) -> Any:
    """The value of AIC, BIC or EBIC, of which the smallest is the best; infinite where it is not to be used.

    ``sizes`` are the number of features, or groups, selected, and of all.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.criteria import criterion
    >>> criterion("bic", np.array([10.0, 9.0]), np.array([3.0, 60.0]), 100, (2, 50)).round(4)
    array([23.8155,     inf])
    """
    each = 2.0 if name == "aic" else math.log(n_samples)
    some, all_ = sizes
    models = gammaln(all_ + 1) - gammaln(some + 1) - gammaln(all_ - some + 1) if name == "ebic" else 0.0
    usable = freedom <= MOST_FREEDOM * n_samples  # so is no NaN
    return np.where(usable, deviance + each * freedom + 2 * models, math.inf)


@dataclass(frozen=True)
class Judgement:
    """What the criteria need to know of a path: arrays of shape (n_problems, n_alphas), and numbers.

    ``sizes`` are the features, or groups, selected, and ``all_sizes``, one for each problem, those there are. The
    observations are the samples of positive weight; of survival times the events alone, as the censored ones carry
    next to no information (Volinsky & Raftery, doi:10.1111/j.0006-341X.2000.00256.x).
    """

    deviances: Array
    freedoms: Array
    sizes: Array
    all_sizes: Array
    n_observations: int

    def criterion(self, name: str) -> Array:
        """AIC, BIC or EBIC of each alpha, summed over the problems."""
        sizes = self.sizes, self.all_sizes[:, None]
        return criterion(name, self.deviances, self.freedoms, self.n_observations, sizes).sum(axis=0)


def judge(
    model: Any,
    problems: list[FitProblem],
    penalty: Any,
    runs: list[list[Result]],
    alphas: Array,
    sample_weight: Any,
) -> Judgement:
    """The deviance, the degrees of freedom and the features selected at each alpha, of a path of each problem."""
    if any(problem.n_targets for problem in problems):
        raise ValueError("an information criterion does not take a joint penalty, such as RowsL12")
    loss, rows = problems[0].loss, []
    counted = np.ones(loss.b.shape[0], dtype=bool) if sample_weight is None else as_numpy(sample_weight) > 0
    n_samples = int(np.count_nonzero(counted))
    for problem, path in zip(problems, runs, strict=True):
        own, solutions = problem.penalty(penalty), [as_vector(run.x) for run in path]
        final = refit_path(problem, solutions, penalty, math.inf) if model._refit_share else solutions
        for alpha, found, x in zip(alphas, solutions, final, strict=True):
            strength = float(alpha) if x is found else 0.0  # a refit has no penalty
            freedom = degrees_of_freedom(problem.loss, with_alpha(own, strength), x, support(problem, x))
            freedom += model.fit_intercept and problem.n_intercepts == 0
            used = as_numpy(found)[: found.shape[0] - problem.n_intercepts] != 0
            units = problem.coefficient_penalty(penalty).units(used.size)
            some, all_ = np.unique(units[used]).size, np.unique(units).size
            rows.append((deviance(problem.loss, x, n_samples), freedom, some, all_))
    table = np.array(rows).reshape(len(problems), -1, 4)
    if isinstance(loss, CoxLoss):
        counted = counted & (as_numpy(loss.b) > 0)
    deviances, freedoms, sizes, all_sizes = np.moveaxis(table, 2, 0)
    return Judgement(deviances, freedoms, sizes, all_sizes[:, 0], int(np.count_nonzero(counted)))
