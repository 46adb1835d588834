"""Data beyond one machine's memory, through Dask: losses over blocks of rows that stay on their workers.

The only part of the package that imports Dask. It runs on whatever scheduler is active: threads, a LocalCluster, a
cluster by its address.
"""

from importlib import import_module

try:
    for library in ("dask.array", "dask.dataframe", "distributed"):
        import_module(library)
except ImportError as error:
    raise ImportError("data on Dask need dask and distributed: pip install 'ell12[dask]'") from error

from ell12.distributed.distributed_ratings import complete_matrix
from ell12.distributed.estimation import classification_losses, regression_losses
from ell12.distributed.far_columns import columns
from ell12.distributed.large_images import denoise_tv, inpaint_tv
from ell12.distributed.loss import SumLoss
from ell12.distributed.problems import sum_loss
from ell12.distributed.rows import accuracy, determination, map_rows

__all__ = [
    "SumLoss",
    "accuracy",
    "classification_losses",
    "columns",
    "complete_matrix",
    "denoise_tv",
    "determination",
    "inpaint_tv",
    "map_rows",
    "regression_losses",
    "sum_loss",
]
