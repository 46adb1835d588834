"""The cluster in use, and its loss as one error that keeps the best iterate."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import wait as futures_wait
from typing import Any

import dask
from dask.delayed import Delayed
from dask.utils import parse_timedelta
from distributed import Client, KilledWorker, get_client, scheduler
from distributed.comm import CommClosedError

from ell12.minimization import DataUnavailable

# How long a cluster may have no worker at all: a lost one is back within seconds, a job in a queue takes minutes.
# Changed by ``dask.config.set({"ell12.no-workers-timeout": "10 min"})``.
TIMEOUT = "60 s"
LOOK = 1.0  # seconds between two looks at whether there are workers

_older_dask_lacks = ("NoValidWorkerError", "NoWorkerError")
LOST: tuple[type[Exception], ...] = (
    CancelledError,
    CommClosedError,
    KilledWorker,
    *(getattr(scheduler, name) for name in _older_dask_lacks if hasattr(scheduler, name)),
)


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
    except LOST as error:
        raise _unavailable(f"{type(error).__name__} {error}".strip()) from error


def compute(client: Any, tasks: Sequence[Delayed]) -> list[Any]:
    """What the tasks give. Raise `ell12.protocols.DataUnavailable` where they cannot be run any more."""
    with reaching(client):
        own = getattr(
            dask.base.get_scheduler(), "__self__", None
        )  # a scheduler chosen by Dask's settings goes first
        if client is None or not isinstance(own, Client):
            return list(dask.compute(*tasks, optimize_graph=False))
        futures = client.compute(list(tasks), optimize_graph=False)
        return _gathered(client, futures)


def _gathered(client: Any, futures: list[Any]) -> list[Any]:
    """The results, which are not waited for for ever where there is no worker.

    Workers may go while they compute, and while they send what they have found: to wait for the former alone and
    then to ask for the results would leave the client with Dask, which waits until a worker comes.
    """
    limit = parse_timedelta(dask.config.get("ell12.no-workers-timeout", TIMEOUT))
    gathering = asyncio.run_coroutine_threadsafe(_gather(client, futures), client.loop.asyncio_loop)
    seen = time.monotonic()
    while not gathering.done():
        futures_wait([gathering], timeout=min(LOOK, limit))
        if gathering.done() or client.status != "running" or client.nthreads():
            seen = time.monotonic()
        elif time.monotonic() - seen > limit:
            client.cancel(futures)  # which ends the gathering too
            raise _unavailable(
                f"for {limit:g} seconds it has had no worker (the setting ell12.no-workers-timeout of Dask)"
            )
    return gathering.result()


async def _gather(client: Any, futures: list[Any]) -> list[Any]:
    return await client.gather(futures, asynchronous=True)


def _unavailable(reason: str) -> DataUnavailable:
    return DataUnavailable(f"the Dask cluster that holds the data cannot be reached any more: {reason}")
