"""Passes over blocks that stay on their workers: the same small thing goes out to all, one sum comes back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed, delayed

from ell12.distributed.failures import active_client, compute, reaching

SHORT = 2**16  # bytes
LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": "1GB"}  # what goes out is no mistake
FAN_IN = 8  # The results of this number of blocks are added at a time, on a worker.


class Blocks:
    """Blocks of rows, each a task of Dask, and passes over them.

    Attributes
    ----------
    passes : int
        How many passes were made.
    """

    def __init__(self, blocks: Sequence[Delayed]) -> None:
        self.blocks = list(blocks)
        self.passes = 0
        self._client = active_client()  # Dask itself would go on with threads once this one is closed

    def total(
        self, name: str, function: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None = None
    ) -> Any:
        """``sum_i function(block_i, *arguments)``: one pass, in which nothing else moves.

        With ``each``, ``function(block_i, each_i, *arguments)``.

        The tasks are called ``ell12-<name>``. The sum is a tree of fixed shape, so that its rounding does not
        depend on which worker is done first, nor on whether one has been lost.
        """
        token, parts = self._tasks(name, function, arguments, each, range(len(self.blocks)))
        add, level = delayed(_add, pure=False), 0
        while len(parts) > 1:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [add(group, dask_key_name=f"ell12-sum-{token}-{level}-{i}") for i, group in enumerate(groups)]
            level += 1
        self.passes += 1
        with dask.config.set(LARGE_GRAPHS):
            return compute(self._client, parts)[0]

    def results(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        of: Sequence[int] | None = None,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """``function(block_i, each_i, *arguments)`` for some blocks i or all, in this order; not counted."""
        _, parts = self._tasks(name, function, arguments, each, range(len(self.blocks)) if of is None else of)
        with dask.config.set(LARGE_GRAPHS):
            return compute(self._client, parts)

    def _tasks(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        each: Sequence[Any] | None,
        of: Sequence[int],
    ) -> tuple[str, list[Delayed]]:
        """One task for each of the blocks, and the token in their names."""
        token = uuid.uuid4().hex
        # A short x travels with each task; a long one goes to each worker once.
        short = sum(getattr(argument, "nbytes", 0) for argument in arguments) <= SHORT
        sent = arguments if short else delayed(arguments, name=f"ell12-x-{token}", traverse=False)
        call = delayed(_call, pure=False, traverse=False)
        parts = []
        for k, i in enumerate(of):
            own = () if each is None else (each[k],)  # within the task: one of its own would cost twice as much
            parts.append(call(function, self.blocks[i], own, sent, dask_key_name=f"ell12-{name}-{token}-{i}"))
        return token, parts

    def changed(
        self, name: str, function: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None, persist: bool
    ) -> Blocks:
        """The blocks ``function(block_i, each_i, *arguments)``, made once and kept, or anew in every pass."""
        every = range(len(self.blocks))
        _, blocks = self._tasks(name, function, arguments, [None for _ in every] if each is None else each, every)
        if persist:
            with reaching(self._client), dask.config.set(LARGE_GRAPHS):
                blocks = list(dask.persist(*blocks, optimize_graph=False))
        new = Blocks(blocks)
        new.passes = self.passes + persist
        return new

    def fetch(self, number: int) -> Any:
        """One block, brought to this process."""
        return compute(self._client, [self.blocks[number]])[0]


def _call(function: Callable[..., Any], block: Any, own: tuple[Any, ...], arguments: tuple[Any, ...]) -> Any:
    return function(block, *map(_aligned, own), *map(_aligned, arguments))


def _aligned(value: Any) -> Any:
    """What came over a network may lie at an odd address: each product would copy it, and take twice as long."""
    return np.require(value, requirements="A") if isinstance(value, np.ndarray) else value


def _add(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
