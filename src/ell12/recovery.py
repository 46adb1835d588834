"""Sparse vectors from few measurements: ``A x = b``, or ``||A x - b|| <= noise``, without a strength to choose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ell12.backend import count_true, is_numpy, norm
from ell12.checks import check_counts, check_flags, check_scalars
from ell12.losses import SquaredLoss
from ell12.minimization import Result, Run, minimize
from ell12.minimization.solver_choice import check_kind, unmet
from ell12.operators.krylov import conjugate_gradients
from ell12.penalties import L12
from ell12.protocols import Array, DifferencePenalty, with_alpha
from ell12.solvers import Restarts
from ell12.solvers.newton import LARGEST

# Without noise the strength falls to this fraction of the largest, far below what is asked of x. A residual of it
# relative to b, and an entry of x relative to the largest, count as none. Rates of exact recovery are then those
# of linear programs (benchmarks/results/recovery.md).
LOWEST = 1e-6
# With noise the residual meets it to this accuracy, as the docstring says.
MEETS = 1e-3


@dataclass(frozen=True)
class Recovery:
    """The result of `recover_sparse`.

    Attributes
    ----------
    x : array
        The sparse vector.
    residual : float
        ``||A x - b||``.
    noise : float
        What the residual was to meet.
    alpha : float
        The strength at which x was found; 0 where x was refitted on its support.
    n_nonzero : int
        Number of entries of x that are not zero.
    met : bool
        Whether the residual is at most the noise, to a thousandth; without noise, at most ``1e-6 ||b||``.
    message : str
        One sentence that says so.
    result : Result or None
        The last run of `ell12.minimize`; None where x is zero.
    """

    x: Array
    residual: float
    noise: float
    alpha: float
    n_nonzero: int
    met: bool
    message: str
    result: Result | None = None


@overload
def recover_sparse(A: Any, b: Any, noise: float = 0, *, return_result: Literal[True], **more: Any) -> Recovery: ...
@overload
def recover_sparse(A: Any, b: Any, noise: float = 0, **more: Any) -> NDArray[Any]: ...
def recover_sparse(  # type: ignore[misc]  # the signatures above name the options in one word
    A: Any,
    b: Any,
    noise: float = 0.0,
    *,
    penalty: Any = L12(),  # noqa: B008
    tol: float = 1e-4,
    max_iter: int = 10_000,
    run: Run | None = None,
    return_result: bool = False,
) -> Any:
    """Recover a sparse vector, without choosing a strength.

    Finds a sparse x with ``A x = b``, or with ``||A x - b|| <= noise``: l1-2 without a strength to choose.

    The problem ``1/2 ||A x - b||^2 + penalty(x)`` is solved at decreasing alpha, from the convex solution
    on, until the residual meets the noise. Without noise alpha falls to next to nothing, and x is
    then corrected on its support, so that ``A x = b`` holds to rounding. Where more than half as many entries as
    there are rows are needed, so that x need not be the sparsest solution, and columns in use are alike, up to 200
    random starts search for a sparser one, as `ell12.solvers.Restarts` does.

    Parameters
    ----------
    A : array, sparse matrix or operator of shape (m, n)
        How x is measured.
    b : array of shape (m,)
        The measurements.
    noise : float, default 0.0
        A bound on ``||A x - b||``. For noise of standard deviation s in each measurement, ``s sqrt(m)``.
    penalty : Penalty, default L12()
        A penalty without a strength, with a convex part, such as `ell12.L12`, `ell12.MCP` or `ell12.L1`, which is
        basis pursuit (denoising).
    tol, max_iter, run
        Of each solution, as in `ell12.minimize`.
    return_result : bool, default False
        Return a `Recovery`, which says what was reached, instead of x alone.

    Returns
    -------
    array or Recovery
        x, of the kind of A; zero where the noise is as large as b.

    Raises
    ------
    ValueError
        Where no x meets the noise, for example with more measurements than unknowns: give a larger one. With
        ``return_result=True`` there is no error: ``met`` is false.

    See Also
    --------
    minimize : Solve any problem of a loss and a penalty.
    l12_path : Solutions for many strengths.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import recover_sparse
    >>> random = np.random.default_rng(0)
    >>> A, x = random.standard_normal((20, 50)), np.zeros(50)
    >>> x[[3, 17, 40]] = 1.0, -2.0, 0.5
    >>> found = recover_sparse(A, A @ x)
    >>> bool(np.allclose(found, x)), np.flatnonzero(found)
    (True, array([ 3, 17, 40]))
    """
    check_scalars(noise=noise)
    check_flags(return_result=return_result)
    loss = SquaredLoss(A, b).for_run()
    if len(loss.b.shape) != 1:
        raise ValueError(f"b must be a vector, got shape {tuple(loss.b.shape)}: recover its columns one by one")
    check_kind(penalty, "penalty", DifferencePenalty, "L12()")
    if penalty.alpha is not None:
        raise ValueError(f"recover_sparse finds alpha: give {type(penalty).__name__}() without alpha")
    options = {"tol": tol, "max_iter": max_iter, "run": run}
    found = _Search(loss, with_alpha(penalty, 1.0), float(noise), options).recovery()
    if not (found.met or return_result):
        raise ValueError(f"{found.message} Give a larger noise, or return_result=True for the x found.")
    return found if return_result else found.x


def recover_sparse_ratio(
    A: Any, b: Any, noise: float = 0.0, *, max_steps: int = 10, tol: float = 1e-4, max_iter: int = 10_000
) -> NDArray[Any]:
    """Recover a sparse vector of small ratio ``||x||_1 / ||x||_2``.

    The ratio does not change with the size of x. It suits signals of high dynamic range, whose large entries the
    l1 norm shrinks. It is minimised by its reduction to l1-2: with w the ratio of the last x, the next one is
    `recover_sparse` under ``||x||_1 - w ||x||_2``. The first one is that of l1-2 with weight 1 (Wang, Yan, Rahimi
    & Lou, arXiv:1905.08946).

    Parameters
    ----------
    A, b, noise, tol, max_iter
        As in `recover_sparse`.
    max_steps : int, default 10
        The most weights after the first; it ends where the ratio no longer decreases by more than tol.

    Returns
    -------
    array
        The x of least ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.recovery import recover_sparse_ratio
    >>> random = np.random.default_rng(0)
    >>> A, x = random.standard_normal((20, 50)), np.zeros(50)
    >>> x[[3, 17, 40]] = 1000.0, -2.0, 0.5
    >>> bool(np.allclose(recover_sparse_ratio(A, A @ x), x))
    True
    """
    check_counts(least=0, optional=False, max_steps=max_steps)
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    x = recover_sparse(A, b, noise, **options)
    for _ in range(max_steps if norm(x) > 0 else 0):
        ratio = float(abs(x).sum()) / norm(x)
        found = recover_sparse(A, b, noise, penalty=L12(l2_weight=ratio), return_result=True, **options)
        if not found.met or float(abs(found.x).sum()) >= (1 - tol) * ratio * norm(found.x):
            break
        x = found.x
    return x


class _Search:
    """The way down to the noise, and where it has come to."""

    def __init__(self, loss: Any, penalty: Any, noise: float, options: dict[str, Any]) -> None:
        self.loss, self.penalty, self.noise, self.options = loss, penalty, noise, options
        self.x, self.alpha = loss.start(), 0.0
        self.result: Result | None = None
        self.size, self.at_hand = norm(loss.b), is_numpy(loss.b) and loss.has_columns
        self.top = with_alpha(penalty.convex, 0.0).violation(self.x, loss.gradient(loss.point(self.x)))

    def recovery(self) -> Recovery:
        """The vector that meets the noise, or what comes close to it."""
        if self.size > self.noise and self.top > 0:
            self._meet_noise() if self.noise > 0 else self._follow_down()
        residual, bound = self._residual(), self.noise * (1 + MEETS) if self.noise > 0 else LOWEST * self.size
        met, count = residual <= bound, count_true(self.x != 0)
        said = f"The residual of x, {count} entries of which are not zero, is {residual:.3g},"
        message = f"{said} {'at most' if met else 'above'} {bound:.3g}, which was asked for."
        return Recovery(self.x, residual, self.noise, self.alpha, count, met, message, self.result)

    def _residual(self) -> float:
        return norm(self.loss.point(self.x).prediction - self.loss.b)

    def _solve(self, fraction: float, convex: bool = False) -> None:
        """Go on to the solution at this fraction of the largest strength."""
        self.alpha = fraction * self.top
        penalty = with_alpha(self.penalty, self.alpha)
        self.result = minimize(self.loss, penalty.convex if convex else penalty, self.x, **self.options)
        self.x = self.result.x

    def _follow_down(self) -> None:
        """To the lowest strength; where columns are at hand the default solver finds the way by itself.

        Where the columns of the support cannot make b then, as there are too few measurements to recover a signal,
        the strength falls on, and more columns enter: x then has nearly as many entries as b.
        """
        if not self.at_hand:
            for fraction in 10.0 ** -np.arange(1, 5):
                self._solve(fraction, convex=True)
            self._solve(fraction)
        for fraction in (LOWEST, 1e-8, 1e-10, 1e-12):
            self.x = self.loss.start() if self.at_hand else self.x  # far from stationary: it is followed exactly
            self._solve(fraction)
            self._correct()
            if fraction == LOWEST and self.at_hand and not self._is_sparsest():
                self._restart()
            if not self.at_hand or self._residual() <= LOWEST * self.size:
                return

    def _is_sparsest(self) -> bool:
        """Whether Ax = b with entries for at most half of the rows: in general no other x has as few."""
        return 2 * count_true(self.x != 0) <= self.loss.b.shape[0] and self._residual() <= LOWEST * self.size

    def _restart(self) -> None:
        """Search for the sparsest x among local minima at 0.03 of the largest strength, from random starts."""
        if self.x.size > LARGEST or unmet(Restarts(), self.loss, self.penalty, self.x):
            return
        before, zero = (self.x, self.alpha), self.loss.point(self.loss.start())
        for _, point in Restarts().minima(self.loss, with_alpha(self.penalty, 0.03 * self.top), zero):
            self.x = point.x
            self._correct()
            if self._is_sparsest():
                return
        self.x, self.alpha = before

    def _meet_noise(self) -> None:
        """Let the strength fall by tens until the residual is below the noise, then halve the bracket."""
        low = high = 1.0
        while self._residual() > self.noise and low > LOWEST:
            high, low = low, 0.1 * low
            self._solve(low, convex=high == 1)
            self._solve(low)
        best, residual = (self.x, self.alpha, self.result), self._residual()
        while (1 - MEETS) * self.noise > residual and high > (1 + 0.01 * MEETS) * low:
            middle = math.sqrt(low * high)
            self._solve(middle)
            if self._residual() > self.noise:
                high = middle
            else:
                low, best, residual = middle, (self.x, self.alpha, self.result), self._residual()
        self.x, self.alpha, self.result = best

    def _correct(self) -> None:
        """Add to x what is missing of b, by the columns in its support; twice, the second time without zeros."""
        for _ in range(2):
            before, old = self._residual(), self.x
            missing = self.loss.b - self.loss.point(old).prediction
            moved = old + (self._by_columns if self.at_hand else self._by_products)(missing, old != 0)
            self.x = moved * (abs(moved) > LOWEST * float(abs(moved).max()))
            if self._residual() > max(before, LOWEST * self.size) or not math.isfinite(self.penalty.value(self.x)):
                self.x = old
                return
        self.alpha = 0.0

    def _by_columns(self, missing: Any, support: Any) -> Any:
        """By least squares: the shortest correction that does, as exact ones are long for dependent columns."""
        columns, found = np.flatnonzero(support), np.zeros_like(self.x)
        inside = self.loss.restrict(columns).point(np.eye(columns.size, dtype=found.dtype)).prediction
        kind = found.dtype if found.dtype.char in "fdFD" else np.float64
        for power in (0.25, 0.5, 0.75):  # singular values below a power of the rounding count as none
            rounding = np.finfo(float).eps ** power
            found[columns] = np.linalg.lstsq(inside.astype(kind), missing.astype(kind), rcond=rounding)[0]
            if norm(inside @ found[columns] - missing) <= 0.1 * LOWEST * self.size:
                break
        return found

    def _by_products(self, missing: Any, support: Any) -> Any:
        """By conjugate gradients on the support."""
        images, back = (lambda v: self.loss.point(support * v).prediction), self.loss.gradient_of
        steps = {"tol": 1e-13, "max_iter": self.options["max_iter"]}
        return conjugate_gradients(lambda v: support * back(images(v)), support * back(missing), **steps)
