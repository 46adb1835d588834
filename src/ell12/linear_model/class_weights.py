"""Weights of classes: one number for each label, by which the weights of its samples are multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.backend import as_numpy
from ell12.checks import check_numbers
from ell12.protocols import Array


def class_weights(class_weight: Any, classes: Array, codes: Array, sample_weight: Any = None) -> Array | None:
    """The weight of each class as a NumPy array; None where all are 1.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weights by label, 1 for those that are not named; or ``n / (n_classes n_k)`` with n samples, n_k of them in
        the class, counted by their weights.
    classes : array of shape (n_classes,)
        The labels.
    codes : array of shape (n_samples,)
        The number of each sample's class.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.class_weights import class_weights
    >>> class_weights("balanced", np.array(["a", "b"]), np.array([0, 0, 0, 1]))
    array([0.66666667, 2.        ])
    """
    if class_weight is None:
        return None
    labels = as_numpy(classes).tolist()
    if isinstance(class_weight, dict):
        unknown = [label for label in class_weight if label not in labels]
        if unknown:
            raise ValueError(f"class_weight holds labels that are not among the classes {labels}: {unknown}")
        weights = np.array([class_weight.get(label, 1.0) for label in labels], dtype=object)
        for weight in weights:
            check_numbers(single=True, class_weight=weight)
        return weights.astype(np.float64)
    if not isinstance(class_weight, str) or class_weight != "balanced":
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}")
    given = None if sample_weight is None else as_numpy(sample_weight).astype(np.float64)
    counts = np.bincount(as_numpy(codes), given, minlength=len(labels)).astype(np.float64)
    # A class that has no weight keeps it.
    return np.divide(counts.sum() / len(labels), counts, out=np.zeros_like(counts), where=counts > 0)
