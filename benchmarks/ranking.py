"""Lists of films on MovieLens' 100,000 ratings: by interest, by predicted rating, by popularity and by implicit.

A fifth of the ratings is hidden at random, three times. Each method gets the others and ranks, for every user, all
films that the user has not rated. The column of objectives holds the NDCG at 10, averaged over users and draws.
The gain of a film is its hidden rating above the lowest one, and 0 where there is none. `L12Recommender()` has its
default arguments. Alternating least squares of implicit has the number of factors, the weight of the ratings and
the regularisation that do best on a tenth of the known ratings. Times are processor time of one thread, averaged
over the draws, the tuning included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

import study
from ell12 import L12Recommender
from ell12.completion.ranking import best_columns, ndcg
from ell12.datasets import Ratings
from ratings import movielens_100k
from study import Row, load, version_of

DRAWS, HIDDEN, N = 3, 0.2, 10
GRID = tuple(product((16, 32, 64), (1, 5, 20), (0.01, 1.0)))  # factors, weight, regularisation


def score(lists: Any, train: Ratings, hidden: Ratings) -> float:
    gains = hidden.values - train.values.min()
    return ndcg(lists, csr_array((gains, (hidden.rows, hidden.columns)), shape=train.shape))


def ours(by: str) -> Callable[[Ratings], Any]:
    def ranked(train: Ratings) -> Any:
        best = L12Recommender().fit(train).recommend(n=N, by=by)
        return train.columns_of(best.items)

    return ranked


def most_rated(train: Ratings) -> Any:
    popularity = np.bincount(train.columns, minlength=train.shape[1]).astype(float)
    return best_columns(np.ones((train.shape[0], 1)), popularity[:, None], N, train.sparse())[0]


def implicit_als(train: Ratings) -> Any:
    from implicit.cpu.als import AlternatingLeastSquares

    def ranked(part: Ratings, factors: int, weight: float, regularization: float) -> Any:
        model = AlternatingLeastSquares(factors, regularization, alpha=weight, num_threads=1, random_state=0)
        known = csr_matrix(part.sparse(), dtype=np.float32)
        model.fit(known, show_progress=False)
        return model.recommend(np.arange(part.shape[0]), known, N)[0]

    held = np.random.default_rng(7).random(len(train)) < 0.1
    part, rest = train.part(~held), train.part(held)
    return ranked(train, *max(GRID, key=lambda options: score(ranked(part, *options), part, rest)))


METHODS = {
    "by interest": ("ell12", ours("interest")),
    "by rating": ("ell12", ours("rating")),
    "most rated": ("ell12", most_rated),
    "implicit ALS, tuned": ("implicit", implicit_als),
}


def rows() -> Iterator[Row]:
    ratings, base = movielens_100k(), 0.0
    for name, (package, ranked) in METHODS.items():
        peer, reason = load(package)
        if peer is None:
            yield Row("MovieLens 100k", name, version_of(package), note=reason)
            continue
        seconds, found = [], []
        for seed in range(DRAWS):
            hidden = np.random.default_rng(seed).random(len(ratings)) < HIDDEN
            begin = time.process_time()
            lists = ranked(ratings.part(~hidden))
            seconds.append(time.process_time() - begin)
            found.append(score(lists, ratings.part(~hidden), ratings.part(hidden)))
        spent = float(np.mean(seconds))
        base = base or spent
        note = "NDCG of the draws " + ", ".join(f"{value:.3f}" for value in found)
        yield Row("MovieLens 100k", name, version_of(package), spent, spent / base, float(np.mean(found)), note)


if __name__ == "__main__":
    study.write_rows("ranking", __doc__ or "", rows(), "by interest")
