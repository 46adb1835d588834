"""Halves of the samples, and the features that each of them selects first."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
from ell12.path import alpha_grid, falling, grid_size
from ell12.protocols import Array, with_alpha


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
        places = random.permutation(labels.max() + 1)[labels]
        order = rows[np.lexsort((random.permutation(rows.size), places))]
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


class Selector(ABC):
    """What selects features on a half of the samples.

    Attributes
    ----------
    unit : array of shape (n_features,)
        The number of each feature's group, or its own: what is selected as a whole.
    free : array of shape (n_units,)
        Those in every model, which are not selected but given.
    candidates : array of shape (n_units,)
        Those to select from.
    alphas : array, optional
        The strengths of a path.
    seen : estimator
        What took note of the features.
    """

    seen: Any
    unit: Array
    free: Array
    candidates: Array
    alphas: Array | None
    model: Any
    X: Any
    y: Any
    sample_weight: Any

    @property
    def n_strengths(self) -> int:
        """How many strengths there are; one where there is no path."""
        return 1 if self.alphas is None else self.alphas.size

    @property
    def rows(self) -> Array:
        """The samples to make halves of: those of positive weight."""
        n = self.X.shape[0]
        return np.arange(n) if self.sample_weight is None else np.flatnonzero(self.sample_weight > 0)

    @abstractmethod
    def strata(self) -> tuple[Array | None, str]:
        """The labels of which every half has its share, if any; and what to call those that it cannot lack."""

    @abstractmethod
    def entered(self, rows: Array, most: int, seed: int) -> tuple[Array, Array, list[Result]]:
        """At which strength each unit came in, its largest coefficient there, and the runs.

        The strength is a number, that behind the last for units that never came in.
        """

    def select(self, rows: Array, most: int, seed: int) -> Entries:
        """The first ``most`` candidates to come in; at the same strength the larger coefficient came first."""
        strengths, sizes, runs = self.entered(rows, most, seed)
        order = np.lexsort((-sizes, strengths))
        chosen = order[self.candidates[order] & (strengths[order] < self.n_strengths)][:most]
        failed = [replace(run, x=None, history={}) for run in runs if not run.converged]
        return Entries(chosen, strengths[chosen], failed, len(runs))

    def _rows(self, rows: Array) -> tuple[Any, ...]:
        """X, y and the weights of some samples."""
        parts = (self.X, self.y, self.sample_weight)
        return tuple(None if part is None else part[rows] for part in parts)


class PathSelector(Selector):
    """The path of one of the estimators of `ell12.linear_model`: its strengths fall until enough have come in."""

    def __init__(self, model: SparseLinearModel, alphas: Any, eps: float) -> None:
        self.model = self.seen = model
        self.grid = alphas, eps

    def take(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Check the data, and find out of all of them what the halves share: the grid, and what varies."""
        check_in_memory(X, self.model)
        check_numpy(X, "StabilitySelection")
        model, (alphas, eps) = self.model, self.grid
        self.X, self.y, self.sample_weight, _ = data = model._observed(X, y, sample_weight)
        model._check_numbers()
        check_enough(self)
        problems, features = model._problems(data), self.X.shape[1]
        self.penalty = penalty = with_alpha(model.penalty, 1.0)
        model._check_shape(penalty)
        self.unit = penalty.units(features)
        count = int(self.unit.max()) + 1
        weights = vars(penalty).get("weights")
        factors = np.ones(count) if weights is None else np.zeros(count) + as_numpy(weights)
        self.free = factors == 0
        varies = np.bincount(self.unit, _varies(problems[0], features), count) > 0
        self.candidates = (factors > 0) & np.isfinite(factors) & varies
        size = grid_size(alphas, 25)
        # Of noise alone halves have gradients that are larger by the root of 2 than those of all samples.
        top = 0.0 if size is None else 2**0.5 * model._first_strength(problems, penalty)
        self.alphas = falling(alphas) if size is None else alpha_grid(top, size, eps)

    def strata(self) -> tuple[Array | None, str]:
        """The classes, or which samples had their event."""
        return self.model._strata(self.y), "event" if isinstance(self.model, L12CoxRegressor) else "class"

    def entered(self, rows: Array, most: int, seed: int) -> tuple[Array, Array, list[Result]]:  # noqa: ARG002
        """A path for each problem; of several, a unit has come in where it has in one."""
        runs: list[Result] = []
        parts: list[tuple[Array, ...]] = []
        for problem in self.model._problems(Data(*self._rows(rows))):
            entries = self._most_entries(problem, most)
            found = self.model._solve(problem, self.penalty, self.alphas, most_entries=entries)
            if any(result.status is Status.STOPPED for result in found):
                raise KeyboardInterrupt  # which a run answers with what it has; a selection is not to be had
            parts.append(self._used(problem, [result.x for result in found]))
            runs += found
        strengths, units, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((sizes, -strengths))  # so that the first to come in, and the largest, is written last
        first, size = np.full(self.free.size, self.n_strengths), np.zeros(self.free.size)
        first[units[order]], size[units[order]] = strengths[order], sizes[order]
        return first, size, runs

    def _used(self, problem: Any, solutions: list[Any]) -> tuple[Array, ...]:
        """The strength, the unit and the modulus of all coefficients that are not zero."""
        flat = np.stack(solutions).reshape(len(solutions), -1)
        strengths, entries = np.nonzero(flat)
        features = entries // problem.n_rows  # those of a feature side by side, intercepts behind
        kept = features < self.unit.size
        return strengths[kept], self.unit[features[kept]], np.abs(flat[strengths, entries][kept])

    def _most_entries(self, problem: Any, most: int) -> int:
        """The number of entries beyond which more than ``most`` candidates have come in."""
        members = np.bincount(self.unit)
        features = np.sort(members[~self.free])[::-1][:most].sum() + members[self.free].sum()
        return int(features) * problem.n_rows + problem.n_intercepts


