"""The cluster in use, and its loss as one error that keeps the best iterate."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, KilledWorker, get_client
from distributed.comm import CommClosedError

from ell12.protocols import DataUnavailable


def active_client() -> Client | None:
    """The client whose cluster Dask computes on; None for threads or the like."""
    try:
        return get_client()
    except ValueError:  # how Dask says that there is none
        return None


@contextlib.contextmanager
def reaching(client: Any) -> Iterator[None]:
    """Turn the loss of the scheduler, or of worker after worker, into `ell12.protocols.DataUnavailable`."""
    if client is not None and client.status != "running":
        raise _unavailable(f"its client is {client.status}")
    try:
        yield
    except (CancelledError, CommClosedError, KilledWorker) as error:
        raise _unavailable(f"{type(error).__name__} {error}".strip()) from error


def _unavailable(reason: str) -> DataUnavailable:
    return DataUnavailable(f"the Dask cluster that holds the data cannot be reached any more: {reason}")
