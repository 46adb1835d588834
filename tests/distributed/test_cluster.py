"""Losses on a cluster of two worker processes, and what happens when parts of it are lost."""

import os
import signal
import threading

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from ell12 import (
    L12,
    HuberLoss,
    L12Classifier,
    L12Regressor,
    LogisticLoss,
    NonmonotoneAPG,
    Run,
    SpectralL12,
    SquaredLoss,
    Status,
    complete_matrix,
    minimize,
)
from ell12.completion import AlternatingLeastSquares
from ell12.distributed import columns, denoise_tv, rows_loss
from ell12.distributed import complete_matrix as distributed_completion
from ell12.minimization import DataUnavailable
from ell12.protocols import Solver

ROWS, CHUNK, PENALTY = 300, 60, L12(0.05, 0.5)
QUIET = {"dashboard_address": ":0", "silence_logs": 50}
_random = np.random.default_rng(0)
A = _random.standard_normal((ROWS, 6))
B = A @ [2.0, -1.0, 0.0, 0.0, 0.5, 0.0] + 0.1 * _random.standard_normal(ROWS)


class WhereWorkersAreKilled(LocalCluster):
    """Dask fails on closing a cluster where a worker was gone before it was listed, or waits; here it does not."""

    def close(self, timeout=60):
        return super().close(timeout)

    def _update_worker_status(self, op, msg):
        if op != "remove" or msg in self.scheduler_info["workers"]:
            super()._update_worker_status(op, msg)


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "1GB"}
    with WhereWorkersAreKilled(**options, **QUIET) as cluster, Client(cluster) as c:
        yield c


def chunked(values):
    return da.from_array(values, chunks=(CHUNK, *values.shape[1:]))


def at_iteration(n, action):
    """A ``stop`` that does something once and never stops."""

    def stop(history):
        if len(history["objective"]) == n:
            action()
        return False

    return stop


def killing(client, n):
    """A callback that kills a worker in the n-th iteration."""
    victim = next(iter(client.run(os.getpid).values()))
    return at_iteration(n, lambda: os.kill(victim, signal.SIGKILL)), victim


def wait_for_both(client):
    """Wait until a killed worker is replaced; on a busy machine its nanny may have given up."""
    try:
        client.wait_for_workers(2, timeout=30)
    except TimeoutError:
        client.restart(timeout=60)


def test_blocks_stay_on_both_workers_and_tasks_have_names(client):
    loss = rows_loss(HuberLoss, chunked(A), chunked(B), scale=1 / ROWS)
    loss.value(loss.point(loss.start()))
    before = client.who_has(loss.blocks.blocks)
    result = minimize(loss, PENALTY, tol=1e-9)
    near = minimize(HuberLoss(A, B, scale=1 / ROWS), PENALTY, tol=1e-9)
    np.testing.assert_allclose(result.x, near.x, rtol=0, atol=1e-8)
    assert len(before) == ROWS // CHUNK
    assert len({worker for holders in before.values() for worker in holders}) == 2
    assert client.who_has(loss.blocks.blocks) == before
    prefixes = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {"ell12-block", "ell12-gradient", "ell12-moments", "ell12-sum"} <= prefixes


def test_completion_goes_on_when_a_worker_is_killed(client):
    random = np.random.default_rng(0)
    known = random.random((60, 30)) < 0.4
    X = random.standard_normal((60, 2)) @ random.standard_normal((2, 30))
    table = pd.DataFrame(np.argwhere(known), columns=["user", "item"]).assign(value=X[known])
    ratings = dd.from_pandas(table.set_index("user", drop=False), npartitions=4)
    run = Run(callback=killing(client, 3)[0])
    far = distributed_completion(ratings, 5.0, max_rank=3, shape=X.shape, tol=1e-8, run=run)
    plain = {"center": "biases", "penalty": SpectralL12(l2_weight=0.5), "scale": None, "max_rank": 3}
    near = complete_matrix(np.where(known, X, np.nan), 5.0, solver=AlternatingLeastSquares(3), tol=1e-8, **plain)
    assert far.converged
    np.testing.assert_allclose(far.to_array(), near.to_array(), rtol=0, atol=1e-8)
    wait_for_both(client)


WIDE = np.random.default_rng(1).integers(0, 3, (40, 600)).astype(np.int8)
PERSISTED = {"gram": False, "scale": 1 / ROWS}
# The loss on workers, the same in memory, the penalty, and when a worker is killed.
KILLED = {
    "rows kept": (
        lambda: rows_loss(SquaredLoss, chunked(A), chunked(B), persist=True, **PERSISTED),
        SquaredLoss(A, B, scale=1 / ROWS),
        PENALTY,
        4,
    ),
    "rows made anew": (
        lambda: rows_loss(SquaredLoss, chunked(A), chunked(B), persist=False, **PERSISTED),
        SquaredLoss(A, B, scale=1 / ROWS),
        PENALTY,
        4,
    ),
    "columns": (
        lambda: SquaredLoss(columns(da.from_array(WIDE, chunks=(40, 100)), persist=True), B[:40]),
        SquaredLoss(WIDE.astype(float), B[:40]),
        L12(8.0, 0.0),
        2,
    ),
}