class FitSelector(Selector):
    """Any other estimator at its own settings: the largest coefficients, or importances, that are not zero."""

    alphas = None

    def __init__(self, model: Any, seen: Any) -> None:
        self.model, self.seen = model, seen

    def take(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Check the data."""
        for name, values in {"X": X, "y": y, "sample_weight": sample_weight}.items():
            check_container(values, name)
        check_in_memory(X, self.model)
        with naming("X", "y"):
            self.X, self.y = validate_data(self.seen, X, y, accept_sparse=("csr", "csc"), multi_output=True)
        self.sample_weight = None
        if sample_weight is not None:
            check_numbers(sample_weight=sample_weight)
            with naming("sample_weight"):
                self.sample_weight = _check_sample_weight(sample_weight, self.X)
        check_enough(self)
        features = self.X.shape[1]
        self.unit, self.free = np.arange(features), np.zeros(features, dtype=bool)
        ends = [part.toarray() if scipy.sparse.issparse(part) else part for part in (self.X.min(0), self.X.max(0))]
        self.candidates = np.ravel(ends[0] < ends[1])

    def strata(self) -> tuple[Array | None, str]:
        """The classes of a classifier."""
        return self.y if is_classifier(self.model) and np.ndim(self.y) == 1 else None, "class"

    def entered(self, rows: Array, most: int, seed: int) -> tuple[Array, Array, list[Result]]:  # noqa: ARG002
        """All at the one strength; random numbers that the estimator leaves open begin with the half's own."""
        model, (X, y, weight) = clone(self.model), self._rows(rows)
        names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        model.set_params(**{name: seed for name in names if model.get_params()[name] is None})
        model.fit(X, y) if weight is None else model.fit(X, y, sample_weight=weight)
        found = [name for name in ("coef_", "feature_importances_") if hasattr(model, name)]
        if not found:
            raise ValueError(f"estimator must have coef_ or feature_importances_ after fit, got {self.model!r}")
        values = getattr(model, found[0])
        values = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
        sizes = np.abs(values.reshape(-1, self.unit.size)).max(axis=0)
        return np.where(sizes > 0, 0, 1), sizes, []


def check_enough(selector: Selector) -> None:
    """Raise where there are too few samples, or too few of a class, for two halves."""
    rows, (strata, kind) = selector.rows, selector.strata()
    if rows.size < 4:  # a half of one has no spread
        raise ValueError(
            f"X must hold at least 4 samples of positive weight for two halves, got n_samples = {rows.size}"
        )
    if strata is None:
        return
    labels, counts = np.unique(strata[rows], return_counts=True)
    if kind == "event":
        if strata[rows].sum() < 2:
            raise ValueError("y must hold at least 2 events of positive weight, so that both halves have one")
    elif counts.min() < 2:
        label = labels[np.argmin(counts)]
        name = selector.model.classes_[label] if isinstance(selector, PathSelector) else label
        raise ValueError(
            "y must hold at least 2 samples of positive weight of each class, so that both halves have one; it"
            f" holds one of class {name!r}"
        )


def _varies(problem: Any, features: int) -> Array:
    """Which columns are not constant (or zero, without an intercept): those in which the loss bends at zero."""
    loss, classes = problem.loss, problem.n_classes or 1
    bends = as_numpy(loss.column_curvatures(loss.point(loss.start()))) > 0
    return bends[: features * classes].reshape(features, classes).any(axis=1)
