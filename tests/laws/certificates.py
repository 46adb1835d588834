"""First-order conditions written out, independently of the package: each returns the largest violation."""

import numpy as np


def l12(x, gradient, alpha, l2_weight):
    """Of ``f(x) + alpha (||x||_1 - l2_weight ||x||_2)`` where f has this gradient."""
    length = np.linalg.norm(x)
    if length == 0:  # along an axis the penalty rises by alpha (1 - l2_weight), along others faster
        return max(np.abs(gradient).max() - alpha * (1 - l2_weight), 0.0)
    pull = gradient - alpha * l2_weight * x / length
    return float(np.where(x != 0, np.abs(pull + alpha * np.sign(x)), np.maximum(np.abs(pull) - alpha, 0)).max())


def gradient_of(loss, A, b, x, delta=1.35):
    """The gradient at x of a sum over rows: half a square, a logistic or Huber's loss, or minus a likelihood."""
    eta = A @ x.reshape(A.shape[1], -1)
    if loss == "multinomial":
        shares = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
        return (A.T @ (shares - np.eye(eta.shape[1])[b])).ravel()
    eta = eta[:, 0]
    if loss == "cox":  # by Breslow: at each event the mean of those at risk less the one that has it
        risk, total = np.exp(eta), np.zeros(x.size)
        for i in np.flatnonzero(b[:, 1]):
            at_risk = b[:, 0] >= b[i, 0]
            total += risk[at_risk] @ A[at_risk] / risk[at_risk].sum() - A[i]
        return total
    slopes = {
        "squared": lambda: eta - b,
        "logistic": lambda: -b / (1 + np.exp(b * eta)),
        "huber": lambda: np.clip(eta - b, -delta, delta),
        "poisson": lambda: np.exp(eta) - b,
    }
    return A.T @ slopes[loss]()


def weighted_gradient(loss, data, x):
    """The same for data whose whole weights stand for as many rows."""
    rows = np.repeat(np.arange(data["A"].shape[0]), data["sample_weight"].astype(int))
    return gradient_of(loss, data["A"][rows], data["b"][rows], np.asarray(x))


def separable(slope_of_size):
    """Of a sum over entries of ``phi(|x_i|)``, by its derivative phi', infinite at zero or not."""

    def violation(x, gradient):
        size = np.abs(x)
        slope = slope_of_size(np.where(size > 0, size, 0.0))
        inside = np.maximum(np.abs(gradient) - slope, 0)
        return float(np.where(size > 0, np.abs(gradient + slope * np.sign(x)), inside).max())

    return violation


def spectral(X, gradient, slopes):
    """Of ``f(X) + sum_i phi(s_i)``; slopes gives phi' of the singular values, and the slope at zero."""
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(s > 1e-10 * s[0])) if s[0] > 0 else 0
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    inside, at_zero = slopes(s)
    left, right = gradient @ Vt.T + U * inside, U.T @ gradient + inside[:, None] * Vt
    rest = gradient - U @ (U.T @ gradient) - (gradient - U @ (U.T @ gradient)) @ Vt.T @ Vt
    outside = max(np.linalg.norm(rest, 2) - at_zero, 0.0)
    return float(max(np.abs(left).max(initial=0), np.abs(right).max(initial=0), outside))


def smoothed_tv(image, adjoint_residual, alpha, l2_weight, smoothing):
    """The root mean square of the gradient of the smoothed objective at an image.

    The penalty of a pixel's differences d is the Moreau envelope: its gradient is ``(d - prox(d)) alpha /
    smoothing``, where the prox, of threshold ``smoothing``, is found by a search over the plane's directions.
    """
    axes = range(image.ndim)
    differences = np.stack([np.diff(image, axis=k, append=np.take(image, [-1], axis=k)) for k in axes])
    pull = (differences - _prox_by_definition(differences, smoothing, l2_weight)) * (alpha / smoothing)
    gradient = adjoint_residual.copy()
    for k, across in enumerate(pull):
        np.moveaxis(across, k, 0)[-1] = 0  # there is no difference past the end
        gradient -= across - np.roll(across, 1, axis=k)
    return float(np.sqrt(np.mean(gradient**2)))


def _prox_by_definition(d, t, l2_weight):
    """The prox of ``t (||.||_1 - l2_weight ||.||_2)`` over the first axis, from its three cases."""
    size = np.abs(d)
    soft = np.maximum(size - t, 0)
    length = np.sqrt((soft**2).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        long = np.where(length > 0, soft * (length + t * l2_weight) / length, 0)
    # Where all are within the threshold at most the largest stays, and costs t (1 - l2_weight) a unit.
    largest = size == size.max(axis=0)
    first = largest & (np.cumsum(largest, axis=0) == 1)
    short = np.where(first, np.maximum(size - t * (1 - l2_weight), 0), 0)
    return np.sign(d) * np.where(length > 0, long, short)
