"""
Genotypes that stay in a PLINK file
===================================

Genotypes may have more columns than memory holds. `ell12.Columns` leaves them in their file. A fit gathers the few
columns that it works with, and reads all of them now and then. The source can be any object with a ``shape``, a
``dtype`` and the methods ``block`` and ``take``. Here it reads PLINK's ``.bed`` files, in which an entry takes two
bits and may be missing.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from ell12 import Columns, L12Regressor, L12RegressorCV

# %%
# The source. A byte holds four samples, the first in the lowest bits. The bits 00, 10 and 11 mean two, one and no
# copies of an allele; 01 means missing. A table holds the four numbers of every byte. A missing entry takes the
# mean of its column.

COPIES = np.array([2.0, np.nan, 1.0, 0.0])[np.arange(256)[:, None] >> np.arange(0, 8, 2) & 3]


class Bed:
    """The columns of a PLINK .bed file."""

    dtype = np.float64

    def __init__(self, path, n_samples):
        file = np.memmap(path, np.uint8, "r")
        if bytes(file[:3]) != b"\x6c\x1b\x01":
            raise ValueError(f"{path} is no .bed file with one variant after the other")
        self.bytes = file[3:].reshape(-1, -(-n_samples // 4))
        self.shape = n_samples, len(self.bytes)

    def block(self, first, last):
        """Neighbouring columns."""
        return self.decode(self.bytes[first:last])

    def take(self, columns):
        """Some columns."""
        return self.decode(self.bytes[columns])

    def decode(self, rows):
        """One column for each row of bytes."""
        copies = COPIES[rows].reshape(len(rows), -1)[:, : self.shape[0]]
        missing = np.isnan(copies)
        known = np.maximum((~missing).sum(axis=1), 1)
        means = np.where(missing, 0.0, copies).sum(axis=1) / known
        return np.where(missing, means[:, None], copies).T


# %%
# A small simulated file: 400 samples, 10,000 variants of different frequencies, two percent missing. Ten variants
# matter.

random = np.random.default_rng(0)
n_samples, n_variants = 400, 10_000
copies = random.binomial(2, random.uniform(0.05, 0.5, (n_variants, 1)), (n_variants, n_samples))
causes = np.sort(random.choice(n_variants, 10, replace=False))
y = copies[causes].T @ random.choice([-1.0, 1.0], 10) + 0.5 * random.standard_normal(n_samples)

codes = np.where(random.random(copies.shape) < 0.02, 1, np.array([3, 2, 0])[copies]).astype(np.uint8)
path = Path(tempfile.mkdtemp()) / "study.bed"
packed = codes[:, 0::4] | codes[:, 1::4] << 2 | codes[:, 2::4] << 4 | codes[:, 3::4] << 6
path.write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
print(f"{path.stat().st_size / 1e6:.1f} MB on disk, {8e-6 * copies.size:.0f} MB as numbers of double precision")

# %%
# A fit. The columns are centred and divided by their standard deviations, without a copy. One read of the file
# finds both. The other reads find columns that are still missing in the model.

X = Columns(Bed(path, n_samples), scale=True)
model = L12Regressor(alpha=0.1).fit(X, y)
print(f"{np.count_nonzero(model.coef_)} variants chosen; all columns were read {X.reads:.1f} times")

# %%
# The strength by cross-validation. In each fold the samples that are left out have weight zero, so nothing is
# copied.

model = L12RegressorCV(alphas=20, eps=0.1, cv=4, selection="1se").fit(X, y)
found = np.flatnonzero(model.coef_)
print(f"{len(np.intersect1d(found, causes))} of 10 found among {len(found)} chosen; {X.reads:.0f} reads so far")

# %%
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.vlines(causes, *axes.set_ylim(-1.1, 1.1), color="0.85", label="matters")
axes.plot(found, model.coef_[found] / X.scales[found], "o", label="estimated effect of a copy")
axes.set_xlabel("variant")
axes.set_ylabel("effect")
axes.legend(frameon=False)
plt.show()
