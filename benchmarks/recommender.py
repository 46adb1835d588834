"""Recommendations from ratings: warm fits beside new ones, lists for all users, rare items.

A tenth of the ratings is the test. Of the rest 2 % are new: a model of the others is fitted again with them
(`refit`), beside a new fit of all. Seconds are of the processor, on one thread. `recommend` is for all users, ten
items each, the median of five calls; a last line has it for a million ratings after a rough fit. The tol of
`refit` was chosen on the first set alone. A rare item has fewer than five ratings; the last columns say for which
share of the users one comes first, with biases taken off, as is the default, and with nothing.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import study
from ell12 import L12Recommender, SpectralL12
from ell12.datasets import Ratings, synthetic_ratings
from real_ratings import movielens_100k

SETS: dict[str, Callable[[], Ratings]] = {
    "MovieLens 100k, real": movielens_100k,
    "books by seed": lambda: synthetic_ratings(1, 3000, 6000, 40_000, scale=(1, 10), mean=7.6, noise=1.4),
    "films by seed": lambda: synthetic_ratings(0, 1500, 1000, 150_000),
}
RARE = 5
HEADER = (
    "ratings", "new fit", "refit", "times faster", "RMSE, new fit", "RMSE, refit", "RMSE, biases",
    "NDCG@10, refit",
    "NDCG@10, biases", "recommend", "load", "file", "rare first, biases", "rare first, nothing",
)  # fmt: skip


def main() -> None:
    rows = [measured(name, draw()) for name, draw in SETS.items()]
    settings = {"test": 0.1, "new": 0.02, "rare": RARE, "threads": os.environ.get("OPENBLAS_NUM_THREADS")}
    tables = [study.table(HEADER, map(line, rows))]
    rows.append(lists_of_many())
    words = "6,040 users, 3,706 items, a million ratings, rank 8: ten items for each user in"
    tables.append(f"{words} {rows[-1]['recommend_seconds']:.2f} s.")
    study.write("recommender", __doc__ or "", settings, rows, tables)


def lists_of_many() -> dict[str, Any]:
    """The time of lists for as many users and items as a million of MovieLens has; the fit need not be good."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is rough
        model = L12Recommender(10.0, penalty=SpectralL12(l2_weight=0.5), max_rank=8, max_iter=3)
        model.fit(synthetic_ratings(0, 6040, 3706, 1_000_000))
    seconds = float(np.median([timed(model.recommend)[0] for _ in range(5)]))
    return {"name": "lists of many", "rank": model.completion_.x.rank, "recommend_seconds": seconds}


def measured(name: str, ratings: Ratings) -> dict[str, Any]:
    """All that is measured on one set."""
    order = np.random.default_rng(0).permutation(len(ratings))
    tenth, fiftieth = len(ratings) // 10, len(ratings) // 50
    cuts = (order[:tenth], order[tenth : tenth + fiftieth], order[tenth + fiftieth :], order[tenth:])
    test, new, old, known = (part(ratings, places) for places in cuts)
    warm = L12Recommender().fit(old)
    row: dict[str, Any] = {"name": name, "count": len(ratings), "shape": ratings.shape}
    row["refit_seconds"], _ = timed(lambda: warm.refit(new))
    row["fit_seconds"], fresh = timed(lambda: L12Recommender().fit(known))
    biases = L12Recommender(1e9, penalty=SpectralL12(l2_weight=0.0)).fit(known)
    for label, model in (("fit", fresh), ("refit", warm), ("biases", biases)):
        row |= {f"{label}_rmse": -model.score(test), f"{label}_ndcg": model.ndcg(test)}
    row["recommend_seconds"] = float(np.median([timed(warm.recommend)[0] for _ in range(5)]))
    row |= saved(warm) | {"rare_biases": rare_first(fresh), "chosen": (fresh.max_rank_, fresh.penalty_.l2_weight)}
    row["rare_nothing"] = rare_first(L12Recommender(center=None).fit(known))
    print(row, flush=True)
    return row


def part(ratings: Ratings, places: Any) -> Ratings:
    """Some of the ratings, with the ids of all."""
    places = np.sort(places)
    return replace(
        ratings, rows=ratings.rows[places], columns=ratings.columns[places], values=ratings.values[places]
    )


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def saved(model: L12Recommender) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.joblib"
        joblib.dump(model, path)
        return {"bytes": path.stat().st_size, "load_seconds": timed(lambda: joblib.load(path))[0]}


def rare_first(model: L12Recommender) -> float:
    """The share of users for whom a rare item comes first."""
    first = model.ratings_.columns_of(model.recommend(n=1, by="rating").items[:, 0])
    counts = np.bincount(model.ratings_.columns, minlength=len(model.items_))
    return float(np.mean((counts[first] > 0) & (counts[first] < RARE)))


def line(row: dict[str, Any]) -> list[str]:
    shape = f"{row['shape'][0]} x {row['shape'][1]}"
    faster = row["fit_seconds"] / row["refit_seconds"]
    errors = [f"{row[f'{label}_rmse']:.4f}" for label in ("fit", "refit", "biases")]
    ranks = [f"{row[f'{label}_ndcg']:.4f}" for label in ("refit", "biases")]
    seconds = [f"{row[f'{name}_seconds']:.2f} s" for name in ("fit", "refit", "recommend", "load")]
    rare = [f"{100 * row[f'rare_{kind}']:.1f} %" for kind in ("biases", "nothing")]
    return [
        f"{row['name']}: {row['count']}, {shape}", *seconds[:2], f"{faster:.0f}", *errors, *ranks, *seconds[2:],
        f"{row['bytes'] / 1e6:.1f} MB", *rare,
    ]  # fmt: skip


if __name__ == "__main__":
    main()
