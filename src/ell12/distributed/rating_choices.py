"""What is taken off ratings on workers before they are completed, and how strong the penalty should be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ell12.completion.matrix_strength import alpha_of_noise
from ell12.completion.offsets import SHRINKAGE, SWEEPS, Offsets
from ell12.distributed.ratings import bias_sums, rank_one_sums, taken_off

CENTERS = (None, "mean", "biases")
# A rank-one fit ends when a pass lowers the sum of squares by less than this share. The strength is then known to
# about a thousandth, and predictions change with strengths that differ by tenths.
SETTLED = 1e-4
MOST_PASSES = 12  # It ends after this many passes at the latest.


def fit_remote_offsets(entries: Any, center: str | None) -> Offsets:
    """As `ell12.completion.offsets.fit_offsets`: biases in 11 passes, the mean in none."""
    if center is None:
        return Offsets()
    if center == "mean":
        return Offsets(entries.mean)
    columns = np.zeros(entries.shape[1], dtype=entries.values.dtype)
    for number in range(SWEEPS + 1):
        found = entries.blocks.total("biases", bias_sums, entries.mean, columns)
        if number < SWEEPS:
            sums, counts = found.sums
            columns = (sums / (np.where(counts > 0, counts, 1) + SHRINKAGE)).astype(columns.dtype)
    rows = entries.join(found.rows, np.zeros(entries.shape[0], dtype=columns.dtype))
    return Offsets(entries.mean, rows, columns)


def without_offsets(entries: Any, offsets: Offsets, persist: bool) -> Any:
    """The known entries on their workers, less the offsets."""
    rows = None if offsets.rows is None else entries.cut(offsets.rows)
    blocks = entries.blocks.changed(
        "centred", taken_off, offsets.mean, offsets.columns, each=rows, persist=persist
    )
    return replace(entries, blocks=blocks)


def remote_noise_alpha(entries: Any, max_rank: int | None, l2_weight: float) -> float:
    """As `ell12.completion.matrix_strength.noise_alpha`, from a rank-one fit of a dozen passes at most."""
    v = np.random.default_rng(0).standard_normal(entries.shape[1]).astype(entries.values.dtype)
    least = math.inf
    for _ in range(MOST_PASSES):
        products, squares, left = entries.blocks.total("rank-one", rank_one_sums, v).sums
        settled = left >= (1 - SETTLED) * least
        least = min(left, least)
        v = np.divide(products, squares, out=np.zeros_like(v), where=squares > 0)
        if settled or not v.any():
            break
    return alpha_of_noise(least, entries, max_rank, l2_weight)
