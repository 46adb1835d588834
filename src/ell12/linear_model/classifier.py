"""Sparse logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ell12.backend import as_numpy, beside, is_numpy, namespace, refuse_masked
from ell12.checks import check_flags, check_numbers, naming
from ell12.linear_model.chunked import (
    accuracy,
    classification_problems,
    is_chunked,
    map_rows,
    note_features,
)
from ell12.linear_model.families import admit_separation
from ell12.linear_model.fit_problem import Design, FitProblem, check_numpy, follow
from ell12.linear_model.partial import Descents
from ell12.linear_model.sparse_model import SparseLinearModel
from ell12.losses import LogisticLoss
from ell12.losses.multinomial import softmax
from ell12.losses.pointwise import sigmoid
from ell12.minimization import Result
from ell12.protocols import Array


class L12Classifier(ClassifierMixin, SparseLinearModel):
    """Logistic regression under the l1-2 penalty, one class against the rest.

    Minimises over the coefficients ``c`` and the intercept ``c_0``, with ``y_i`` 1 for the class, -1 for others::

        1/n sum_i w_i log(1 + exp(-y_i (x_i'c + c_0))) + alpha (||c||_1 - l2_weight ||c||_2 + ridge/2 ||c||_2^2)

    where n is the number of samples. The sample weights w are scaled to the sum n. Two classes are one problem;
    more than two are one problem for each class. For two classes and ``l2_weight=0`` this is scikit-learn's
    LogisticRegression with ``l1_ratio=1`` and ``C = 1/(n alpha)``.

    Parameters
    ----------
    alpha : float, default 0.01
        Strength of the penalty, at least 0.
    multinomial : bool, default False
        Fit more than two classes at once. The probabilities are the softmax of the linear functions, and
        ``1/n sum_i -w_i log p_i(y_i)`` is minimised, with the penalty on all coefficients as one vector. The
        intercepts have the mean 0. For two classes nothing changes.
    l2_weight : float, default 0.5
        Weight of the subtracted norm, from 0 to 1: 1 is l1-2, 0 the l1 norm. See the notes for why 1 is not the
        default.
    ridge : float, default 0.0
        Weight of half the squared norm, as in `L12Regressor`. With a ridge, and ``alpha > 0``, all penalised
        coefficients are finite.
    fit_intercept : bool, default True
        Whether to fit the intercept ``c_0``, which is not penalised.
    positive : bool, default False
        Allow coefficients ``c >= 0`` only; the intercept may have any sign.
    penalty_factors, bounds, groups, relax
        As in `L12Regressor`.
    class_weight : dict or "balanced", optional
        Weights by label, which multiply those of the samples; a label that is not named has weight 1. With
        "balanced" all classes have the same total weight: ``n / (n_classes n_k)`` for each sample of a class with
        n_k of n samples, counted by their weights. Not with data in chunks; `partial_fit` takes only a dict.
    warm_start, tol, max_iter, solver, verbose, checkpoint, checkpoint_seconds, resume
        As in `L12Regressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Coefficients; of the second class where there are two.
    sparse_coef_ : sparse array of the same shape
        The same, sparse.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts.
    n_iter_ : array of shape (1,) or (n_classes,)
        Iterations.
    result_ : list of Result
        The result of each run. Its ``x`` is the solution for centred columns that are divided by their typical
        size, a power of 2; the intercept is last. None after `partial_fit`.
    n_features_in_, feature_names_in_
        What fit has seen.

    See Also
    --------
    L12ClassifierCV : Classification with a strength chosen by cross-validation.
    L12Regressor : Regression with a strength of your own choice.

    Notes
    -----
    At ``l2_weight=1`` a single coefficient costs nothing. So if one feature separates the classes, there is no
    finite solution without a ridge. The same holds for features of penalty factor 0, and for all features if
    ``alpha=0``. The fit then ends with a ConvergenceWarning and the status ``UNBOUNDED``. In small data one
    feature often separates the classes; therefore the default is 0.5.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12Classifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [2.0, 2.0], [4.0, 2.0]])
    >>> model = L12Classifier(alpha=0.05).fit(X, ["a", "a", "b", "b", "a", "b"])
    >>> model.predict([[4.0, 0.0], [0.0, 2.0]])
    array(['b', 'a'], dtype='<U1')
    """

    _class_weights: Any = None  # one for each class, where they are not all 1

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        multinomial: bool = False,
        l2_weight: float = 0.5,
        ridge: float = 0.0,
        fit_intercept: bool = True,
        positive: bool = False,
        penalty_factors: Any = None,
        bounds: Any = None,
        groups: Any = None,
        relax: bool = False,
        class_weight: Any = None,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        solver: Any = None,
        verbose: int = 0,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
        resume: bool = False,
    ) -> None:
        self.alpha = alpha
        self.multinomial = multinomial
        self.l2_weight = l2_weight
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.groups = groups
        self.relax = relax
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.resume = resume

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L12Classifier:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples. float32 stays float32; what is sparse is never made dense. A dask array or DataFrame stays
            where it is; see `ell12.distributed.sum_loss`. So do more columns than memory holds: `ell12.Columns`.
        y : array of shape (n_samples,)
            Labels of any kind.
        sample_weight : array of shape (n_samples,), optional
            Weights, at least 0.
        """
        self._chunks = None
        if is_chunked(X):
            if self.multinomial:
                raise ValueError("data in chunks needs multinomial=False")
            note_features(self, X)
            if self.class_weight is not None:
                raise ValueError("class_weight needs data in memory: give sample_weight for data in chunks")
            self.classes_, problems = classification_problems(X, y, sample_weight, self.fit_intercept)
        else:
            X, codes, sample_weight = self._observed(X, y, sample_weight)
            problems = self._problems(X, codes, sample_weight)
        self._fit_problems(problems, self.alpha)
        return self

    @available_if(lambda model: hasattr(model, "alpha") and model._takes_chunks())
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> L12Classifier:
        """Go on fitting, by stochastic proximal steps over a chunk of rows.

        The model is that of `fit` only in the limit of many chunks, or of many passes over them. Columns should
        have means near zero and similar scales (`sklearn.preprocessing.StandardScaler` has a ``partial_fit`` too).
        A call after `fit` begins anew.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, but in memory and of NumPy or sparse. A chunk may lack some classes.
        classes : array, optional
            All labels that will ever come. Needed in the first call, unless it follows a `fit` that saw them.

        Notes
        -----
        The steps are described, with what theory says of them, at
        `ell12.linear_model.partial.StochasticDescent`.
        """
        first = self._chunks is None
        labels = self._known_classes(classes, first)
        X, y, sample_weight = self._validate(X, y, sample_weight, reset=first)
        check_numpy(X, "partial_fit")
        if not np.isin(y, labels).all():
            raise ValueError(f"y holds labels that are not among classes: {np.setdiff1d(y, labels)}")
        if self.class_weight is not None and not isinstance(self.class_weight, dict):
            raise ValueError(f"class_weight must be a dict or None in partial_fit, got {self.class_weight!r}")
        self.classes_, codes = labels, np.searchsorted(labels, y)
        self._weigh_classes(X, codes, sample_weight)
        chunks = Descents() if first else self._chunks
        signs, weight = self._signs(codes, X.dtype), self._weight_of_samples(codes, sample_weight)
        self._step_through(chunks, LogisticLoss, X, signs, weight)
        self._chunks = chunks
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The fitted linear functions at the rows of X: of the second class where there are two."""
        return map_rows(self.decision_function, X) if is_chunked(X) else self._decisions(X, "decision_function")

    def predict(self, X: Any) -> NDArray[Any]:
        """The label with the largest decision function; a dask array, not computed yet, where X is one."""
        if is_chunked(X):
            return map_rows(self.predict, X)
        scores = self._decisions(X, "predict")
        xp = namespace(scores)
        codes = xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)
        if is_numpy(self.classes_):  # as are names, whatever X is
            return self.classes_[as_numpy(codes)]
        return xp.take(self.classes_, codes, axis=0)

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class.

        Of more than two classes each is fitted against the rest and scaled to the sum 1, unless ``multinomial``.
        """
        if is_chunked(X):
            return map_rows(self.predict_proba, X)
        return self._shares(self._decisions(X, "predict_proba"))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithm of `predict_proba`."""
        if is_chunked(X):
            return map_rows(self.predict_log_proba, X)
        shares = self._shares(self._decisions(X, "predict_log_proba"))
        return namespace(shares).log(shares)

    def _shares(self, scores: Array) -> Array:
        """The probabilities that belong to decision functions."""
        joint = self.multinomial and scores.ndim == 2 and scores.shape[1] > 1
        return softmax(scores) if joint else probabilities(scores)

    def _takes_chunks(self) -> bool:
        if self.multinomial:
            raise AttributeError("partial_fit needs multinomial=False")
        return True

    def _decisions(self, X: Any, method: str) -> Array:
        scores = self._linear_functions(X, method)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labels that are right; what is on workers is added up there."""
        if is_chunked(X):
            return accuracy(self.predict, X, y, sample_weight)
        refuse_masked(y, "y")
        refuse_masked(sample_weight, "sample_weight")
        return super().score(X, y, sample_weight)

    def _observed(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Any]:
        """The data, with the number of its class in place of each label."""
        X, y, sample_weight = self._validate(X, y, sample_weight)
        with naming("y"):
            check_classification_targets(y)
        xp = namespace(y)
        classes, codes = xp.unique_inverse(y)
        self.classes_, codes = follow(classes, X), follow(codes, X)
        counted = codes if sample_weight is None else codes[sample_weight > 0]
        if int(namespace(counted).unique_values(counted).shape[0]) < 2:
            raise ValueError(f"y must hold at least 2 classes of positive weight, it holds one class: {y[0]!r}")
        self._weigh_classes(X, codes, sample_weight)
        return X, codes, sample_weight

    def _weigh_classes(self, X: Any, codes: Array, sample_weight: Any) -> None:
        """Find the weights of the classes, in the precision of X: once for all folds, as scikit-learn does."""
        self._class_weights = None
        if self.class_weight is None:
            return
        labels = as_numpy(self.classes_)
        samples = None if sample_weight is None else as_numpy(sample_weight)
        with np.errstate(divide="ignore"), naming("class_weight"):
            found = compute_class_weight(
                self.class_weight, classes=labels, y=labels[as_numpy(codes)], sample_weight=samples
            )
        if self.class_weight == "balanced":  # a class whose samples have no weight gets none
            found[np.isinf(found)] = 0.0
        check_numbers(class_weight=found)
        single = str(X.dtype).endswith("float32")
        self._class_weights = found.astype(np.float32 if single else np.float64)

    def _weight_of_samples(self, y: Array, sample_weight: Any) -> Any:
        if self._class_weights is None:
            return sample_weight
        weight = namespace(y).take(beside(self._class_weights, y, "class_weight"), y, axis=0)
        return weight if sample_weight is None else weight * sample_weight

    def _problems(self, X: Any, y: Array, sample_weight: Any) -> list[FitProblem]:
        sample_weight = self._weight_of_samples(y, sample_weight)
        design = Design(X, sample_weight, center=self.fit_intercept, constant=self.fit_intercept)
        check_flags(multinomial=self.multinomial)
        signs = self._signs(y, X.dtype)
        if self.multinomial and len(signs) > 1:
            return [design.multinomial_problem((1 + namespace(y).stack(signs, axis=1)) / 2)]
        return [design.problem(LogisticLoss, part) for part in signs]

    def _judged(self, problems: list[FitProblem], results: list[Result], alpha: float) -> list[Result]:
        return admit_separation(self, problems, results, alpha, self._l2_weight)

    def _signs(self, codes: Array, dtype: Any) -> list[Array]:
        """1 for a class and -1 for the rest, for each class, or for the second of two."""
        classes = range(self.classes_.shape[0]) if self.classes_.shape[0] > 2 else [1]
        xp = namespace(codes)
        return [xp.astype(2 * xp.astype(codes == k, xp.int8) - 1, dtype) for k in classes]

    def _known_classes(self, classes: Any, first: bool) -> Array:
        """The sorted labels, from the first call of `partial_fit` on."""
        if classes is None and not hasattr(self, "classes_"):
            raise ValueError("classes must be passed on the first call to partial_fit.")
        labels = self.classes_ if classes is None else np.unique(np.asarray(classes))
        if labels.size < 2:
            raise ValueError(f"classes must hold at least 2 classes, got {labels}")
        if not first and not np.array_equal(labels, self.classes_):
            raise ValueError(f"classes={labels} are not those of the first call to partial_fit: {self.classes_}")
        return labels


def probabilities(scores: Array) -> Array:
    """One probability for each class, last axis, from the decision functions."""
    xp = namespace(scores)
    if scores.ndim == 1 or scores.shape[1] == 1:
        scores = xp.reshape(scores, (-1,))
        return xp.stack([sigmoid(-scores), sigmoid(scores)], axis=1)
    # The largest score is taken out first, so that a row of very negative scores does not become 0/0.
    logs = -xp.logaddexp(xp.zeros_like(scores), -scores)
    shares = xp.exp(logs - xp.max(logs, axis=1, keepdims=True))
    return shares / xp.sum(shares, axis=1, keepdims=True)
