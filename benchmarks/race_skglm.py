"""The difference of norms as a penalty of skglm's kind, for its FISTA."""

import numpy as np
from numba import float64
from skglm.penalties.base import BasePenalty


class L1MinusL2(BasePenalty):
    """``alpha (||w||_1 - ||w||_2)``."""

    def __init__(self, alpha):
        self.alpha = alpha

    def get_spec(self):
        return (("alpha", float64),)

    def params_to_dict(self):
        return {"alpha": self.alpha}

    def value(self, w):
        return self.alpha * (np.sum(np.abs(w)) - np.sqrt(np.sum(w**2)))

    def prox_vec(self, w, stepsize):
        t = self.alpha * stepsize
        above = np.maximum(np.abs(w) - t, 0.0)
        square = np.sum(above**2)
        if square > 0:
            return np.sign(w) * above * (1 + t / np.sqrt(square))
        x = np.zeros_like(w)
        largest = np.argmax(np.abs(w))
        x[largest] = w[largest]
        return x

    def subdiff_distance(self, w, grad, ws):
        size = np.sqrt(np.sum(w**2))
        distance = np.zeros(ws.shape[0], dtype=w.dtype)
        for k, j in enumerate(ws):
            if w[j] == 0:
                distance[k] = max(0.0, np.abs(grad[k]) - self.alpha)
            else:
                distance[k] = np.abs(grad[k] + self.alpha * np.sign(w[j]) - self.alpha * w[j] / size)
        return distance

    def is_penalized(self, n_features):
        return np.ones(n_features, dtype=np.bool_)

    def generalized_support(self, w):
        return w != 0
