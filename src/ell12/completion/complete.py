"""The completion of a matrix from its known entries; what is not given is chosen on hidden entries."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ell12.checks import is_finite_number
from ell12.completion.hidden_entries import HiddenEntrySearch, SearchSpace
from ell12.completion.least_squares import default_solver
from ell12.completion.low_rank import LowRank, as_indices
from ell12.completion.matrix_strength import noise_alpha, weight_of
from ell12.completion.observed import Observed
from ell12.completion.offsets import Centred, Offsets, Unseen
from ell12.minimization import Result, Run, minimize
from ell12.minimization.loop import check_limits
from ell12.penalties import Spectral
from ell12.protocols import Array, Solver, with_alpha

SEARCH_SECONDS = 0.75  # The share of max_seconds that the search may take; the fit of all entries has the rest.


@dataclass(frozen=True, repr=False)
class Completion(Result[LowRank]):
    """The result of `complete_matrix`: a `Result` whose x is a `LowRank`, and the offsets.

    Attributes
    ----------
    offsets : Offsets
        What was subtracted before, and the scale of the columns: nothing where ``center`` and ``scale`` are None.
    penalty : Spectral
        The penalty, its alpha included.
    max_rank, center, scale
        What was used, given or chosen.
    """

    penalty: Any = None
    offsets: Offsets = field(default_factory=Offsets)
    max_rank: int | None = None
    center: str | None = None
    scale: str | None = None
    _unseen: Unseen | None = None

    def __repr__(self) -> str:
        return f"Completion{super().__repr__().removeprefix('Result').removesuffix(')')}, alpha {self.alpha:.3g})"

    @property
    def alpha(self) -> float:
        """The strength."""
        return float(self.penalty.alpha)

    def predict(self, rows: Any, columns: Any) -> Array:
        """The completed matrix at pairs of row and column."""
        (m, n), U = self.x.shape, self.x.U
        rows, columns = as_indices(rows, U, m, "rows"), as_indices(columns, U, n, "columns")
        values = self.offsets.put_on(self.x.entries(rows, columns), rows, columns)
        return values if self._unseen is None else self._unseen.entries(values, rows, columns)

    def to_array(self) -> Array:
        """The completed matrix, dense; known entries are fitted, not copied.

        Of columns with units of their own, one without any known entry is NaN, with a warning.
        """
        self.offsets.warn_of_unknown_units()
        X = self.offsets.add_to(self.x.to_array())
        return X if self._unseen is None else self._unseen.matrix(X)


def complete_matrix(
    X: Any,
    alpha: float | str | None = None,
    *,
    penalty: Spectral | None = None,
    max_rank: int | str | None = "auto",
    center: str | None = "auto",
    scale: str | None = "auto",
    x0: LowRank | None = None,
    solver: Solver | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    random_state: Any = 0,
    run: Run | None = None,
) -> Completion:
    """Complete a matrix of which some entries are known.

    Minimises ``1/2 ||S(X - O)||_F^2 + alpha (||X||_* - l2_weight ||X||_F)``, S keeping the known entries O, from
    which offsets are subtracted before.

    Parameters
    ----------
    X : array, masked array, DataFrame, sparse matrix or tensor, or Observed
        NaN is what is not known; in a sparse matrix every stored entry is known. What is on a GPU is completed
        there. See `Observed.of`.
    alpha : float or "noise", optional
        Strength, at least 0. By default a tenth of the known entries is hidden, and what predicts them best is
        taken; where nothing can be hidden it is "noise", the size that noise of the deviation of a rank-one fit's
        residual would have.
    penalty : Spectral, optional
        The penalty of the singular values, such as ``SpectralL12(l2_weight=1)`` or ``SpectralLogSum()``.
        By default `ell12.SpectralL12`, whose l2_weight is chosen among 1 and 0.5 by the hidden entries. Without
        them it is 0.5 for ratings, that is where less than a quarter of the entries is known, and 1 for tables.
    max_rank : int, None or {"auto"}, default "auto"
        The largest rank allowed; None is no bound. Where it binds the status is ``RANK_CAPPED``. "auto" is None
        for tables. For ratings it is chosen among 4, 8 and 16 by the hidden entries, and 8 where alpha is given.
    center : {"auto", None, "mean", "columns", "biases"}, default "auto"
        What is subtracted before, and comes back in ``offsets``: nothing, the mean, column means, or the mean with
        biases of rows and columns. "auto" is "biases" for ratings, and for tables "columns" or, if the hidden
        entries say so, None.
    scale : {"auto", None, "columns"}, default "auto"
        "columns" divides each column by its standard deviation; "auto" does so for tables whose columns have
        units of their own, that is deviations that differ by more than a factor of 3, beyond chance. A column of
        which nothing is known is then NaN in what is predicted.
    x0 : LowRank, optional
        Where to start; zero by default, or where the search ended.
    solver : Solver, optional
        By default `AlternatingLeastSquares` where little is known and the rank is bound to 30 or less, `BlockAPG`
        where a quarter or more is known, and else `FactoredAPG`. One that is given has a bound on the rank of its
        own.
    tol, max_iter
        As in `ell12.minimize`.
    random_state : int or Generator, default 0
        Of what is hidden and of the first singular vectors.
    run : Run, optional
        Options of the fit of all known entries. Three quarters of ``max_seconds`` are for the search at most.

    Returns
    -------
    Completion
        A `Result` whose x is a `LowRank`, with ``offsets``, what was chosen, and ``predict(rows, columns)``.

    See Also
    --------
    L12Imputer : Fill in missing values of tables.
    L12Recommender : Predict ratings and recommend items.
    completion_path : Completions for many strengths.

    Notes
    -----
    A row or a column without any known entry is completed with its offsets alone; where there are none, with the
    mean and the bias of the other side: no data speak for anything else.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import complete_matrix
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> X[2, 2] = np.nan
    >>> complete_matrix(X, alpha=0.1, center=None, scale=None).to_array().round(2)[2, 2]
    np.float64(12.0)
    """
    run = Run() if run is None else run
    check_limits(tol, max_iter, run)
    alpha = _checked_strength(alpha, penalty)
    observed = Observed.of(X)
    space = SearchSpace.suited_to(observed, penalty=penalty, center=center, scale=scale, max_rank=max_rank)
    choice = space.first
    if alpha is None:
        begin = time.monotonic()
        search = HiddenEntrySearch(observed, solver, random_state, end=begin + SEARCH_SECONDS * run.max_seconds)
        if search.n_hidden:
            best = search.best(space)
            choice, alpha = best.choice, best.alpha * search.growth
            x0 = best.nearest(best.alpha)[0] if x0 is None else x0
        run = replace(run, max_seconds=max(run.max_seconds - (time.monotonic() - begin), 0.0))
    centred = Centred.of(observed, choice.center, choice.scale)
    if not isinstance(alpha, float):
        alpha = noise_alpha(centred.loss.observed, choice.max_rank, weight_of(choice.penalty))
    penalty = choice.penalty if choice.penalty.alpha == alpha else with_alpha(choice.penalty, alpha)
    options = {"tol": tol, "max_iter": max_iter, "run": run}
    return completed(centred, penalty, choice.max_rank, x0, solver, random_state, **options)


def completed(
    centred: Centred,
    penalty: Spectral,
    max_rank: int | None = None,
    x0: LowRank | None = None,
    solver: Solver | None = None,
    random_state: Any = 0,
    **options: Any,
) -> Completion:
    """The completion at one strength; options are those of `minimize`."""
    solver = default_solver(centred.loss, penalty, max_rank, random_state) if solver is None else solver
    result = minimize(centred.loss, penalty, x0, solver, **options)
    parts: dict[str, Any] = {part.name: getattr(result, part.name) for part in fields(Result)}
    parts |= {"max_rank": max_rank, "center": centred.center, "scale": centred.scale, "_unseen": centred.unseen}
    return Completion(**parts, penalty=penalty, offsets=centred.offsets)


def _checked_strength(alpha: Any, penalty: Any) -> float | str | None:
    """The strength that was given, next to the penalty or in it."""
    own = None if penalty is None else penalty.alpha
    if alpha is not None and own is not None:
        raise ValueError(f"alpha is given twice: {alpha} and {penalty!r}")
    if own is not None or is_finite_number(alpha):
        return float(alpha if own is None else own)
    if alpha is not None and not (isinstance(alpha, str) and alpha == "noise"):
        raise ValueError(f"alpha must be a finite number >= 0, 'noise' or None, got {alpha!r}")
    return alpha
