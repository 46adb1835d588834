"""The strength at which a path begins, grids of strengths, and the search for the best one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ell12.backend import as_numpy, max_abs, precision, refuse_masked, to_device_of
from ell12.checks import check_counts, check_numbers, check_scalars, check_share, naming
from ell12.minimization import minimize
from ell12.minimization.loop import certificate
from ell12.minimization.solver_choice import check_kind
from ell12.operators.column_sources import BLOCK
from ell12.penalties import L12, GroupL12, RowsL12, WithIntercept
from ell12.penalties.magnitudes import MagnitudesL12
from ell12.protocols import Array, Loss, Point, with_alpha


def alpha_max(loss: Any, penalty: Any) -> float:
    """The alpha at which a path begins: above it the sparsest solution there is stays a solution.

    As a rule that solution is zero. Under l1-2 with ``l2_weight < 1``, ``alpha_max`` is
    ``max_j |gradient_j f(0)| / (w_j - l2_weight)``. For ``l2_weight = 1`` a vector with one entry costs nothing
    but its ridge, so zero is a solution for no alpha: the sparsest is then the best fit by one column
    (`one_sparse_fit`), stationary from ``max_k |gradient_k f| / w_k`` over the other columns k on. For groups, and
    rows of a matrix, norms stand in place of the magnitudes. Entries of weight 0 are fitted first. For other
    penalties the strength is found by bisection, to a millionth.

    Parameters
    ----------
    loss : Loss
        Such as `ell12.SquaredLoss`, `ell12.LogisticLoss` or `ell12.losses.CoxLoss`.
    penalty : Penalty
        Such as `ell12.L12` or `ell12.MCP`; its own alpha does not count. Where some of its weights lie at or below
        l2_weight while others differ, the result is the beginning of a useful grid rather than an exact bound.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, MCP, SquaredLoss
    >>> from ell12.path import alpha_max
    >>> loss = SquaredLoss(np.eye(3), [3.0, -2.0, 1.0])
    >>> [round(alpha_max(loss, penalty), 4) for penalty in (L12(), L12(l2_weight=0.5), MCP())]
    [2.0, 6.0, 3.0]
    """
    return _beginning(loss, penalty)[0]


def _beginning(loss: Any, penalty: Any) -> tuple[float, Array | None]:
    """`alpha_max`, and the solution there if it was computed."""
    check_kind(loss, "loss", Loss, "SquaredLoss(A, b)")
    inner, _ = _parts(penalty)
    if not isinstance(inner, MagnitudesL12):
        return _vanishing_strength(loss, penalty), None
    structure = Structure.of(penalty, loss.start().shape[0])
    weight, l2_weight = structure.weight, inner.l2_weight
    x = _fit_columns(loss, structure, structure.columns(weight == 0))
    smallest = float(weight.min(where=weight > 0, initial=np.inf))
    size = structure.size(loss, x)
    if l2_weight < smallest:
        return float(np.max(size / np.where(weight > 0, weight - l2_weight, np.inf), initial=0.0)), x

    def needed(ridge: float) -> tuple[float, Array]:
        """The strength that keeps the others out where one column, or group, is fitted under this ridge."""
        fit, chosen = _best_modulus(loss, structure, x, ridge)
        others = (weight > 0) & (np.arange(weight.size) != chosen)
        return float(np.max(structure.size(loss, fit) / np.where(others, weight, np.inf), initial=0.0)), fit

    top, fit = needed(0.0)
    if inner.ridge > 0:  # the ridge of that fit grows with the strength sought
        high = max(top, float(np.max(size / np.where(weight > 0, weight, np.inf), initial=0.0)))
        top = _crossing(lambda alpha: needed(alpha * inner.ridge)[0], high)
        fit = _best_modulus(loss, structure, x, (top or 1.0) * inner.ridge)[0]
    before = float(np.max(np.where(weight > 0, size, 0)))
    return (top if top > 100 * _accuracy(x) * before else 0.0), fit  # else one column fits all there is to fit


def one_sparse_fit(loss: Any, penalty: Any, alpha: float = 0.0) -> Array:
    """The best fit by one penalised column, or group, and those that are not penalised.

    The column is the one that promises the largest decrease of the objective by its gradient and curvature at the
    fit without it, which for the squared loss is the largest there is if no entry has weight 0.

    Parameters
    ----------
    loss, penalty
        As in `alpha_max`, the penalty being one of the l1-2 family.
    alpha : float, default 0.0
        The strength by which the penalty's ridge is multiplied.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss
    >>> from ell12.path import one_sparse_fit
    >>> one_sparse_fit(SquaredLoss(np.eye(3), [3.0, -4.0, 1.0]), L12()).round(6)
    array([ 0., -4.,  0.])
    """
    structure = Structure.of(penalty, loss.start().shape[0])
    x = _fit_columns(loss, structure, structure.columns(structure.weight == 0))
    return to_device_of(_best_modulus(loss, structure, x, alpha * _parts(penalty)[0].ridge)[0], loss.start(), "x")


def first_strength(loss: Any, penalty: Any) -> float:
    """Where a grid begins: at `alpha_max`; where that is 0, at that of the convex part."""
    return first_solution(loss, penalty)[0]


def first_solution(loss: Any, penalty: Any) -> tuple[float, Array | None]:
    """`first_strength`, and the sparsest solution there if it was computed: a NumPy array."""
    found, x = _beginning(loss, penalty)
    if found == 0 and isinstance(_parts(penalty)[0], MagnitudesL12):
        return alpha_max(loss, with_alpha(penalty, 1.0).convex), x
    return found, x


def alpha_grid(top: float, n_alphas: int = 100, eps: float = 1e-3) -> Array:
    """``n_alphas`` numbers from ``top`` down to ``eps top``, equal in ratio; from 1 where top is 0.

    A top of 0 says that the sparsest solution is a solution for every alpha, so that any grid will do.

    Examples
    --------
    >>> from ell12.path import alpha_grid
    >>> alpha_grid(8.0, n_alphas=4, eps=1 / 8)
    array([8., 4., 2., 1.])
    """
    check_scalars(top=top)
    check_share(eps, "eps")
    check_counts(least=1, most=BLOCK, optional=False, n_alphas=n_alphas)
    return (top or 1.0) * np.geomspace(1.0, eps, n_alphas)


def grid_size(alphas: Any, n_alphas: int) -> int | None:
    """How many strengths an automatic grid has: ``alphas`` if that is a whole number; None if it is a grid."""
    if not isinstance(alphas, int | np.integer) or isinstance(alphas, bool):
        return n_alphas if alphas is None else None
    check_counts(least=1, most=BLOCK, alphas=alphas)
    return int(alphas)


def best_on_log_grid(
    score: Callable[[float], float],
    first: float,
    *,
    ratio: float = 1.5,
    least: float = 0.0,
    most: float = math.inf,
    reach: float = 1e6,
    patience: int = 2,
    gain: float = 0.0,
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
    reach : float, default 1e6
        Nor is one that is smaller or larger than ``first`` by more than this factor.
    patience : int, default 2
        How many steps in a row may bring nothing.
    gain : float, default 0
        A score that is not lower by more than this share brings nothing.

    Examples
    --------
    >>> import math
    >>> from ell12.path import best_on_log_grid
    >>> round(best_on_log_grid(lambda alpha: math.log(alpha / 0.3) ** 2, 1.0), 6)
    0.3
    """
    scores: dict[int, float] = {}
    low, high = max(least, first / reach), min(most, first * reach)

    def at(step: int) -> float:
        if step not in scores:
            alpha = first * ratio**step
            value = score(alpha) if step == 0 or low <= alpha <= high else math.inf
            scores[step] = value if math.isfinite(value) else math.inf
        return scores[step]

    best = 0
    for direction in (-1, 1):
        step, failures = direction, 0
        while failures < patience and low <= first * ratio**step <= high:
            best, failures = (step, 0) if at(step) < (1 - gain) * at(best) else (best, failures + 1)
            step += direction
        if best != 0:
            break
    below, middle, above = at(best - 1), at(best), at(best + 1)
    if not middle <= min(below, above) < max(below, above) < math.inf:  # a lower neighbour gained too little
        return first * ratio**best
    return first * ratio ** (best + 0.5 * (below - above) / (below - 2 * middle + above))


