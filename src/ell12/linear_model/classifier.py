"""Sparse logistic regression."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ell12.backend import as_numpy, indices_like, is_numpy, namespace, precision, refuse_masked, to_device_of
from ell12.checks import check_numbers, check_word, naming
from ell12.linear_model import row_fits
from ell12.linear_model.families import CLASSIFICATION, Logistic, family_of
from ell12.linear_model.fit_problem import Data, FitProblem, check_numpy, follow
from ell12.linear_model.sparse_model import SparseLinearModel, keep_arguments
from ell12.losses import LogisticLoss, MultinomialLoss
from ell12.minimization import Result, Status
from ell12.penalties import L12
from ell12.protocols import Array


class L12Classifier(ClassifierMixin, SparseLinearModel):
    """Logistic regression with the l1-2 penalty, or another one; of several classes each against the rest.

    Minimises over the coefficients ``c`` and the intercept ``c_0``, with ``y_i`` 1 for the class, -1 for others::

        1/n sum_i w_i log(1 + exp(-y_i (x_i'c + c_0))) + alpha (||c||_1 - l2_weight ||c||_2 + ridge/2 ||c||_2^2)

    where n is the number of samples. The sample weights w are scaled to the sum n. Two classes are one problem;
    more than two are one problem for each class, or one for all with ``loss="multinomial"``. For two classes and
    ``penalty=L1()`` this is scikit-learn's LogisticRegression with ``l1_ratio=1`` and ``C = 1/(n alpha)``.

    Parameters
    ----------
    alpha : float, optional
        Regularisation strength, at least 0; by default that of ``penalty``, or 0.01.
    penalty : Penalty, default L12(l2_weight=0.5)
        As in `L12Regressor`. See the notes for why the weight is not 1.
    loss : {"logistic", "multinomial"} or Family, default "logistic"
        "multinomial" fits more than two classes at once. The probabilities are the softmax of the linear
        functions, and ``1/n sum_i -w_i log p_i(y_i)`` is minimised, with the penalty on all coefficients as one
        vector. The intercepts have the mean 0. For two classes nothing changes.
    class_weight : dict or "balanced", optional
        Weights of classes, by which the weights of their samples are multiplied. "balanced" gives all classes the
        same weight in sum.
    fit_intercept, standardize, relax, warm_start, solver, tol, max_iter, run
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
    penalty_, stationarity_, converged_, results_, n_features_in_, feature_names_in_
        As in `L12Regressor`.

    See Also
    --------
    L12ClassifierCV : Classification with a strength chosen by cross-validation.
    L12Regressor : Regression with a strength of your own choice.

    Notes
    -----
    At ``l2_weight=1`` a single coefficient costs nothing. So if one feature separates the classes, there is no
    finite solution without a ridge. The same holds for features of weight 0, and for all features if
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

    default_alpha = 0.01
    _class_weights: Any = None  # one for each class, where they are not all 1

    def __init__(
        self,
        alpha: float | None = None,
        *,
        penalty: Any = L12(l2_weight=0.5),  # noqa: B008
        loss: Any = "logistic",
        class_weight: Any = None,
        fit_intercept: bool = True,
        standardize: bool = False,
        relax: bool = False,
        warm_start: bool = False,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        run: Any = None,
    ) -> None:
        keep_arguments(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L12Classifier:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples. float32 stays float32; what is sparse is never made dense. A dask array or DataFrame stays
            where it is; see `ell12.distributed.rows_loss`. So do more columns than memory holds: `ell12.Columns`.
        y : array of shape (n_samples,)
            Labels of any kind.
        sample_weight : array of shape (n_samples,), optional
            Weights, at least 0.
        """
        self._chunks = None
        if row_fits.is_chunked(X):
            self._check_chunks("data in chunks", Logistic)
            row_fits.check_features(self, X, reset=True)
            if self.class_weight is not None:
                raise ValueError("class_weight needs data in memory: give sample_weight for data in chunks")
            self.classes_, problems = row_fits.classification_problems(X, y, sample_weight, self.fit_intercept)
        else:
            problems = self._problems(self._observed(X, y, sample_weight))
        self._fit_problems(problems, self._given_penalty(), single=False)
        return self

    @available_if(lambda model: row_fits.can_step(model, Logistic))
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
        `ell12.linear_model.row_fits.StochasticDescent`.
        """
        first = self._chunks is None
        labels = self._known_classes(classes, first)
        X, y, sample_weight = self._validate(X, y, sample_weight, reset=first)
        check_numpy(X, "partial_fit")
        self._check_chunks("partial_fit", Logistic)
        if not np.isin(y, labels).all():
            raise ValueError(f"y holds labels that are not among classes: {np.setdiff1d(y, labels)}")
        if self.class_weight is not None and not isinstance(self.class_weight, dict):
            raise ValueError(f"class_weight must be a dict or None in partial_fit, got {self.class_weight!r}")
        self.classes_, codes = labels, np.searchsorted(labels, y)
        self._weigh_classes(X, codes, sample_weight)
        signs, weight = self._signs(codes, X.dtype), self._weight_of_samples(codes, sample_weight)
        self._chunks = self._step_through([Logistic()] * len(signs), Data(X, signs, weight))
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The fitted linear functions at the rows of X: of the second class where there are two."""
        return (
            row_fits.map_rows(self.decision_function, X)
            if row_fits.is_chunked(X)
            else self._decisions(X, "decision_function")
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """The label with the largest decision function; a dask array, not computed yet, where X is one."""
        if row_fits.is_chunked(X):
            return row_fits.map_rows(self.predict, X)
        scores = self._decisions(X, "predict")
        xp = namespace(scores)
        codes = xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)
        if is_numpy(self.classes_):  # as are names, whatever X is
            return self.classes_[as_numpy(codes)]
        return xp.take(self.classes_, codes, axis=0)

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class.

        Of more than two classes each is fitted against the rest and scaled to the sum 1, unless
        ``loss="multinomial"``.
        """
        if row_fits.is_chunked(X):
            return row_fits.map_rows(self.predict_proba, X)
        return self._shares(self._decisions(X, "predict_proba"))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithm of `predict_proba`."""
        if row_fits.is_chunked(X):
            return row_fits.map_rows(self.predict_log_proba, X)
        shares = self._shares(self._decisions(X, "predict_log_proba"))
        return namespace(shares).log(shares)

    def _shares(self, scores: Array) -> Array:
        """The probabilities that belong to decision functions."""
        return self._own_family(scores.shape[1] if scores.ndim == 2 else 1).shares(scores)

    @property
    def _family(self) -> Any:
        return family_of(self.loss, CLASSIFICATION)

    def _own_family(self, n_functions: int) -> Any:
        """The family; with one linear function a joint one becomes that of two classes."""
        family = self._family
        return Logistic() if family.joint and n_functions == 1 else family

    def _decisions(self, X: Any, method: str) -> Array:
        scores = self._linear_functions(X, method)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labels that are right; what is on workers is added up there."""
        if row_fits.is_chunked(X):
            return row_fits.score_rows(self, X, y, sample_weight)
        refuse_masked(y, "y")
        refuse_masked(sample_weight, "sample_weight")
        return super().score(X, y, sample_weight)

    def _observed(self, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> Data:  # noqa: ARG002
        """The data, with the number of its class in place of each label."""
        X, y, sample_weight = self._validate(X, y, sample_weight)
        with naming("y"):
            check_classification_targets(y)
        classes, codes = namespace(y).unique_inverse(y)
        self.classes_, codes = follow(classes, X), follow(codes, X)
        counted = codes if sample_weight is None else codes[sample_weight > 0]
        if int(namespace(counted).unique_values(counted).shape[0]) < 2:
            raise ValueError(f"y must hold at least 2 classes of positive weight, it holds one class: {y[0]!r}")
        self._weigh_classes(X, codes, sample_weight)
        return Data(X, codes, sample_weight)

    def _weigh_classes(self, X: Any, codes: Array, sample_weight: Any) -> None:
        """Find the weights of the classes, in the precision of X: once for all folds, as scikit-learn does."""
        if self.class_weight is None:
            self._class_weights = None
            return
        if not isinstance(self.class_weight, dict):
            check_word(self.class_weight, "class_weight", "balanced")
        labels = as_numpy(self.classes_)
        samples = None if sample_weight is None else as_numpy(sample_weight)
        with np.errstate(divide="ignore"), naming("class_weight"):
            found = compute_class_weight(
                self.class_weight, classes=labels, y=labels[as_numpy(codes)], sample_weight=samples
            )
        if self.class_weight == "balanced":  # a class whose samples have no weight gets none
            found[np.isinf(found)] = 0.0
        check_numbers(class_weight=found)
        self._class_weights = found.astype(np.float32 if str(X.dtype).endswith("float32") else np.float64)

    def _weight_of_samples(self, y: Array, sample_weight: Any) -> Any:
        if self._class_weights is None:
            return sample_weight
        weight = namespace(y).take(to_device_of(self._class_weights, y, "class_weight"), y, axis=0)
        return weight if sample_weight is None else weight * sample_weight

    def _parts(self, data: Data) -> list[tuple[Any, Array]]:
        signs = self._signs(data.y, data.X.dtype)
        family = self._own_family(len(signs))
        targets = [(1 + namespace(data.y).stack(signs, axis=1)) / 2] if family.joint else signs
        return [(family, target) for target in targets]

    def _judged(self, problems: list[FitProblem], results: list[Result], penalty: Any) -> list[Result]:
        """The results; those that have no finite minimiser say so, and one warning for all of them."""
        judged = [
            replace(result, status=Status.UNBOUNDED) if _is_unbounded(problem, result.x, penalty) else result
            for problem, result in zip(problems, results, strict=True)
        ]
        count = sum(result.status is Status.UNBOUNDED for result in judged)
        if count:
            share = "" if len(results) == 1 else f" in {count} of {len(results)} problems"
            warnings.warn(
                f"{type(self).__name__} has no finite minimiser{share}: features separate the classes, and"
                f" {penalty!r} does not bound their coefficients. Raise alpha or the weights of features of weight"
                " 0, give a ridge, or a smaller l2_weight. The coefficients found are large because"
                f" tol={self.tol:g} is small; a smaller tol makes them larger.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return judged

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


def growing(penalty: Any, x: Array) -> Array:
    """The nonzero entries of x that the penalty does not pull back, so that they may grow at no cost.

    A proximal step shows them: it leaves them as they are, or moves them away from zero.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12
    >>> from ell12.linear_model.classifier import growing
    >>> growing(L12(0.1), np.array([3.0, 0.0])), growing(L12(0.1), np.array([3.0, 1.0]))
    (array([ True, False]), array([False, False]))
    """
    if penalty.alpha == 0:
        return as_numpy(x) != 0
    size = 1e-3 * float(np.abs(as_numpy(x)).max(initial=0.0))  # how far alpha would pull in such a step
    moved = as_numpy(penalty.prox(x, size / penalty.alpha))
    before = np.abs(as_numpy(x))
    rounded = 8 * precision(x) * float(before.max(initial=0.0))
    return (before > 0) & (np.abs(moved) >= before - 1e-6 * size - rounded)


def separates(problem: FitProblem, x: Array, which: Array) -> bool:
    """Whether the given entries of x are a direction in which no margin falls and some grow.

    An intercept puts a threshold between two classes wherever there is one; of several classes at once the
    intercepts are among the entries. Samples of weight 0 do not count.
    """
    loss = problem.loss
    part = namespace(x).where(indices_like(which, x), x, 0)
    score, sign = as_numpy(loss.point(part).prediction), as_numpy(loss.b)
    if loss.sample_weight is not None:
        counts = as_numpy(loss.sample_weight).reshape(-1) > 0
        score, sign = score[counts], sign[counts]
    if problem.n_classes:
        margins = (np.sum(sign * score, axis=1, keepdims=True) - score)[sign == 0]
        return bool((margins >= 0).all() and (margins > 0).any())
    if not problem.constant:
        return bool((sign * score >= 0).all() and (score != 0).any())
    low, high = score[sign < 0], score[sign > 0]
    return bool(low.max() <= high.min() and low.min() < high.max())


def _is_unbounded(problem: FitProblem, x: Array, penalty: Any) -> bool:
    """Whether the classes are separated by features that the penalty does not bound."""
    if not isinstance(problem.loss, LogisticLoss | MultinomialLoss):  # such as rows on workers
        return False
    size = x.shape[0] - problem.n_intercepts
    which = growing(problem.coefficient_penalty(penalty), x[:size])
    every = np.full(x.shape[0], problem.n_classes > 0)
    every[:size] = which
    return bool(which.any()) and separates(problem, x, every)
