"""The dual gap of the Lasso: how far, at the most, an objective lies above the minimum."""

from __future__ import annotations

from typing import Any

from ell12.backend import inner, max_abs, namespace
from ell12.protocols import Array


def dual_gap(loss: Any, x: Array, alpha: float, ridge: float = 0.0, *, positive: bool = False) -> float:
    """The gap of ``loss + alpha (||x||_1 + ridge/2 ||x||^2)`` at x, as scikit-learn's ElasticNet has it.

    With the residual r and the gradient g of the loss the dual point is ``s r``, s so small that it is feasible:
    ``s = min(1, alpha / max_j |g_j + alpha ridge x_j|)``. Norms of rows stand for moduli where x is a matrix.

    Parameters
    ----------
    loss : SquaredLoss or QuadraticLoss
        Its value is half the square of the residual.
    x : array of shape (n,) or (n, n_targets)
        Anywhere.
    alpha, ridge : float
        Strength, above 0, and the weight of half the squared norm.
    positive : bool, default False
        Whether only ``x >= 0`` is allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SquaredLoss
    >>> from ell12.linear_model.dual_gap import dual_gap
    >>> loss = SquaredLoss(np.eye(2), [3.0, 0.5])
    >>> dual_gap(loss, np.array([2.0, 0.0]), 1.0), dual_gap(loss, np.zeros(2), 1.0)
    (0.0, 2.055...)
    """
    point = loss.point(x)
    gradient, square = loss.gradient(point), 2 * loss.value(point)
    xp, pull = namespace(x), -gradient - alpha * ridge * x
    if positive:
        pull = xp.where(pull > 0, pull, 0)
    sizes, moduli = (xp.linalg.vector_norm(v, axis=1) if v.ndim == 2 else v for v in (pull, x))
    steepest = max_abs(sizes)
    scale = alpha / steepest if steepest > alpha else 1.0
    shrunk = square + alpha * ridge * inner(x, x)
    along = square - inner(gradient, x)  # the residual times the observations
    total = float(xp.sum(xp.abs(moduli)))
    return 0.5 * shrunk + alpha * total + 0.5 * scale**2 * shrunk - scale * along
