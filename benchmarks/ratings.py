"""Ratings predicted with default arguments, next to cmfrec with biases whose rank and strength are tuned.

The real hundred thousand of MovieLens, and synthetic sets that imitate real ones in size, in how unequally users
rate and items are rated, and in the share of biases, factors and noise; of each, several draws. A fifth of the
ratings is hidden from all methods, items and users that have no other among them. cmfrec (double precision, one
thread) tries ranks and strengths on a tenth of the rest, and fits all of the rest with the best. L12Imputer() and
what `ell12 complete` fits get nothing but the rest. The column of objectives holds the RMSE on the hidden ratings,
predictions cut to their range, averaged over the draws. Targets: at most 0.5 % above cmfrec's in at most its time;
L12Imputer("noise") at most 0.5 % above L12Imputer(). Times are processor time, the choices included, and averaged
too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np

import ell12
import study
from ell12.datasets import Ratings, load_ratings
from study import CLOCK, Row, load, version_of

BASELINE = "cmfrec"
SMALL = os.environ.get("ELL12_SMALL_BENCHMARK") == "1"  # to try the script
DRAWS = 1 if SMALL else 2
LARGE = 500_000  # ratings, from which one draw and a shorter grid for cmfrec must do
RANKS = (3, 10) if SMALL else (3, 6, 10, 30)
STRENGTHS = (4, 12, 35) if SMALL else (2, 4, 7, 12, 20, 35, 60, 100)
HIDDEN = 0.2


@dataclass(frozen=True)
class Kind:
    """A kind of ratings: sizes, how unequal users and items are, deviations of the parts, and the scale."""

    name: str
    n_users: int
    n_items: int
    count: int
    user_spread: float = 1.0  # the deviation of the logarithm of a user's activity
    item_spread: float = 1.6
    users: float = 0.45  # the deviations of biases, factors and noise
    items: float = 0.55
    factors: float = 0.45
    noise: float = 0.85
    rank: int = 20
    decay: float = 1.0  # the k-th factor is as strong as k ** -decay
    scale: tuple[float, float] = (1.0, 5.0)
    step: float | None = 1.0
    mean: float = 3.5
    is_real: bool = False  # the draws then differ in what is hidden


KINDS = (
    Kind("MovieLens 100k, real", 943, 1682, 100_000, is_real=True),
    Kind("ML-100k", 943, 1682, 100_000),
    Kind("ML-100k, few strong factors", 943, 1682, 100_000, factors=0.6, rank=6, decay=0.7, noise=0.8),
    Kind("ML latest small", 610, 9700, 100_000, 1.1, 1.9, 0.4, 0.5, noise=0.8, scale=(0.5, 5), step=0.5),
    Kind("small", 600, 350, 20_000, item_spread=1.2),
    Kind("small, no factors", 800, 600, 30_000, factors=0.0),
    Kind("small, a third known", 300, 200, 24_000, 0.6, 0.6, factors=0.6),
    Kind("FilmTrust", 1508, 2071, 35_000, 0.9, 2.0, 0.4, 0.4, 0.3, 0.7, scale=(0.5, 4), step=0.5, mean=3.0),
    Kind("books", 3000, 6000, 40_000, 1.2, 1.2, 0.8, 0.6, 0.4, 1.4, scale=(1, 10), mean=7.6),
    Kind("Jester", 5000, 100, 250_000, 0.5, 0.4, 2.2, 1.3, 2.5, 3.8, 10, 1.0, (-10, 10), None, 0.8),
    Kind("ML-1M", 6040, 3700, 1_000_000, factors=0.5),
)


def movielens_100k() -> Ratings:
    """100,000 ratings, 943 users, 1,682 films (Harper & Konstan, doi:10.1145/2827872), carried by recbole."""
    path = distribution("recbole").locate_file("recbole/dataset_example/ml-100k/ml-100k.inter")
    names: Any = ("user_id:token", "item_id:token", "rating:float")
    return load_ratings(str(path), columns=names, separator="\t")


def draw(kind: Kind, seed: int) -> ell12.Observed:
    """Ratings of a kind by seed; popular items are a little better, and some users are noisier than others."""
    if kind.is_real:
        real = movielens_100k()
        return ell12.Observed(real.rows, real.columns, real.values, real.shape)
    random = np.random.default_rng(seed)
    activity, popularity = random.standard_normal(kind.n_users), random.standard_normal(kind.n_items)
    weights = [np.exp(kind.user_spread * activity), np.exp(kind.item_spread * popularity)]
    flat = np.empty(0, dtype=np.int64)
    while flat.size < kind.count:
        drawn = [random.choice(w.size, 2 * kind.count, p=w / w.sum()) for w in weights]
        flat = np.union1d(flat, drawn[0] * kind.n_items + drawn[1])
    users, items = np.divmod(random.permutation(flat)[: kind.count], kind.n_items)
    strengths = np.arange(1, kind.rank + 1.0) ** -kind.decay
    strengths *= kind.factors / np.linalg.norm(strengths)
    W, H = (random.standard_normal((size, kind.rank)) for size in (kind.n_users, kind.n_items))
    values = kind.mean + kind.users * random.standard_normal(kind.n_users)[users]
    values += (kind.items * random.standard_normal(kind.n_items) + 0.1 * popularity)[items]
    values += np.einsum("ij,ij->i", W[users] * strengths, H[items])
    values += (
        kind.noise * np.exp(0.2 * random.standard_normal(kind.n_users))[users] * random.standard_normal(kind.count)
    )
    if kind.step is not None:
        values = np.round(values / kind.step) * kind.step
    return ell12.Observed(users, items, np.clip(values, *kind.scale), (kind.n_users, kind.n_items))


def rows() -> Iterator[Row]:
    for kind in [kind for kind in KINDS if not SMALL or kind.count <= 24_000]:
        try:
            draw(kind, 0)
        except PackageNotFoundError as reason:
            yield Row(kind.name, "L12Imputer()", version_of("ell12"), note=str(reason))
            continue
        fits = [one_draw(kind, seed) for seed in range(1 if kind.count > LARGE else DRAWS)]
        base = None
        for method in methods():
            found = [fit[method] for fit in fits]
            if isinstance(found[0], str):
                yield Row(kind.name, method, version_of(package(method)), note=found[0])
                continue
            seconds, rmse = (float(np.mean([fit[k] for fit in found])) for k in range(2))
            base = base or seconds
            note = "; ".join(fit[2] for fit in found)
            if method != BASELINE and not isinstance(fits[0][BASELINE], str):
                above = [100 * (fit[method][1] / fit[BASELINE][1] - 1) for fit in fits]
                note = f"RMSE {', '.join(f'{a:+.2f} %' for a in above)} to cmfrec's; {note}"
            size = f"{kind.name}: {kind.n_users} x {kind.n_items}, {kind.count} ratings"
            yield Row(size, method, version_of(package(method)), seconds, seconds / base, rmse, note)


def package(method: str) -> str:
    return "cmfrec" if method == BASELINE else "ell12"


def methods() -> dict[str, Callable[[Any], tuple[Callable[[Any, Any], Any], str] | str]]:
    """From the ratings to fit to predictions for pairs and a note; or the reason why there are none."""
    return {
        BASELINE: tuned_cmfrec,
        "L12Imputer()": imputer,
        "ell12 complete": command,
        'L12Imputer("noise")': noise,
    }


def one_draw(kind: Kind, seed: int) -> dict[str, Any]:
    """Of each method the time, the error and a note."""
    observed = draw(kind, seed)
    hidden = np.random.default_rng(100 + seed).random(observed.n_observed) < HIDDEN
    train, test = observed.select(~hidden), observed.select(hidden)
    found: dict[str, Any] = {}
    for name, fit in methods().items():
        begin = CLOCK()
        fitted = fit(train)
        seconds = CLOCK() - begin
        found[name] = fitted if isinstance(fitted, str) else (seconds, error(fitted[0], train, test), fitted[1])
    return found


def error(predict: Callable[[Any, Any], Any], train: Any, test: Any) -> float:
    predicted = np.clip(predict(test.rows, test.columns), train.values.min(), train.values.max())
    return float(np.sqrt(np.mean((predicted - test.values) ** 2)))


def tuned_cmfrec(train: Any) -> Any:
    peer, reason = load("cmfrec")
    if peer is None:
        return reason
    chosen = np.random.default_rng(7).random(train.n_observed) < 0.1
    fit_to, judge = train.select(~chosen), train.select(chosen)
    ranks = (10,) if train.n_observed > LARGE else RANKS
    grid = {
        (rank, strength): error(cmfrec(peer, fit_to, rank, strength).predict, train, judge)
        for rank in ranks
        for strength in STRENGTHS
    }
    rank, strength = min(grid, key=lambda pair: grid[pair])
    return cmfrec(peer, train, rank, strength).predict, f"k {rank}, lambda {strength}"


def cmfrec(peer: Any, train: Any, rank: int, strength: float) -> Any:
    model = peer.CMF(k=rank, lambda_=strength, nthreads=1, use_float=False, verbose=False, random_state=0)
    return model.fit(train.sparse().tocoo())


def imputer(train: Any, alpha: str | None = None) -> Any:
    model = ell12.L12Imputer(alpha, random_state=0).fit(train.sparse())
    return model.predict, f"{model.center_}, {model.penalty_}, rank {model.completion_.x.rank}"


def noise(train: Any) -> Any:
    return imputer(train, "noise")


def command(train: Any) -> Any:
    """What `ell12 complete` fits."""
    model = ell12.L12Recommender().fit(train.sparse())
    return model.predict, f"{model.center_}, {model.penalty_}, rank {model.completion_.x.rank}"


if __name__ == "__main__":
    study.write_rows("ratings", __doc__ or "", rows(), BASELINE)
