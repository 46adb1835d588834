"""Data beyond one machine's memory, through Dask: losses over blocks of rows that stay on their workers.

The only part of the package that imports Dask. It runs on whatever scheduler is active: threads, a LocalCluster, a
cluster by its address.
"""

from importlib import import_module

try:
    for library in ("dask.array", "dask.dataframe", "distributed"):
        import_module(library)
except ImportError as error:
    raise ImportError("data on Dask need dask and distributed (ell12's extra dask)") from error

from ell12.distributed.dask_rows import rows_loss
from ell12.distributed.distributed_ratings import complete_matrix
from ell12.distributed.large_images import denoise_tv, inpaint_tv
from ell12.distributed.remote_columns import columns

__all__ = ["columns", "complete_matrix", "denoise_tv", "inpaint_tv", "rows_loss"]
