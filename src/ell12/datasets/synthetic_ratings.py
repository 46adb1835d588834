"""Ratings by seed, since no real set may be shipped: few users and items have most of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ell12.datasets.ratings import Ratings

_CHUNK = 1 << 20


def synthetic_ratings(
    seed: int,
    n_users: int = 1000,
    n_items: int = 500,
    n_ratings: int = 50_000,
    *,
    rank: int = 5,
    mean: float = 3.5,
    user_deviation: float = 0.4,
    item_deviation: float = 0.5,
    factor_deviation: float = 0.5,
    noise: float = 0.7,
    exponent: float = 0.5,
    scale: tuple[float, float] | None = (1.0, 5.0),
    round_to: float | None = 0.5,
) -> Ratings:
    """Ratings ``mean + b_u + c_i + <p_u, q_i> + noise``, of users and items whose activity follows a power law.

    Parameters
    ----------
    seed : int
        The same seed gives the same ratings.
    n_users, n_items, n_ratings : int, default 1000, 500 and 50_000
        Sizes. Every user and every item has a rating where there are enough, no pair has two.
    rank : int, default 5
        Length of the factors p and q.
    mean, user_deviation, item_deviation, factor_deviation, noise : float, default 3.5, 0.4, 0.5, 0.5 and 0.7
        The overall mean, and the standard deviations of b, c, the product of the factors and the noise.
    exponent : float, default 0.5
        The k-th most active user, and the k-th most popular item, is drawn with a weight that falls as
        ``k ** -exponent``; below 1.
    scale : pair of floats, default (1.0, 5.0)
        Ratings are cut to this range.
    round_to : float, default 0.5
        Ratings are rounded to multiples of this.

    Returns
    -------
    Ratings
        Ids are the numbers from 0; which of them are active is random.

    Examples
    --------
    >>> from ell12.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(0, 100, 50, 1000)
    >>> ratings.shape, len(ratings), float(ratings.values.min()), float(ratings.values.max())
    ((100, 50), 1000, 1.0, 5.0)
    """
    if not 0 < n_ratings <= n_users * n_items:
        raise ValueError(f"n_ratings must be from 1 to {n_users * n_items}, got {n_ratings}")
    if not 0 <= exponent < 1:
        raise ValueError(f"exponent must be at least 0 and below 1, got {exponent}")
    random = np.random.default_rng(seed)
    pairs = _pairs(random, n_users, n_items, n_ratings, exponent)
    rows, columns = np.divmod(pairs, n_items)
    values = mean + (user_deviation * random.standard_normal(n_users))[rows]
    values += (item_deviation * random.standard_normal(n_items))[columns]
    if rank:
        spread = np.sqrt(factor_deviation / np.sqrt(rank))
        p, q = (spread * random.standard_normal((n, rank), dtype=np.float32) for n in (n_users, n_items))
        for start in range(0, n_ratings, _CHUNK):
            part = slice(start, start + _CHUNK)
            values[part] += np.einsum("ij,ij->i", p[rows[part]], q[columns[part]])
    values += noise * random.standard_normal(n_ratings)
    if round_to is not None:
        values = np.rint(values / round_to) * round_to
    if scale is not None:
        np.clip(values, *scale, out=values)
    return Ratings(rows.astype(np.int32), columns.astype(np.int32), values, np.arange(n_users), np.arange(n_items))


def _pairs(random: np.random.Generator, n_users: int, n_items: int, count: int, exponent: float) -> Any:
    """Different pairs ``user * n_items + item``, sorted, drawn by the weights of both."""
    orders = [random.permutation(n) for n in (n_users, n_items)]
    users, items = (partial(_draw, random, order, exponent) for order in orders)
    must = np.empty(0, dtype=np.int64)
    if count >= n_users + n_items:
        each_user = np.arange(n_users) * n_items + items(n_users)
        must = _different(np.append(each_user, users(n_items) * n_items + np.arange(n_items)))
    pairs = must
    while pairs.size < count:
        if pairs.size > 0.5 * n_users * n_items:  # too full to find what is missing by drawing
            free = np.setdiff1d(np.arange(n_users * n_items), pairs, assume_unique=True)
            return np.sort(np.append(pairs, random.choice(free, count - pairs.size, replace=False)))
        n_draws = 2 * (count - pairs.size)
        pairs = _different(np.append(pairs, users(n_draws) * n_items + items(n_draws)))
    spare = np.setdiff1d(pairs, must, assume_unique=True)
    return np.sort(np.append(must, random.choice(spare, count - must.size, replace=False, shuffle=False)))


def _draw(random: np.random.Generator, order: Any, exponent: float, size: int) -> Any:
    """Entries of ``order``, the k-th with a weight that falls as ``k ** -exponent``."""
    place = len(order) * random.random(size) ** (1 / (1 - exponent))
    return order[np.minimum(place.astype(np.int64), len(order) - 1)]


def _different(numbers: Any) -> Any:
    numbers.sort()
    return numbers[np.diff(numbers, prepend=-1) > 0]
