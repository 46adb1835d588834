"""Text-like data of any size by seed: what benchmarks/huge_sparse.py fits.

Words have frequencies by a power law, rows are documents of norm 1 with tf-idf weights. The arrays of the matrix
are made once, a block of columns at a time, with indices of 64 bits: there never is a second copy of the data.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse

ROWS, COLUMNS, FULL = 847_000, 359_000, 0.001
# Words are as frequent as 1 / (rank + SHIFT)^POWER, but none is in more than MOST of the documents.
POWER, SHIFT, MOST = 0.9, 10, 0.3
WORDS = 300  # of the model that the targets come from
BLOCK = 2**21  # entries that are made, or changed, at a time


def shape_of(size: float) -> tuple[int, int]:
    """Rows and columns where the matrix has this fraction of the entries; the share of entries stays."""
    return round(ROWS * math.sqrt(size)), round(COLUMNS * math.sqrt(size))


def frequencies(columns: int, full: float) -> np.ndarray:
    """The share of documents that each word is in; their mean is ``full``."""
    shape = (np.arange(columns) + SHIFT) ** -POWER
    low, high = 0.0, MOST / shape[-1]
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if np.minimum(middle * shape, MOST).mean() > full else (middle, high)
    return np.minimum(high * shape, MOST)


def text_like(size: float, seed: int = 0) -> scipy.sparse.csc_array:
    """The documents as a matrix of columns, in an order of their own, with indices of 64 bits."""
    random = np.random.default_rng(seed)
    rows, columns = shape_of(size)
    share = random.permutation(frequencies(columns, FULL))
    draws = random.poisson(-np.log1p(-share) * rows)  # the same document drawn twice counts once
    room = int(draws.sum())
    data, indices = np.empty(room), np.empty(room, dtype=np.int64)
    indptr, norms = np.zeros(columns + 1, dtype=np.int64), np.zeros(rows)
    first = end = 0
    while first < columns:
        last = first + max(1, int(np.searchsorted(np.cumsum(draws[first : first + BLOCK]), BLOCK, side="right")))
        word = np.repeat(np.arange(last - first), draws[first:last])
        places = np.unique(word * rows + random.integers(rows, size=word.size))
        word, document = np.divmod(places, rows)
        counts = random.geometric(0.6, size=places.size)
        values = (1 + np.log(counts)) * (1 - np.log(share[first:last]))[word]
        norms += np.bincount(document, values**2, rows)
        data[end : end + places.size], indices[end : end + places.size] = values, document
        indptr[first + 1 : last + 1] = end + np.cumsum(np.bincount(word, minlength=last - first))
        first, end = last, end + places.size
    data, indices = data[:end], indices[:end]
    norms = np.sqrt(np.maximum(norms, 1e-300))
    for begin in range(0, end, BLOCK):
        data[begin : begin + BLOCK] /= norms[indices[begin : begin + BLOCK]]
    return scipy.sparse.csc_array((data, indices, indptr), shape=(rows, columns))


def targets(X: scipy.sparse.csc_array, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and labels: a linear function of some words, frequent and rare, with as much noise as signal."""
    random = np.random.default_rng(seed)
    entries = np.diff(X.indptr)
    rank = np.argsort(-entries, kind="stable")
    words = rank[np.unique(np.geomspace(1, X.shape[1] / 4, WORDS).astype(np.int64))]
    weights = random.standard_normal(words.size) / np.sqrt(np.maximum(entries[words], 1) / X.shape[0])
    score = X[:, words] @ weights
    score /= score.std()
    noise = random.standard_normal(X.shape[0])
    return score + noise, np.where(3 * (score - np.median(score)) + random.logistic(size=X.shape[0]) > 0, 1, -1)


def data_bytes(X: scipy.sparse.csc_array) -> int:
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
