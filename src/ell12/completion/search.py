"""Which strength, rank and offsets predict hidden entries best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.completion.loss import CompletionLoss
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed
from ell12.completion.offsets import fit_offsets
from ell12.completion.path import CompletionPath, completion_path
from ell12.completion.strength import alpha_max, noise_alpha
from ell12.minimization import Status
from ell12.path import alpha_grid

PATIENCE = 3  # alphas in a row without a better error that end a path
RANK_PATIENCE = 2  # ranks in a row
TOL, MAX_ITER = 1e-2, 100  # errors on hidden entries settle long before a stationary point is reached


@dataclass(frozen=True)
class Candidate:
    """One path, and what the best of its completions recommends for all known entries."""

    max_rank: int | None
    center: str | None
    path: CompletionPath
    scale: float  # from an alpha for part of the entries to one for all

    @property
    def error(self) -> float:
        """The least root mean square error on the hidden entries."""
        return float(self.path.errors[self.path.best])

    @property
    def alpha(self) -> float:
        """The alpha to use: noise grows with the square root of the number of known entries."""
        return float(self.path.alphas[self.path.best]) * self.scale

    @property
    def x0(self) -> LowRank:
        """Where to begin with it."""
        return self.path.results[self.path.best].x


@dataclass(frozen=True)
class Search:
    """All that was tried."""

    candidates: list[Candidate]

    @property
    def best(self) -> Candidate:
        """The one of the least error on the hidden entries."""
        return min(self.candidates, key=lambda candidate: candidate.error)

    def plot(self, axes: Any = None) -> Any:
        """Draw the error along the path of the best; needs matplotlib."""
        return self.best.path.plot(axes)


def search_on_held_out(
    observed: Observed,
    ranks: Any,
    centers: Any,
    *,
    held_out: float,
    random_state: Any,
    n_alphas: int = 20,
    eps: float = 1e-2,
    l2_weight: float = 1.0,
    tol: float = 1e-3,
    max_iter: int = 1000,
    verbose: int = 0,
    **options: Any,
) -> Search | None:
    """Follow a path for each rank and center, all judged on the same hidden entries; None if none can be hidden.

    Larger ranks are tried until two of them have not helped. Under a bound on the rank no path begins above twice
    the alpha that noise asks for. Ctrl-C ends the search with what is done.
    """
    train, hidden = observed.split(held_out, random_state)
    if hidden.n_observed == 0:
        return None
    scale = math.sqrt(observed.n_observed / train.n_observed)
    candidates: list[Candidate] = []
    for center in centers:
        errors: list[float] = []
        centered = fit_offsets(train, center).taken_off(train)
        top = alpha_max(CompletionLoss(centered), l2_weight)
        for rank in ranks:
            start = top if rank is None else min(top, 2 * noise_alpha(centered))
            if verbose:
                print(f"on hidden entries: center={center!r}, max_rank={rank}")
            path = completion_path(
                train,
                alphas=alpha_grid(start, n_alphas, eps),
                held_out=hidden,
                patience=PATIENCE,
                l2_weight=l2_weight,
                tol=max(tol, TOL),
                max_iter=min(max_iter, MAX_ITER),
                max_rank=rank,
                center=center,
                random_state=random_state,
                verbose=verbose,
                **options,
            )
            candidates.append(Candidate(rank, center, path, scale))
            errors.append(candidates[-1].error)
            if path.results[-1].status is Status.STOPPED:
                return Search(candidates)
            if len(errors) - 1 - int(np.argmin(errors)) >= RANK_PATIENCE:
                break
    return Search(candidates)
