"""Missing values filled in by a low-rank matrix, as a scikit-learn transformer."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from ell12.backend import as_numpy, is_array, refuse_gradient, to_device_of
from ell12.backend.number_types import is_sparse, stored_entries
from ell12.checks import check_flags, naming
from ell12.completion.complete import complete_matrix
from ell12.completion.gpu_entries import AT_ONCE
from ell12.completion.observed import Observed, read_entries, refuse_dask
from ell12.completion.offsets import fit_offsets
from ell12.completion.squared_error import regressed_rows
from ell12.completion.table_columns import Categories, Range, as_frame, is_frame
from ell12.completion.uncertainty import Calibration, Uncertain
from ell12.minimization import Status
from ell12.nested_parameters import NestedParameters
from ell12.protocols import Array


@dataclass(eq=False, repr=False)
class L12Imputer(NestedParameters, Uncertain, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill in missing values by a matrix of low rank under the l1-2 penalty.

    Minimises ``1/2 ||S(X - O)||_F^2 + alpha (||X||_* - l2_weight ||X||_F)`` over matrices X, S keeping the known
    entries O, from which a mean or biases are taken before.

    Parameters
    ----------
    alpha : float or "noise", optional
        Strength. By default a tenth of the known entries is hidden, of tables three times, and what predicts them
        best is taken; where nothing can be hidden it is "noise", a guess from the
        known entries alone.
    penalty : Spectral, optional
        The penalty of the singular values. By default `ell12.SpectralL12`, with l2_weight 0.5 for ratings, less
        than a quarter of whose entries are known; for tables the hidden entries choose it among 1 and 0.5.
    max_rank : int, None or {"auto"}, default "auto"
        The largest rank allowed; None is no bound. "auto" is None for tables. For ratings it is chosen among 4, 8
        and 16 by the hidden entries; it is 8 where alpha is given.
    center : {"auto", "mean", "columns", "biases", None}, default "auto"
        What is subtracted before: the mean, column means, the mean with shrunken biases of rows and columns, or
        nothing. "auto" is "biases" for ratings, and for tables "columns" or, if the hidden entries say so, None.
    scale : {"auto", None, "columns"}, default "auto"
        "columns" divides each column by its standard deviation, and the answer is given back in its own units.
        "auto" does so for tables in which these differ by more than a factor of 3, beyond chance.
    clip : (low, high), "observed" or None, default "observed"
        The range that predictions are cut to, two numbers or two arrays with a number for each column; "observed"
        is that of the known entries of each column, and for ratings of all.
    keep_empty_features : bool, default False
        Whether a column of a table without any known entry, of which not even the unit is known, comes back,
        filled with zeros; otherwise it is left out, with a warning, as scikit-learn does. Ratings keep it.
    add_indicator : bool, default False
        Whether `transform` appends a column of zeros and ones for each column with missing entries in the training
        data, one where an entry is missing.
    solver : Solver, optional
        As in `ell12.complete_matrix`.
    tol : float, default 1e-3
        Stop when the largest violation of the first-order condition is at most ``tol * alpha``.
    max_iter : int, default 1000
        Stop after this number of iterations at the latest.
    random_state : int, RandomState or None, optional
        Of the choice of hidden entries and of the first singular vectors.

    Attributes
    ----------
    completion_ : Completion
        The fit: a `LowRank` matrix ``x``, ``offsets``, ``status`` and history.
    alpha_, penalty_, max_rank_, center_, scale_
        What was used; the penalty holds its alpha.
    n_iter_ : int
        Iterations of the last fit.
    clip_ : Range
        Its ``low`` and ``high`` are numbers, or arrays with a number for each column.
    empty_columns_, incomplete_columns_ : arrays of int
        The columns of a table without any known entry, and the columns with missing entries.

    See Also
    --------
    complete_matrix : Complete a matrix, as a function.
    L12Recommender : Predict ratings and recommend items.

    Notes
    -----
    Known entries are kept as they are. Rows given to `transform` are completed by a regression of their known
    entries on the fitted columns V, with the ridge that the penalty's slopes at the fitted singular values make:
    for a row of the training data that is, at a stationary point, the fitted row itself, so that training rows and
    new rows are treated alike. A row without any known entry is filled with its offsets, or where
    nothing was subtracted with the means of the columns.

    Columns of a pandas DataFrame with an integer or boolean dtype, such as Int64, are filled with whole numbers
    within their range, and keep that dtype where ``set_output(transform="pandas")`` asks for a DataFrame. A column
    of floats is not rounded, whatever it holds.

    Texts and categories of a DataFrame become one column for each category, 0 or 1, missing where the category is.
    The category with the largest completed value is taken, and `transform` then gives a DataFrame. ``predict``,
    ``intervals`` and the columns of `clip` are about tables of numbers.

    A sparse matrix stands for its stored entries, explicit zeros included, and is completed to a dense one if that
    is no larger than 2^25 entries; `predict` gives single entries of any.

    Arrays of PyTorch, CuPy and JAX, where scikit-learn's ``array_api_dispatch`` is on, are completed on the
    processors and sent back to where they were, dense; `ell12.complete_matrix` works where they are. Sparse
    tensors of PyTorch and sparse matrices of CuPy are taken without it too, and come back as NumPy arrays then.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12Imputer
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0])
    >>> X[3, 2] = np.nan
    >>> L12Imputer(alpha=0.01, center=None, clip=None).fit_transform(X).round(1)[3]
    array([ 4.,  8., 16.])
    """

    alpha: float | str | None = None
    _: KW_ONLY
    penalty: Any = None
    max_rank: int | str | None = "auto"
    center: str | None = "auto"
    scale: str | None = "auto"
    clip: Any = "observed"
    keep_empty_features: bool = False
    add_indicator: bool = False
    solver: Any = None
    tol: float = 1e-3
    max_iter: int = 1000
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> L12Imputer:  # noqa: ARG002
        """Fit the low-rank matrix to the known entries of X.

        Parameters
        ----------
        X : array, masked array, DataFrame or sparse matrix of shape (n_samples, n_features)
            NaN is what is missing; in a sparse matrix what is not stored.
        y : None, optional
            Ignored.
        """
        check_flags(keep_empty_features=self.keep_empty_features, add_indicator=self.add_indicator)
        self._table = Categories.of(X) if is_frame(X) else None
        observed = Observed.of(self._validated(X, reset=True))
        self.clip_ = Range.of(self.clip, observed, observed.is_table)
        self._owners = self._table.owners if self._table else np.arange(observed.shape[1])
        counts = np.diff(observed.by_column[1])
        self.empty_columns_ = self._owners[(counts == 0) & observed.is_table]
        self.incomplete_columns_ = np.unique(self._owners[counts < observed.shape[0]])
        dtypes = enumerate(X.dtypes if is_frame(X) else ())
        self._whole_dtypes = {k: dtype for k, dtype in dtypes if dtype.kind in "iub"}
        self._whole_columns = np.flatnonzero(np.isin(self._owners, [*self._whole_dtypes]))
        fit_entries(self, observed, scale=self.scale)
        self.scale_ = self.completion_.scale
        # What a row of which nothing is known has where nothing was subtracted: zero is no guess.
        self._level = fit_offsets(observed, "columns", self.scale_).entries(0, np.arange(observed.shape[1]))
        self._calibrations: dict[bool, Calibration] = {}  # by whether they are for new rows
        if self._left_out.size:
            names = ", ".join(map(str, super().get_feature_names_out()[self._left_out]))
            warnings.warn(
                f"L12Imputer leaves out columns without any known entry: {names}. Nothing is known of them, not"
                " even their unit; keep_empty_features=True keeps them, filled with zeros.",
                UserWarning,
                stacklevel=2,
            )
        return self

    if TYPE_CHECKING:  # scikit-learn's has no types

        def fit_transform(self, X: Any, y: Any = None, **options: Any) -> NDArray[Any]:  # noqa: D102
            ...

    def transform(self, X: Any) -> NDArray[Any]:
        """X with what is missing filled in; each row is completed from its own known entries.

        Parameters
        ----------
        X : array, masked array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Rows to complete.

        Returns
        -------
        array or DataFrame of shape (n_samples, n_features)
            Dense; without columns that were empty, and with indicators, as asked for.
        """
        return self._finished(*self._completed(X), X)

    def _finished(self, observed: Observed, filled: Array, X: Any) -> Any:
        """Rows with every entry predicted, as `transform` gives them."""
        self.clip_.round_within(filled, self._whole_columns)
        filled.reshape(-1)[observed.flat] = observed.values
        wanted = self.incomplete_columns_ if self.add_indicator else self.incomplete_columns_[:0]
        indicators = (~observed.mask()[:, np.searchsorted(self._owners, wanted)]).astype(filled.dtype)
        if self._table is None and _get_output_config("transform", self)["dense"] != "pandas":
            return self._returned(np.hstack([filled, indicators]), X)
        parts = np.split(filled, np.flatnonzero(np.diff(self._owners)) + 1, axis=1)
        columns = [part[:, 0] for part in parts] + list(indicators.T)
        if self._table is not None:
            for k in self._table.levels:
                columns[k] = self._table.chosen(k, parts[k], X.iloc[:, k])
        frame = as_frame(columns, X.index if is_frame(X) else None, self._whole_dtypes)
        return frame.drop(columns=self._left_out).set_axis(self.get_feature_names_out(), axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns that `transform` gives.

        Parameters
        ----------
        input_features : array of str, optional
            The names of the columns that it gets; by default those of the training data, or x0, x1 and so on.
        """
        names = super().get_feature_names_out(input_features)
        missing = [f"missingindicator_{name}" for name in names[self.incomplete_columns_]]
        return np.array(
            [*np.delete(names, self._left_out), *(missing if self.add_indicator else [])], dtype=object
        )

    def predict(self, rows: Any, columns: Any = None) -> Array:
        """The fitted matrix at pairs of row and column of the training data, as a vector.

        Parameters
        ----------
        rows, columns : arrays of int
            Where. Without columns, ``rows`` is a dense matrix as in `transform`, and all of its entries are
            predicted, those that are known as well, but for columns that `transform` leaves out.
        """
        check_is_fitted(self)
        self._refuse_categories("predict")
        if columns is None and is_sparse(rows):
            raise TypeError("of a sparse matrix not all entries are predicted; say which: predict(rows, columns)")
        if columns is None:
            return self._returned(self._completed(rows)[1], rows)
        return self.clip_.cut(self.completion_.predict(rows, columns), columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _completed(self, X: Any) -> tuple[Observed, Array]:
        """The known entries of rows, and the rows with every entry predicted."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        size = math.prod(X.shape)
        if scipy.sparse.issparse(X) and size > AT_ONCE:
            raise ValueError(
                f"X completed would be a dense matrix of {size:.2g} entries; use predict(rows, columns) for those"
                " that are wanted, or completion_.x for the factors"
            )
        observed = read_entries(X, "X")
        filled = self._completed_rows(observed)
        filled[:, np.isin(self._owners, self.empty_columns_)] = 0
        return observed, filled

    def _completed_rows(self, observed: Observed) -> Array:
        """Rows of known entries with every entry predicted; a column of unknown unit is NaN."""
        known = observed.select(~np.isin(observed.columns, self.completion_.offsets.unknown_units))
        offsets, W, H = regressed_rows(self.completion_, known)
        filled = offsets.add_to(W @ H.T)
        if self.center_ is None:
            filled[np.diff(known.row_starts) == 0] = self._level
        return self.clip_.cut(filled)

    def _returned(self, filled: Array, X: Any) -> Array:
        """Completed rows without the columns that are left out, as the kind of array that X is."""
        filled = np.delete(filled, self._left_out, axis=1)
        if not _is_dispatched(X):
            return filled
        return to_device_of(filled, stored_entries(X, "X")[2] if is_sparse(X) else X, "X")

    @property
    def _left_out(self) -> Any:
        """The columns of the training data that `transform` does not give back."""
        return self.empty_columns_[:0] if self.keep_empty_features else self.empty_columns_

    def _validated(self, X: Any, reset: bool) -> Any:
        refuse_dask(X, "X")
        refuse_gradient(X, "X")
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
        elif is_sparse(X) and not scipy.sparse.issparse(X):
            rows, columns, values = map(as_numpy, stored_entries(X, "X"))
            X = scipy.sparse.coo_array((values, (rows, columns)), shape=tuple(X.shape))
        elif _is_dispatched(X):
            X = as_numpy(X)
        if self._table is not None:
            if not is_frame(X):
                raise TypeError("X must be a DataFrame with the columns of fit, which had categories")
            validate_data(self, X, reset=reset, skip_check_array=True)
            return self._table.encoded(X)
        kinds = {"accept_sparse": ("csr", "csc", "coo"), "dtype": (np.float64, np.float32)}
        with naming("X"):
            return validate_data(self, X, reset=reset, ensure_all_finite="allow-nan", **kinds)

    def _refuse_categories(self, name: str) -> None:
        if self._table is not None:
            raise ValueError(f"{name} is for tables of numbers, and X had categories: use transform or draws")


def fit_entries(estimator: Any, observed: Observed, **options: Any) -> None:
    """Complete known entries with an estimator's parameters, or other ones, and keep the attributes of the fit.

    Warns where it did not converge.
    """
    with naming("random_state"):
        seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    names = ("alpha", "penalty", "max_rank", "center", "solver", "tol", "max_iter")
    given = {name: getattr(estimator, name) for name in names} | {"random_state": seed}
    result = complete_matrix(observed, **given | options)
    estimator._known, estimator._seed = replace(observed), seed  # without what it has cached
    estimator.completion_, estimator.n_iter_ = result, result.n_iter
    for name in ("alpha", "penalty", "max_rank", "center"):
        setattr(estimator, f"{name}_", getattr(result, name))
    if result.status not in (Status.CONVERGED, Status.RANK_CAPPED):
        warnings.warn(
            f"{type(estimator).__name__} did not converge: it reached stationarity {result.stationarity:.2g} in"
            f" {result.n_iter} iterations, tol={result.tol:g} was asked for. {result.status.value} Raise max_iter,"
            " tol or alpha.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _is_dispatched(X: Any) -> bool:
    """Whether X is an array of another library than NumPy, and scikit-learn lets such pass."""
    other = (is_array(X) and not isinstance(X, np.ndarray)) or (is_sparse(X) and not scipy.sparse.issparse(X))
    return other and bool(get_config()["array_api_dispatch"])
