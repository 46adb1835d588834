"""One matrix completed at one strength: which engine, which offsets, and what comes back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from ell12.backend import is_numpy
from ell12.checks import is_finite_number
from ell12.completion.alternating import AlternatingLeastSquares
from ell12.completion.convexified import MatrixDCA, MatrixSequentialConvex
from ell12.completion.forms import suits_dense
from ell12.completion.loss import CompletionLoss
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import as_observed
from ell12.completion.offsets import Offsets, fit_offsets
from ell12.completion.proximal import BlockAPG, FactoredAPG, FullSVD, check_rank
from ell12.completion.strength import noise_alpha
from ell12.minimization import Result, minimize
from ell12.penalties import Spectral, SpectralL12
from ell12.protocols import Array, Solver, offers

LARGEST_ALTERNATING_RANK = 30  # Beyond this rank, sweeps cost more than steps on factors: they grow by its square.
ENGINES = ("auto", "block", "factored", "als", "full", "scp", "dca")


@dataclass(frozen=True)
class Completion(Result):
    """What `complete_matrix` found: a `Result` whose x is a `LowRank`, beside the offsets that go on top.

    Attributes
    ----------
    offsets : Offsets
        What was taken off before: zero where ``center`` is None.
    alpha : float
        The strength of the penalty.
    """

    offsets: Offsets = field(default_factory=Offsets)
    alpha: float = math.nan

    def predict(self, rows: Any, columns: Any) -> Array:
        """The completed matrix at pairs of row and column."""
        return self.x.entries(rows, columns) + self.offsets.entries(rows, columns)

    def to_array(self) -> Array:
        """The completed matrix, dense; known entries are fitted, not copied."""
        return self.offsets.add_to(self.x.to_array())


def complete_matrix(
    X: Any,
    alpha: float | str = "noise",
    *,
    l2_weight: float = 1.0,
    penalty: Spectral | None = None,
    max_rank: int | None = None,
    engine: str | Solver = "auto",
    center: str | None = None,
    x0: LowRank | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    random_state: Any = 0,
    **options: Any,
) -> Completion:
    """Minimise ``1/2 ||S(X - O)||_F^2 + alpha (||X||_* - l2_weight ||X||_F)``, S keeping the known entries O.

    Parameters
    ----------
    X : array, masked array, DataFrame, sparse matrix or Observed
        NaN is what is not known; in a sparse matrix every stored entry is known. See `as_observed`.
    alpha : float or {"noise"}
        Strength, at least 0. "noise" is what noise of the size of a rank-one fit's residual would ask for.
    l2_weight : float
        Weight of the subtracted norm: 1 is l1-2, 0 the nuclear norm.
    penalty : Spectral, optional
        Another penalty of the singular values, such as `ell12.SpectralLogSum`, in place of the two before.
    max_rank : int, optional
        The largest rank allowed. Where it binds the status is ``RANK_CAPPED``.
    engine : {"auto", "block", "factored", "als", "full", "scp", "dca"} or Solver
        "auto" is "als" (`AlternatingLeastSquares`) where little is known and the rank is bound to 30 or less,
        "block" (`BlockAPG`) where a quarter or more is known, and else "factored" (`FactoredAPG`).
    center : {None, "mean", "columns", "biases"}
        What is taken off before, and comes back in ``offsets``: nothing, the mean, column means, or the mean with
        biases of rows and columns.
    x0 : LowRank, optional
        Where to start; zero by default.
    tol, max_iter
        As in `ell12.minimize`.
    random_state : int or Generator
        Of the first singular vectors.
    **options
        Further arguments of `ell12.minimize`: ``max_seconds``, ``measure``, ``stop``; for long work
        ``checkpoint``, ``checkpoint_seconds`` and ``resume``.

    Returns
    -------
    Completion
        A `Result` whose x is a `LowRank`, with ``offsets`` and ``predict(rows, columns)``.

    Notes
    -----
    A row or a column without any known entry is completed with its offsets alone (zero without ``center``): no
    data speak for anything else.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[2, 2] = np.nan
    >>> complete_matrix(X, alpha=0.1).to_array().round(2)[2, 2]
    np.float64(12.0)
    """
    check_rank(max_rank)
    observed = as_observed(X)
    offsets = fit_offsets(observed, center)
    if center is not None:
        observed = offsets.taken_off(observed)
    loss = CompletionLoss(observed)
    if penalty is None:
        penalty = SpectralL12(_as_alpha(alpha, loss, max_rank, l2_weight), l2_weight)
    solver = choose_engine(engine, loss, penalty, max_rank, random_state)
    result = minimize(loss, penalty, x0, solver, tol=tol, max_iter=max_iter, **options)
    parts = {part.name: getattr(result, part.name) for part in fields(Result)}
    return Completion(**parts, offsets=offsets, alpha=penalty.alpha)


def choose_engine(
    engine: str | Solver, loss: CompletionLoss, penalty: Spectral, max_rank: int | None, random_state: Any
) -> Solver:
    """The solver of this name, or the one that suits the problem."""
    if not isinstance(engine, str) and offers(engine, Solver):
        return engine
    if not isinstance(engine, str) or engine not in ENGINES:
        raise ValueError(f"engine must be a solver or one of {', '.join(ENGINES)}; got {engine!r}")
    if engine == "auto":
        engine = _suitable(loss, penalty, max_rank)
    if engine in ("scp", "dca") and max_rank is not None:
        raise ValueError(f"engine={engine!r} cannot bound the rank; leave max_rank at None")
    if engine == "full":
        return FullSVD(max_rank)
    if engine in ("scp", "dca"):
        return (MatrixSequentialConvex if engine == "scp" else MatrixDCA)(random_state=random_state)
    if engine == "als":
        return AlternatingLeastSquares(max_rank or min(10, *loss.observed.shape), random_state=random_state)
    return (BlockAPG if engine == "block" else FactoredAPG)(max_rank, random_state)


def _suitable(loss: CompletionLoss, penalty: Spectral, max_rank: int | None) -> str:
    if not is_numpy(loss.observed.values) or suits_dense(loss):
        return "block"
    small = max_rank is not None and max_rank <= LARGEST_ALTERNATING_RANK
    return "als" if small and isinstance(penalty, SpectralL12) and penalty.alpha > 0 else "factored"


def _as_alpha(alpha: float | str, loss: CompletionLoss, max_rank: int | None, l2_weight: float) -> float:
    if is_finite_number(alpha):
        return float(alpha)
    if not isinstance(alpha, str) or alpha != "noise":
        raise ValueError(f"alpha must be a finite number >= 0 or 'noise', got {alpha!r}")
    return noise_alpha(loss.observed, max_rank, l2_weight)