@pytest.mark.parametrize("name", KILLED)
def test_a_killed_worker_does_not_change_the_solution(client, name):
    make, near, penalty, n = KILLED[name]
    loss = make()
    kill, victim = killing(client, n)
    result = minimize(loss, penalty, tol=1e-9, run=Run(callback=kill))
    assert result.converged
    assert result.n_iter > n
    np.testing.assert_allclose(result.x, minimize(near, penalty, tol=1e-9).x, rtol=0, atol=1e-8)
    undisturbed = minimize(loss, penalty, tol=1e-9)
    assert np.array_equal(result.x, undisturbed.x)  # to the last bit
    assert result.history["objective"] == undisturbed.history["objective"]
    assert victim not in client.run(os.getpid).values()  # and what it held was made again
    wait_for_both(client)


def test_columns_that_kill_every_worker_are_given_up(client):
    X = columns(
        da.map_blocks(os._exit, 1, chunks=((5,), (3, 3)), dtype=float, meta=np.ones((0, 0))), persist=False
    )
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    with pytest.raises(DataUnavailable, match="KilledWorker"):
        X.T @ np.ones(5)
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
    wait_for_both(client)


class Closing(Solver):
    """nmAPG, during whose fifth iteration the cluster is lost."""

    def __init__(self, cluster):
        self.cluster = cluster

    def iterates(self, *problem):
        for n, iterate in enumerate(NonmonotoneAPG().iterates(*problem)):
            if n == 4:
                self.cluster.close()
            yield iterate


LOCAL = {"threads_per_worker": 1, "processes": False, **QUIET}


def test_a_lost_scheduler_is_an_error_that_holds_the_best_iterate():
    with LocalCluster(n_workers=1, **LOCAL) as cluster, Client(cluster):
        model = L12Classifier(0.05, solver=Closing(cluster))
        with pytest.raises(DataUnavailable, match="cannot be reached any more") as caught:
            model.fit(chunked(A + 1), chunked(B > 0))
    result = caught.value.result
    assert result.status is Status.DATA_LOST
    assert result.n_iter == 5
    near = LogisticLoss(np.column_stack([A + 1, np.ones(ROWS)]), np.sign(B), scale=1 / ROWS)
    x = np.append(caught.value.coef, caught.value.intercept)
    reached = near.value(near.point(x)) + PENALTY.value(caught.value.coef)
    assert reached == pytest.approx(min(result.history["objective"]), rel=1e-12)
    assert reached < near.value(near.point(near.start()))


def test_a_cluster_without_workers_is_an_error_after_a_while():
    ratings = dd.from_pandas(pd.DataFrame({"user": [0, 1], "item": [0, 1], "value": [1.0, 2.0]}), npartitions=1)
    fits = (
        lambda: L12Regressor(0.1).fit(chunked(A), chunked(B > 0)),
        lambda: L12Classifier(0.1).fit(chunked(A), chunked(B > 0)),
        lambda: distributed_completion(ratings),
        lambda: denoise_tv(chunked(A)),
        lambda: minimize(SquaredLoss(columns(chunked(A)), B), PENALTY),
    )
    short = dask.config.set({"ell12.no-workers-timeout": "0.3 s"})
    with LocalCluster(n_workers=0, **LOCAL) as cluster, Client(cluster), short:
        for fit in fits:
            with pytest.raises(DataUnavailable, match=r"for 0\.3 seconds it has had no worker"):
                fit()


def test_a_worker_that_comes_late_is_waited_for():
    with LocalCluster(n_workers=0, **LOCAL) as cluster, Client(cluster):
        timer = threading.Timer(2.0, cluster.scale, [1])
        timer.start()
        assert L12Regressor(0.1).fit(chunked(A), chunked(B)).score(chunked(A), chunked(B)) > 0.9
        timer.join()


LEFT = {
    "rows": lambda: rows_loss(HuberLoss, chunked(A), chunked(B), scale=1 / ROWS),
    "columns": lambda: HuberLoss(columns(da.from_array(A, chunks=(ROWS, 2))), B, scale=1 / ROWS),
}


@pytest.mark.parametrize("name", LEFT)
def test_where_the_last_worker_goes_the_best_iterate_is_kept(name):
    short = dask.config.set({"ell12.no-workers-timeout": 0.5})
    with LocalCluster(n_workers=1, **LOCAL) as cluster, Client(cluster), short:
        leave = at_iteration(4, lambda: cluster.sync(cluster.workers[0].close))
        run = Run(callback=leave, max_seconds=20)
        with pytest.raises(DataUnavailable, match="no worker") as caught:
            minimize(LEFT[name](), PENALTY, solver=NonmonotoneAPG(), tol=1e-9, run=run)
    assert caught.value.result.status is Status.DATA_LOST
    assert caught.value.result.n_iter >= 3
