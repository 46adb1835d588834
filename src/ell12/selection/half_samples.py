"""Halves of the samples, and the features that each of them selects first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import _check_sample_weight, validate_data

from ell12.backend import as_numpy
from ell12.checks import check_container, check_numbers, naming
from ell12.linear_model.cox_regressor import L12CoxRegressor
from ell12.linear_model.fit_problem import Data, check_numpy
from ell12.linear_model.row_fits import check_in_memory
from ell12.linear_model.sparse_model import SparseLinearModel
from ell12.minimization import Result, Status
from ell12.protocols import Array, with_alpha
from ell12.selection.local_model import varying


def complementary_pairs(
    count: int, rows: Array, strata: Array | None, random: np.random.RandomState
) -> Iterator[tuple[Array, Array]]:
    """Pairs of halves without a sample in common, each with its share of every stratum, up to one sample.

    Of an odd number of samples a random one is left out of each pair.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.selection.half_samples import complementary_pairs
    >>> for half, other in complementary_pairs(1, np.arange(5), None, np.random.RandomState(0)):
    ...     print(half, other)
    [0 1] [2 3]
    """
    labels = np.zeros(rows.size, dtype=int) if strata is None else np.unique(strata, return_inverse=True)[1]
    for _ in range(count):
        # Stratum after stratum, in random order, and within it too; then in turn to one half and to the other.
        positions = random.permutation(labels.max() + 1)[labels]
        order = rows[np.lexsort((random.permutation(rows.size), positions))]
        even = order[: order.size // 2 * 2]
        yield np.sort(even[::2]), np.sort(even[1::2])


@dataclass(frozen=True)
class Entries:
    """What a half selects: numbers of units, features or groups, and at which of the strengths they came in.

    ``failed`` are the runs that did not converge, without their solutions, of ``n_runs``.
    """

    chosen: Array
    strengths: Array
    failed: list[Result]
    n_runs: int


class PathSelector:
    """The path of one of the estimators of `ell12.linear_model`: its strengths fall until enough have come in.

    Attributes
    ----------
    data : Data
        All samples.
    unit : array of shape (n_features,)
        The number of each feature's group, or its own: what is selected as a whole.
    free : array of shape (n_units,)
        Those in every model, which are not selected but given.
    candidates : array of shape (n_units,)
        Those to select from.
    alphas : array of shape (n_strengths,)
        The strengths of the path.
    seen : estimator
        What took note of the features.
    """

    def __init__(self, model: SparseLinearModel, alphas: Any, eps: float, X: Any, y: Any, weight: Any) -> None:
        self.model = self.seen = model
        check_in_memory(X, model)
        check_numpy(X, "StabilitySelection")
        self.data = model._observed(X, y, weight)
        model._check_numbers()
        check_enough(self)
        problems, features = model._problems(self.data), self.data.X.shape[1]
        self.penalty = penalty = with_alpha(model.penalty, 1.0)
        model._check_shape(penalty)
        self.unit = penalty.units(features)
        count, weights = int(self.unit.max()) + 1, vars(penalty).get("weights")
        factors = np.ones(count) if weights is None else np.zeros(count) + as_numpy(weights)
        self.free = factors == 0
        varies = np.bincount(self.unit, varying(problems[0], features), count) > 0
        self.candidates = (factors > 0) & np.isfinite(factors) & varies
        # Of noise alone halves have gradients that are larger by the root of 2 than those of all samples.
        self.alphas = model._grid(problems, penalty, alphas, eps, 2**0.5)
        self.n_strengths = self.alphas.size

    @property
    def strata(self) -> Array | None:
        """The classes, or which samples had their event, of which every half has its share."""
        return self.model._strata(self.data.y)

    def entered(self, rows: Array, most: int, _seed: int) -> tuple[Array, list[Result]]:
        """The largest modulus of each unit's coefficients at each strength; of several problems the largest."""
        sizes, runs = np.zeros((self.n_strengths, self.free.size)), []
        members = np.bincount(self.unit)
        entries = np.sort(members[~self.free])[::-1][:most].sum() + members[self.free].sum()
        for problem in self.model._problems(self.data.rows(rows)):
            enough = int(entries) * problem.n_rows + problem.n_intercepts  # beyond, more than most have come in
            found = self.model._solve(problem, self.penalty, self.alphas, most_entries=enough)
            if any(result.status is Status.STOPPED for result in found):
                raise KeyboardInterrupt  # which a run answers with what it has; a selection is not to be had
            magnitudes = np.abs(np.stack([result.x for result in found]).reshape(len(found), -1))
            strengths, positions = np.nonzero(magnitudes[:, : self.unit.size * problem.n_rows])
            units = self.unit[positions // problem.n_rows]  # entries of a feature side by side, intercepts behind
            np.maximum.at(sizes, (strengths, units), magnitudes[strengths, positions])
            runs += found
        return sizes, runs


class FitSelector:
    """Any other estimator at its own settings: the largest coefficients, or importances, that are not zero."""

    n_strengths = 1

    def __init__(self, model: Any, seen: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self.model, self.seen = model, seen
        for name, values in {"X": X, "y": y, "sample_weight": sample_weight}.items():
            check_container(values, name)
        check_in_memory(X, model)
        with naming("X", "y"):
            X, y = validate_data(self.seen, X, y, accept_sparse=("csr", "csc"), multi_output=True)
        if sample_weight is not None:
            check_numbers(sample_weight=sample_weight)
            with naming("sample_weight"):
                sample_weight = _check_sample_weight(sample_weight, X)
        self.data = Data(X, y, sample_weight)
        check_enough(self)
        self.unit, self.free = np.arange(X.shape[1]), np.zeros(X.shape[1], dtype=bool)
        ends = [part.toarray() if scipy.sparse.issparse(part) else part for part in (X.min(0), X.max(0))]
        self.candidates = np.ravel(ends[0] < ends[1])

    @property
    def strata(self) -> Array | None:
        """The classes of a classifier."""
        return self.data.y if is_classifier(self.model) and np.ndim(self.data.y) == 1 else None

    def entered(self, rows: Array, _most: int, seed: int) -> tuple[Array, list[Result]]:
        """All at the one strength; random numbers that the estimator leaves open begin with the half's own."""
        model, (X, y, weight, _) = clone(self.model), self.data.rows(rows)
        names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        model.set_params(**{name: seed for name in names if model.get_params()[name] is None})
        model.fit(X, y) if weight is None else model.fit(X, y, sample_weight=weight)
        found = [name for name in ("coef_", "feature_importances_") if hasattr(model, name)]
        if not found:
            raise ValueError(f"estimator must have coef_ or feature_importances_ after fit, got {self.model!r}")
        values = getattr(model, found[0])
        values = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
        return np.abs(values.reshape(-1, self.unit.size)).max(axis=0)[None], []


Selector = PathSelector | FitSelector


def used_rows(selector: Selector) -> Array:
    """The samples to make halves of: those of positive weight."""
    X, _, weight, _ = selector.data
    return np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight > 0)


def select(selector: Selector, rows: Array, most: int, seed: int) -> Entries:
    """The first ``most`` candidates to come in; at the same strength the larger coefficient came first."""
    sizes, runs = selector.entered(rows, most, seed)
    first = np.where(sizes.any(axis=0), np.argmax(sizes > 0, axis=0), len(sizes))
    largest = np.append(sizes, 0 * sizes[:1], axis=0)[first, np.arange(first.size)]
    order = np.lexsort((-largest, first))
    chosen = order[selector.candidates[order] & (first[order] < len(sizes))][:most]
    failed = [replace(run, x=None, history={}) for run in runs if not run.converged]
    return Entries(chosen, first[chosen], failed, len(runs))


def check_enough(selector: Selector) -> None:
    """Raise where there are too few samples, or too few of a class, for two halves."""
    rows, strata = used_rows(selector), selector.strata
    if rows.size < 4:  # a half of one has no spread
        raise ValueError(
            f"X must hold at least 4 samples of positive weight for two halves, got n_samples = {rows.size}"
        )
    if strata is None:
        return
    is_survival = isinstance(selector.model, L12CoxRegressor)
    if strata[rows].sum() < 2 if is_survival else np.unique(strata[rows], return_counts=True)[1].min() < 2:
        what = "2 events of positive weight" if is_survival else "2 samples of positive weight of each class"
        raise ValueError(f"y must hold at least {what}, so that both halves have one")
