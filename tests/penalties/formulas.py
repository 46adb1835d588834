"""Penalties written down once more, over the last axis of x, for searches by brute force."""

import numpy as np

from ell12 import L12, MCP, GroupL12, RowsL12
from ell12.penalties import SCAD, CappedL1, LogSum, Lp, TransformedL1


def formula(penalty, x, labels=None):
    """The penalty of vectors, of these groups if they are not its own; what has weight 0 is in no norm."""
    s = np.abs(x)
    if not isinstance(penalty, (L12, GroupL12, RowsL12)):
        return size_formula(penalty, s).sum(-1)
    if labels is None:
        labels = penalty.groups.labels if isinstance(penalty, GroupL12) else np.arange(s.shape[-1])
    labels = np.asarray(labels)
    sizes = np.stack([np.linalg.norm(s[..., labels == g], axis=-1) for g in range(labels.max() + 1)], axis=-1)
    weights = np.ones(sizes.shape[-1]) if penalty.weights is None else np.asarray(penalty.weights)
    sizes, weights = sizes[..., weights > 0], weights[weights > 0]
    length = np.linalg.norm(sizes, axis=-1)
    total = penalty.alpha * (sizes @ weights - penalty.l2_weight * length + 0.5 * penalty.ridge * length**2)
    forbidden = (np.asarray(getattr(penalty, "positive", False)) & (np.real(x) < 0)).any(-1)
    return np.where(forbidden, np.inf, total)


def size_formula(penalty, s):
    """The separable penalties of magnitudes s, written down once more."""
    match penalty:
        case LogSum(alpha=a, theta=theta):
            return a * np.log1p(s / theta)
        case CappedL1(alpha=a, theta=theta):
            return a * np.minimum(s, theta)
        case Lp(alpha=a, p=p):
            return a * s**p
        case MCP(alpha=a, gamma=gamma):
            return np.where(s <= gamma * a, a * s - s**2 / (2 * gamma), gamma * a**2 / 2)
        case SCAD(alpha=alpha, a=a):
            middle = (2 * a * alpha * s - s**2 - alpha**2) / (2 * (a - 1))
            flat = alpha**2 * (a + 1) / 2 + 0 * s
            return np.where(s <= alpha, alpha * s, np.where(s <= a * alpha, middle, flat))
        case TransformedL1(alpha=alpha, a=a):
            return alpha * (a + 1) * s / (a + s)
        case L12(alpha=a, l2_weight=0):
            return a * s
    raise AssertionError(penalty)
