"""The strength at which a path begins, and the grid of strengths from there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ell12.backend import all_finite, as_numpy, beside, max_abs, precision, refuse_masked
from ell12.checks import check_counts, check_l2_weight, check_share
from ell12.losses.of_prediction import PredictionLoss
from ell12.minimization import certificate, minimize
from ell12.path.structure import Structure, l12_penalty, structure
from ell12.penalties import WithIntercept
from ell12.protocols import Array, Point, with_alpha

# A longer grid is a mistake: it would not fit in memory, or its strengths could not be told apart.
MOST_ALPHAS = 10**6


def alpha_max(
    loss: PredictionLoss,
    l2_weight: float = 1.0,
    *,
    weights: Any = None,
    positive: bool = False,
    groups: Any = None,
    ridge: float = 0.0,
    intercept: int = False,
) -> float:
    """The alpha at which a path begins: above it the sparsest solution there is stays a solution.

    For ``l2_weight < 1`` that solution is zero, and ``alpha_max = max_j |gradient_j f(0)| / (w_j - l2_weight)``,
    with a ridge too, whose slope at zero is zero. For ``l2_weight = 1`` a vector with one entry costs nothing but
    its ridge, so zero is a solution for no alpha: the sparsest is then the best fit by one column
    (`one_sparse_fit`), stationary from ``max_k |gradient_k f| / w_k`` over the other columns k on. Of a loss with
    several right-hand sides the unknown is a matrix, to which `ell12.RowsL12` gives one support: the norms of the
    gradient's rows stand in place of the moduli.

    Parameters
    ----------
    loss : PredictionLoss
        Such as `ell12.SquaredLoss`, `ell12.LogisticLoss` or `ell12.losses.CoxLoss`.
    l2_weight : float, default 1.0
        Weight of the subtracted norm, from 0 to 1.
    weights : array, optional
        Weights of the l1 norm. Where some lie at or below l2_weight while others differ, the result is the
        beginning of a useful grid rather than an exact bound. The entries of weight 0 are fitted first.
    positive : bool, default False
        Whether only ``x >= 0`` is allowed.
    groups : array of int, optional
        The group, 0, 1, ..., of each entry, as in `ell12.GroupL12`: norms of groups stand in place of the moduli,
        and the best group in place of the best column.
    ridge : float, default 0.0
        Weight of half the squared norm, as in `ell12.L12`.
    intercept : bool or int, default False
        Whether the last entry of x is an intercept, or how many are: free of penalty and sign, fitted first.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SquaredLoss
    >>> from ell12.path import alpha_max
    >>> loss = SquaredLoss(np.eye(3), [3.0, -2.0, 1.0])
    >>> round(alpha_max(loss), 6), alpha_max(loss, l2_weight=0.5)
    (2.0, 6.0)
    """
    check_l2_weight(l2_weight)
    options = {"weights": weights, "positive": positive, "groups": groups}
    parts = structure(loss.start().shape[0], intercept=intercept, **options)
    weight = parts.weight
    x = _fit_columns(loss, parts, parts.columns(weight == 0))
    smallest = float(weight.min(where=weight > 0, initial=np.inf))
    pull = _pull(loss, parts, x)
    if l2_weight < smallest:
        return float(np.max(pull / np.where(weight > 0, weight - l2_weight, np.inf), initial=0.0))
    before = float(np.max(np.where(weight > 0, pull, 0)))

    def needed(shrinkage: float) -> float:
        """The strength that keeps the others out where one column, or group, is fitted under this ridge."""
        fit, chosen = _best_modulus(loss, parts, x, shrinkage)
        others = (weight > 0) & (np.arange(weight.size) != chosen)
        return float(np.max(_pull(loss, parts, fit) / np.where(others, weight, np.inf), initial=0.0))

    top = needed(0.0)
    if ridge > 0:  # the ridge of that fit grows with the strength sought
        high = max(top, float(np.max(pull / np.where(weight > 0, weight, np.inf), initial=0.0)))
        top = _crossing(lambda alpha: needed(alpha * ridge), high)
    return top if top > 100 * _accuracy(x) * before else 0.0  # one column fits all there is to fit


def one_sparse_fit(loss: PredictionLoss, *, ridge: float = 0.0, intercept: int = False, **options: Any) -> Array:
    """The best fit by one penalised column, beside those that are not penalised; arguments as in `alpha_max`.

    Its own coefficient c costs ``ridge/2 c^2``: here the ridge is that of `ell12.L12` times the strength.

    The column is the one that promises the largest fall of the objective by its gradient and curvature at the fit
    without it, which for the squared loss is the largest fall there is if no entry has weight 0.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SquaredLoss
    >>> from ell12.path import one_sparse_fit
    >>> one_sparse_fit(SquaredLoss(np.eye(3), [3.0, -4.0, 1.0])).round(6)
    array([ 0., -4.,  0.])
    """
    parts = structure(loss.start().shape[0], intercept=intercept, **options)
    x = _fit_columns(loss, parts, parts.columns(parts.weight == 0))
    return beside(_best_modulus(loss, parts, x, ridge)[0], loss.start(), "x")


def first_strength(loss: PredictionLoss, l2_weight: float = 1.0, **options: Any) -> float:
    """Where a grid begins: at `alpha_max`; where that is 0, at the Lasso's, which has the units of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SquaredLoss
    >>> from ell12.path import alpha_max, first_strength
    >>> loss = SquaredLoss(np.array([[1.0], [2.0]]), [1e-6, 3e-6])  # one column: l1-2 costs nothing
    >>> alpha_max(loss), first_strength(loss)
    (0.0, 7e-06)
    """
    return alpha_max(loss, l2_weight, **options) or alpha_max(loss, 0.0, **options)


def alpha_grid(top: float, n_alphas: int = 100, eps: float = 1e-3) -> Array:
    """``n_alphas`` numbers from ``top`` down to ``eps top``, equal in ratio; from 1 where top is 0.

    A top of 0 says that the sparsest solution is a solution for every alpha, so that any grid will do.

    Examples
    --------
    >>> from ell12.path import alpha_grid
    >>> alpha_grid(8.0, n_alphas=4, eps=1 / 8)
    array([8., 4., 2., 1.])
    """
    check_share(eps, "eps")
    check_counts(least=1, most=MOST_ALPHAS, optional=False, n_alphas=n_alphas)
    return (top or 1.0) * np.geomspace(1.0, eps, n_alphas)


def grid_size(alphas: Any, n_alphas: int) -> int | None:
    """How many strengths an automatic grid has: ``alphas`` if that is a whole number; None if it is a grid."""
    if isinstance(alphas, int | np.integer) and not isinstance(alphas, bool):
        check_counts(least=1, most=MOST_ALPHAS, alphas=alphas)
        return int(alphas)
    if alphas is not None:
        return None
    check_counts(least=1, most=MOST_ALPHAS, optional=False, n_alphas=n_alphas)
    return n_alphas


def best_on_log_grid(
    score: Callable[[float], float],
    first: float,
    *,
    ratio: float = 1.5,
    least: float = 0.0,
    most: float = math.inf,
    patience: int = 2,
) -> float:
    """The strength of the lowest score: a search in both directions on a logarithmic grid, then a parabola.

    From ``first`` the search goes down in steps of ``ratio`` until the score has failed to improve ``patience``
    times in a row, then up if no smaller strength was better. The result is the vertex of the parabola through the
    best strength and its two neighbours, at most half a step from the best: it lies between strengths that were
    scored. A score that is not finite counts as the worst.

    Parameters
    ----------
    score : function
        From a strength to what is to be small. It is called once for each strength.
    first : float
        Where the search begins, above 0.
    ratio : float, default 1.5
        Between two neighbours on the grid, above 1.
    least, most : float, default 0 and infinity
        No strength outside is scored or returned.
    patience : int, default 2
        How many steps in a row may bring nothing.

    Examples
    --------
    >>> import math
    >>> from ell12.path import best_on_log_grid
    >>> round(best_on_log_grid(lambda alpha: math.log(alpha / 0.3) ** 2, 1.0), 6)
    0.3
    """
    scores: dict[int, float] = {}

    def at(step: int) -> float:
        if step not in scores:
            alpha = first * ratio**step
            value = score(alpha) if step == 0 or least <= alpha <= most else math.inf
            scores[step] = value if math.isfinite(value) else math.inf
        return scores[step]

    best = 0
    for direction in (-1, 1):
        step, failures = direction, 0
        while failures < patience and least <= first * ratio**step <= most and 0 < first * ratio**step < math.inf:
            best, failures = (step, 0) if at(step) < at(best) else (best, failures + 1)
            step += direction
        if best != 0:
            break
    below, middle, above = at(best - 1), at(best), at(best + 1)
    if not math.isfinite(below + above) or below + above <= 2 * middle:
        return first * ratio**best
    return first * ratio ** (best + 0.5 * (below - above) / (below - 2 * middle + above))


def vanishing_strength(loss: Any, penalty: Any) -> float:
    """The alpha from which on zero is a solution, for any penalty that can be scaled; to a millionth.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import MCP, SquaredLoss
    >>> from ell12.path import vanishing_strength
    >>> round(vanishing_strength(SquaredLoss(np.eye(3), [3.0, -2.0, 1.0]), MCP()), 5)
    3.0
    """
    count = penalty.count if isinstance(penalty, WithIntercept) else 0
    parts = structure(loss.start().shape[0], intercept=count)  # intercepts are fitted first
    zero = _point(loss, _fit_columns(loss, parts, parts.columns(parts.weight == 0)))
    gradient = loss.gradient(zero)
    size = max_abs(gradient)

    def is_solution(alpha: float) -> bool:
        return alpha * certificate(loss, with_alpha(penalty, alpha), zero, gradient) <= _accuracy(zero.x) * size

    if size == 0:
        return 0.0
    high = size
    for _ in range(60):
        if is_solution(high):
            break
        high *= 2
    else:
        raise ValueError(f"zero is a solution for no strength of {type(penalty).__name__}: give alphas")
    low = high
    while is_solution(low) and low > 2.0**-60 * high:
        low /= 2
    while high > (1 + 1e-6) * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if is_solution(middle) else (middle, high)
    return high


def falling(alphas: Any) -> Array:
    """The alphas, checked, from large to small."""
    refuse_masked(alphas, "alphas")
    alphas = np.asarray(alphas)
    if alphas.dtype.kind not in "biuf":
        raise ValueError(f"alphas must hold numbers, got dtype {alphas.dtype}")
    alphas = alphas.astype(np.float64)
    if alphas.ndim != 1 or alphas.size == 0:
        raise ValueError(f"alphas must be a vector of numbers, got shape {alphas.shape}")
    if not all_finite(alphas) or alphas.min() < 0:
        raise ValueError("alphas must hold finite numbers >= 0 only")
    return np.sort(alphas)[::-1]


def _fit_columns(
    loss: PredictionLoss, parts: Structure, columns: Array, ridge: float = 0.0, chosen: int = -1
) -> Array:
    """The fit by some columns alone, as accurate as rounding lets it be without effort; a NumPy array.

    The coefficients of the chosen modulus cost ``ridge/2`` times their squares.
    """
    x = np.zeros_like(as_numpy(loss.start()))
    if columns.size == 0:
        return x
    inner = loss.restrict(columns)
    n_intercepts = int(np.count_nonzero(columns >= x.shape[0] - parts.intercept))
    kept = columns[: columns.size - n_intercepts]
    options: dict[str, Any] = {}
    if kept.size > 0:  # else no entry is left for a bound to bind
        options = parts.within(kept) | {"intercept": n_intercepts}
    size = max_abs(inner.gradient(inner.point(inner.start())))
    if size <= _accuracy(x) * max_abs(loss.gradient(loss.point(loss.start()))):
        return x  # at zero they fit already, up to rounding: a loss may begin at its best intercept
    tol, strength = _accuracy(x) * size, 0.0
    if ridge > 0 and size > 0:  # the norms of a single modulus cancel at l2_weight 1, and its ridge is left
        numbers, labels = np.unique(parts.number[kept], return_inverse=True)
        strength, weights = size, (numbers == chosen).astype(float)
        options |= {"weights": weights, "ridge": ridge / size, "rows": x.ndim == 2}
        options |= {"groups": labels} if parts.grouped else {}
    result = minimize(inner, l12_penalty(strength, 1.0, **options), tol=tol / (strength or 1.0), max_iter=1000)
    x[columns] = as_numpy(result.x)
    return x


def _best_modulus(loss: PredictionLoss, parts: Structure, x: Array, ridge: float) -> tuple[Array, int]:
    """The fit with one penalised column, or group, added to those that x uses, and its number."""
    weight, gradient = parts.weight, as_numpy(loss.gradient(_point(loss, x)))
    fall = (_falls_of_groups if parts.grouped else _falls)(loss, parts, x, gradient, ridge)
    chosen = int(np.argmax(np.where((weight > 0) & np.isfinite(weight), fall, 0)))
    columns = parts.columns((weight == 0) | (np.arange(weight.size) == chosen))
    return _fit_columns(loss, parts, columns, ridge, chosen), chosen


def _falls(loss: PredictionLoss, parts: Structure, x: Array, gradient: Array, ridge: float) -> Array:
    """The root of twice the fall of the objective that each column promises, by its gradient and curvature.

    The root neither overflows nor underflows where the data do not.
    """
    pull, squares = parts.pull(gradient), as_numpy(loss.column_curvatures(_point(loss, x))) + ridge
    size = np.sqrt(squares)
    return np.divide(pull, size, out=np.zeros_like(pull), where=squares > 0)


def _falls_of_groups(loss: PredictionLoss, parts: Structure, x: Array, gradient: Array, ridge: float) -> Array:
    """The same of each group."""
    falls, point = np.zeros(parts.weight.size), _point(loss, x)
    for chosen in np.flatnonzero((parts.weight > 0) & np.isfinite(parts.weight)):
        columns = np.flatnonzero(parts.number == chosen)
        hessian, slope = as_numpy(loss.hessian(point, columns)), gradient[columns]
        values, vectors = np.linalg.eigh(hessian + ridge * np.eye(columns.size))
        some = values > columns.size * precision(hessian) * values[-1]
        falls[chosen] = np.linalg.norm((vectors.T @ slope)[some] / np.sqrt(values[some]))
    return falls


def _crossing(needed: Callable[[float], float], high: float) -> float:
    """An alpha, to a millionth, that is as large as the one needed there; 0 if even the smallest exceeds that."""
    while needed(high) > high:
        high *= 2
    low = 1e-6 * high
    if needed(low) <= low:
        return 0.0
    return float(brentq(lambda alpha: needed(alpha) - alpha, low, high, xtol=1e-6 * low, rtol=1e-6))


def _accuracy(x: Array) -> float:
    """How small a gradient, relative to the first one, a short run reaches in the precision of x."""
    return precision(x) ** 0.625


def _pull(loss: PredictionLoss, parts: Structure, x: Array) -> Array:
    """How hard the loss pulls each modulus away from zero, in the directions that are allowed."""
    return parts.pull(loss.gradient(_point(loss, x)))


def _point(loss: PredictionLoss, x: Array) -> Point:
    """A NumPy array as a point, sent to where the data are."""
    return loss.point(beside(x, loss.start(), "x"))
