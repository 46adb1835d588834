"""One small function sent to all blocks of data on Dask's workers, one sum back; a lost cluster as one error."""

from __future__ import annotations

import asyncio
import contextlib
import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import wait as futures_wait
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from dask.utils import parse_timedelta
from distributed import Client, KilledWorker, get_client, scheduler
from distributed.comm import CommClosedError

from ell12.minimization import DataUnavailable

# How long a cluster may have no worker at all: a lost one is back within seconds, a job in a queue takes minutes.
# Changed by ``dask.config.set({"ell12.no-workers-timeout": "10 min"})``.
TIMEOUT = "60 s"

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
    with reaching(client), dask.config.set(LARGE_GRAPHS):
        scheduler = getattr(dask.base.get_scheduler(), "__self__", None)  # one of Dask's settings goes first
        if client is None or not isinstance(scheduler, Client):
            return list(dask.compute(*tasks, optimize_graph=False))
        return _gathered(client, client.compute(list(tasks), optimize_graph=False))


def _gathered(client: Any, futures: list[Any]) -> list[Any]:
    """The results, which are not waited for for ever where there is no worker.

    Workers may go while they compute, and while they send what they have found: to wait for the former alone and
    then to ask for the results would leave the client with Dask, which waits until a worker comes.
    """
    limit = parse_timedelta(dask.config.get("ell12.no-workers-timeout", TIMEOUT))
    results = client.gather(futures, asynchronous=True)
    gathering = asyncio.run_coroutine_threadsafe(results, client.loop.asyncio_loop)
    seen_empty = 0
    while not futures_wait([gathering], timeout=limit / 2).done:
        is_empty = client.status == "running" and not client.nthreads()
        seen_empty = seen_empty + 1 if is_empty else 0
        if seen_empty == 3:
            client.cancel(futures)  # which ends the gathering too
            raise _unavailable(
                f"for {limit:g} seconds it has had no worker (the setting ell12.no-workers-timeout of Dask)"
            )
    return gathering.result()


def _unavailable(reason: str) -> DataUnavailable:
    return DataUnavailable(f"the Dask cluster that holds the data cannot be reached any more: {reason}")


# A short x travels with each task, which then stays with its block; a long one goes to each worker once.
SHORT = 2**16  # bytes
LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": "1GB"}  # what goes out is no mistake


class Blocks:
    """Blocks of rows, each a task of Dask that is computed now and kept if so said, and passes over them.

    Attributes
    ----------
    passes : int
        How many passes were made.
    """

    def __init__(self, blocks: Sequence[Delayed], keep: bool = False) -> None:
        self._client = active_client()  # Dask itself would go on with threads once this one is closed
        with reaching(self._client):
            self.blocks = list(dask.persist(*blocks, optimize_graph=False) if keep else blocks)
        self.passes = 0

    def total(self, *what: Any, **which: Any) -> Any:
        """The sum of `results`: one pass, in which nothing else moves.

        Neighbours are added first, as many as there are groups of them, and then the groups: so the rounding does
        not depend on which worker is done first, nor on whether one has been lost, and no worker holds much.
        """
        parts, add, key = self._tasks(*what, **which), delayed(_add, pure=False), f"ell12-sum-{uuid.uuid4().hex}"
        size = math.isqrt(len(parts) - 1) + 1
        starts = range(0, len(parts), size)
        groups = [add(parts[i : i + size], dask_key_name=f"{key}-{i}") for i in starts]
        self.passes += 1
        return compute(self._client, [add(groups, dask_key_name=key)])[0]

    def results(self, *what: Any, **which: Any) -> list[Any]:
        """``function(block_i, *arguments)`` for all blocks, not counted as a pass.

        Parameters
        ----------
        name : str
            The tasks are called ``ell12-<name>``.
        function, *arguments
            Of the task; with ``each`` it is ``function(block_i, each_i, *arguments)``.
        of : sequence of int, optional
            The numbers of some blocks.
        each : sequence, optional
            An argument for each of these blocks.
        """
        return compute(self._client, self._tasks(*what, **which))

    def _tasks(
        self, name: str, function: Callable[..., Any], *arguments: Any, of: Any = None, each: Any = None
    ) -> list[Delayed]:
        blocks = self.blocks if of is None else [self.blocks[i] for i in of]
        # What belongs to one block goes within its task: a task of its own would cost twice as much.
        own = [()] * len(blocks) if each is None else [(part,) for part in each]
        short = sum(getattr(argument, "nbytes", 0) for argument in arguments) <= SHORT
        sent = arguments if short else delayed(arguments, name=f"ell12-x-{uuid.uuid4().hex}", traverse=False)
        call, key = delayed(_call, pure=False, traverse=False), f"ell12-{name}-{uuid.uuid4().hex}"
        return [
            call(function, block, part, sent, dask_key_name=f"{key}-{i}")
            for i, (block, part) in enumerate(zip(blocks, own, strict=True))
        ]

    def loaded(self, random: Any = None) -> Iterator[tuple[int, Any]]:
        """The blocks with their numbers, brought to this process one by one, in a random order if one is given."""
        self.passes += 1
        numbers = range(len(self.blocks))
        for number in numbers if random is None else random.permutation(len(numbers)).tolist():
            yield number, compute(self._client, [self.blocks[number]])[0]

    def __repr__(self) -> str:
        return f"{len(self.blocks)} blocks"


def _call(function: Callable[..., Any], block: Any, own: tuple[Any, ...], arguments: tuple[Any, ...]) -> Any:
    return function(block, *map(_aligned, own), *map(_aligned, arguments))


def _aligned(value: Any) -> Any:
    """What came over a network may lie at an odd address: each product would copy it, and take twice as long."""
    return np.require(value, requirements="A") if isinstance(value, np.ndarray) else value


def _add(parts: list[Any]) -> Any:
    return sum(parts[1:], parts[0])