def falling(alphas: Any) -> Array:
    """The alphas, checked, from large to small."""
    refuse_masked(alphas, "alphas")
    with naming("alphas"):
        alphas = np.asarray(alphas)
    check_numbers(alphas=alphas)
    if alphas.ndim != 1 or alphas.size == 0:
        raise ValueError(f"alphas must be a vector of numbers, got shape {alphas.shape}")
    return np.sort(alphas.astype(np.float64))[::-1]


def _parts(penalty: Any) -> tuple[Any, int]:
    """The penalty of the entries that are penalised, and how many last entries are intercepts."""
    return (penalty.penalty, penalty.count) if isinstance(penalty, WithIntercept) else (penalty, 0)


@dataclass(frozen=True, eq=False)
class Structure:
    """What a penalty of the l1-2 family asks of single entries, in NumPy arrays.

    Intercepts are the last entries, of weight 0.
    """

    weight: Array  # of each modulus: of an entry, a row or a group
    number: Array  # for each entry of x, or row, that of its modulus
    positive: Any  # whether only x >= 0 is allowed, for all entries or for each
    intercept: int  # how many there are
    grouped: bool  # whether magnitudes are norms of groups

    @classmethod
    def of(cls, penalty: Any, size: int) -> Structure:
        """The structure of a penalty on this number of entries, intercepts among them."""
        inner, intercept = _parts(penalty)
        grouped, entries = isinstance(inner, GroupL12), size - intercept
        inner.check_shape((entries,) if not inner.joint else (entries, 1))
        number, count = (inner.groups.labels, inner.groups.count) if grouped else (np.arange(entries), entries)
        weight = np.ones(count + intercept)
        weight[:count] = 1.0 if inner.weights is None else as_numpy(inner.weights)
        weight[count:] = 0.0
        positive = inner.positive if isinstance(inner.positive, bool) else as_numpy(inner.positive)
        return cls(weight, np.append(number, count + np.arange(intercept)), positive, intercept, grouped)

    def columns(self, magnitudes: Array) -> Array:
        """The entries that belong to the magnitudes for which a mask is true."""
        return np.flatnonzero(magnitudes[self.number])

    def size(self, loss: Any, x: Array) -> Array:
        """The modulus of each part of the gradient at x."""
        return self.magnitudes(loss.gradient(_point(loss, x)))

    def magnitudes(self, gradient: Array) -> Array:
        """The modulus of each part of a gradient, in the directions that are allowed."""
        gradient, positive = as_numpy(gradient), self.positive
        if not isinstance(positive, bool):
            positive = np.append(positive, np.zeros(self.intercept, dtype=bool))
        size = np.where(positive, np.maximum(-gradient, 0), np.abs(gradient))
        size = size if size.ndim == 1 else np.linalg.norm(size, axis=1)
        if not self.grouped:
            return size
        top = size.max(initial=0.0) or 1.0  # so that no square overflows or underflows
        return top * np.sqrt(np.bincount(self.number, (size / top) ** 2))


def _vanishing_strength(loss: Any, penalty: Any) -> float:
    """The alpha from which on zero is a solution, to a millionth."""
    entries, count = loss.start().shape[0], _parts(penalty)[1]  # intercepts are fitted first
    free = Structure(np.arange(entries) < entries - count, np.arange(entries), False, count, False)
    zero = _point(loss, _fit_columns(loss, free, free.columns(~free.weight)))
    gradient = loss.gradient(zero)
    size = max_abs(gradient)

    def is_solution(alpha: float) -> bool:
        return alpha * certificate(loss, with_alpha(penalty, alpha), zero, gradient) <= _accuracy(zero.x) * size

    if size == 0:
        return 0.0
    powers = 2.0 ** np.arange(60)
    high = next(filter(is_solution, size * powers), 0.0)
    if high == 0:
        raise ValueError(f"zero is a solution for no strength of {type(penalty).__name__}: give alphas")
    low = next((alpha for alpha in high / powers if not is_solution(alpha)), high / powers[-1])
    while high > (1 + 1e-6) * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if is_solution(middle) else (middle, high)
    return float(high)


def _fit_columns(loss: Any, structure: Structure, columns: Array, ridge: float = 0.0, chosen: int = -1) -> Array:
    """The fit by some columns alone, as accurate as rounding lets it be without effort; a NumPy array.

    The coefficients of the chosen modulus cost ``ridge/2`` times their squares.
    """
    x = np.zeros_like(as_numpy(loss.start()))
    if columns.size == 0:
        return x
    inner = loss.restrict(columns)
    n_intercepts = int(np.count_nonzero(columns >= x.shape[0] - structure.intercept))
    kept = columns[: columns.size - n_intercepts]
    options: dict[str, Any] = {}
    if kept.size > 0 and not structure.grouped:  # else no entry is left for a sign to bind
        positive = structure.positive
        options["positive"] = positive if isinstance(positive, bool) else positive[kept]
    size = max_abs(inner.gradient(inner.point(inner.start())))
    if chosen < 0 and size <= _accuracy(x) * max_abs(loss.gradient(loss.point(loss.start()))):
        return x  # at zero they fit already, up to rounding: a loss may begin at its best intercept
    kind: Any = L12
    tol, strength = _accuracy(x) * size, 0.0
    if ridge > 0 and size > 0:  # the norms of a single modulus cancel at l2_weight 1, and its ridge is left
        numbers, labels = np.unique(structure.number[kept], return_inverse=True)
        strength, options["weights"], options["ridge"] = size, (numbers == chosen).astype(float), ridge / size
        if structure.grouped:
            kind, options["groups"] = GroupL12, labels
        elif x.ndim == 2:
            kind = RowsL12
    penalty = kind(alpha=strength, **options)
    penalty = WithIntercept(penalty, n_intercepts) if kept.size and n_intercepts else penalty
    x[columns] = as_numpy(minimize(inner, penalty, tol=tol / (strength or 1.0), max_iter=1000).x)
    return x


def _best_modulus(loss: Any, structure: Structure, x: Array, ridge: float) -> tuple[Array, int]:
    """The fit with one penalised column, or group, added to those that x uses, and its number."""
    weight, gradient = structure.weight, as_numpy(loss.gradient(_point(loss, x)))
    gain = (_decreases_of_groups if structure.grouped else _decreases)(loss, structure, x, gradient, ridge)
    chosen = int(np.argmax(np.where((weight > 0) & np.isfinite(weight), gain, 0)))
    columns = structure.columns((weight == 0) | (np.arange(weight.size) == chosen))
    return _fit_columns(loss, structure, columns, ridge, chosen), chosen


def _decreases(loss: Any, structure: Structure, x: Array, gradient: Array, ridge: float) -> Array:
    """The root of twice the decrease of the objective that each column promises, by its gradient and curvature.

    The root neither overflows nor underflows where the data do not.
    """
    size, squares = structure.magnitudes(gradient), as_numpy(loss.column_curvatures(_point(loss, x))) + ridge
    return np.divide(size, np.sqrt(squares), out=np.zeros_like(size), where=squares > 0)


def _decreases_of_groups(loss: Any, structure: Structure, x: Array, gradient: Array, ridge: float) -> Array:
    """The same of each group."""
    gains, point = np.zeros(structure.weight.size), _point(loss, x)
    for chosen in np.flatnonzero((structure.weight > 0) & np.isfinite(structure.weight)):
        columns = np.flatnonzero(structure.number == chosen)
        hessian, slope = as_numpy(loss.hessian(point, columns)), gradient[columns]
        values, vectors = np.linalg.eigh(hessian + ridge * np.eye(columns.size))
        some = values > columns.size * precision(hessian) * values[-1]
        gains[chosen] = np.linalg.norm((vectors.T @ slope)[some] / np.sqrt(values[some]))
    return gains


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


def _point(loss: Any, x: Array) -> Point:
    """A NumPy array as a point, sent to where the data are."""
    return loss.point(to_device_of(x, loss.start(), "x"))
