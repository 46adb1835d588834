import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ell12
from ell12 import Run
from ell12.minimization import Checkpoint
from ell12.minimization.run import CheckpointFile
from ell12.protocols import Solver

SLOW_RUN = Path(__file__).parent / "programs" / "slow_run.py"


@pytest.fixture
def problem():
    data = ell12.datasets.compressed_sensing(0, n_samples=50)
    return ell12.SquaredLoss(data.A, data.b), ell12.L12(0.01)


def run(problem, path, *, callback=None, seconds=60.0, resume=False, **options):
    kept = Run(callback=callback, checkpoint=Checkpoint(path, seconds, resume))
    return ell12.minimize(*problem, **{"solver": ell12.NonmonotoneAPG(), **options}, run=kept)


def saved(path, zero):
    """What a file holds."""
    return CheckpointFile(Checkpoint(path)).load(zero)


def test_a_resumed_run_ends_where_a_whole_one_does(problem, tmp_path):
    path = tmp_path / "fit.npz"
    whole = ell12.minimize(*problem, tol=1e-6)
    part = run(problem, path, tol=1e-6, max_iter=40)
    assert part.status is ell12.Status.MAX_ITER
    rest = run(problem, path, tol=1e-6, resume=True)
    assert rest.converged
    assert rest.objective == pytest.approx(whole.objective, rel=1e-9)
    assert rest.history["objective"][:41] == part.history["objective"]
    assert rest.n_iter == len(rest.history["objective"]) - 1 > 40
    assert np.all(np.diff(rest.history["seconds"]) >= 0)


def test_the_file_needs_no_pickle(problem, tmp_path):
    path = tmp_path / "fit.npz"
    result = run(problem, path, tol=1e-3)
    with np.load(path, allow_pickle=False) as file:
        assert np.array_equal(file["x.array"], result.x)
        assert file["history.objective"].tolist() == result.history["objective"]


def test_another_problem_is_refused(problem, tmp_path):
    path = tmp_path / "fit.npz"
    run(problem, path, max_iter=20)
    other = (problem[0], ell12.L12(0.02))
    with pytest.raises(ValueError, match="another problem"):
        run(other, path, resume=True)
    small = (ell12.SquaredLoss(np.eye(3), np.ones(3)), ell12.L12(0.01))
    with pytest.raises(ValueError, match=r"fit\.npz is of another problem: its x has shape .*, here it is \(3,\)"):
        run(small, path, resume=True)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"text\n"])
def test_a_broken_file_is_named(problem, tmp_path, content):
    path = tmp_path / "fit.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"fit\.npz is no checkpoint"):
        run(problem, path, resume=True)


def test_a_missing_folder_is_named_before_the_run(problem, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        run(problem, tmp_path / "nowhere" / "fit.npz")
    with pytest.raises(OSError, match="no regular file"):
        run(problem, tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="checkpoint must be a path or a Checkpoint"):
        Run(checkpoint=3)


def test_a_failing_solver_leaves_its_best_iterate(problem, tmp_path):
    path = tmp_path / "fit.npz"

    @dataclasses.dataclass(frozen=True)
    class Failing(Solver):
        def iterates(self, loss, penalty, start):
            for _, iterate in zip(range(25), ell12.NonmonotoneAPG().iterates(loss, penalty, start), strict=False):
                yield iterate
            raise ConnectionError("the cluster is gone")

    with pytest.raises(ConnectionError):
        run(problem, path, solver=Failing())
    assert len(saved(path, problem[0].start()).history["objective"]) == 26


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill -9")
@pytest.mark.parametrize("seed", range(2))
def test_kill_loses_no_more_than_the_interval(problem, tmp_path, seed):
    path, seconds = tmp_path / "fit.npz", 0.2
    command = [sys.executable, str(SLOW_RUN), str(path), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:  # A line is an iteration of ten milliseconds or more: the interval has passed twice before the kill.
            lines = [process.stdout.readline() for _ in range(np.random.default_rng(seed).integers(50, 100))]
        finally:
            process.kill()
        lines += process.stdout.readlines()
    times = {int(n): float(t) for n, t in (line.split() for line in lines if line.endswith("\n"))}
    kept = len(saved(path, problem[0].start()).history["objective"]) - 1
    last = max(times)
    assert 1 <= kept <= last + 1
    # A write is due at the first iteration after the interval; allow for one that the machine delayed.
    assert times[last] - times[min(kept, last)] <= seconds + 0.5
    assert sorted(os.listdir(tmp_path))[-1] == "fit.npz"
    assert run(problem, path, resume=True, tol=1e-4).converged


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file that was just opened
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
@pytest.mark.parametrize("seed", range(8))
def test_an_interruption_at_any_moment_leaves_a_result_and_a_whole_checkpoint(problem, tmp_path, seed):
    path, delay = tmp_path / "fit.npz", np.random.default_rng(seed).uniform(0.001, 0.2)

    def stop(history):
        if len(history["objective"]) == 2:
            # Python drops what a destructor raises, such as that of a file: one presses again.
            signal.setitimer(signal.ITIMER_REAL, delay, 5.0)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)  # which raises as Ctrl-C does
    limit = signal.setitimer(signal.ITIMER_REAL, 0)  # of pytest-timeout, which has the same timer
    try:
        result = run(problem, path, tol=0, max_iter=10**7, callback=stop, seconds=0)
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *limit)
    assert result.status is ell12.Status.STOPPED
    assert result.objective == min(result.history["objective"])
    assert len({len(column) for column in result.history.values()}) == 1
    kept = saved(path, problem[0].start())
    assert np.array_equal(kept.x, result.x)
    assert kept.history == result.history
    assert os.listdir(tmp_path) == ["fit.npz"]
    assert run(problem, path, resume=True, tol=1e-4).converged


@contextlib.contextmanager
def full_disk():
    """No file can grow, as on a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_checkpoint_that_cannot_be_written_is_an_error_before_the_run(problem, tmp_path):
    run(problem, tmp_path / "fit.npz", max_iter=3)
    before = (tmp_path / "fit.npz").read_bytes()
    called = []
    with full_disk(), pytest.raises(OSError, match=r"checkpoint: .*fit\.npz cannot be written: File too large"):
        run(problem, tmp_path / "fit.npz", callback=called.append)
    assert called == []
    assert (tmp_path / "fit.npz").read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.npz"]
    with pytest.raises(OSError, match=r"checkpoint: /dev/null cannot be written: .*no regular file"):
        run(problem, "/dev/null")


def test_a_disk_that_fills_up_costs_the_checkpoint_and_not_the_result(problem, tmp_path):
    whole = run(problem, tmp_path / "whole.npz", max_iter=30)
    with contextlib.ExitStack() as stack:

        def stop(history):
            if len(history["objective"]) == 10:
                stack.enter_context(full_disk())

        with pytest.warns(RuntimeWarning, match=r"fit\.npz does not hold the end of this run") as caught:
            result = run(problem, tmp_path / "fit.npz", max_iter=30, callback=stop, seconds=0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.array_equal(result.x, whole.x)
    assert len(saved(tmp_path / "fit.npz", problem[0].start()).history["objective"]) < 12
    assert not list(tmp_path.glob("*.part"))


def test_every_damaged_bit_is_a_clear_error_or_harmless(tmp_path):
    path = tmp_path / "fit.npz"
    loss, penalty = ell12.SquaredLoss(np.eye(3), np.array([3.0, -4.0, 0.5])), ell12.L12(1.0)
    ell12.minimize(loss, penalty, run=Run(checkpoint=path))
    content, whole = path.read_bytes(), saved(path, loss.start())
    refused = 0
    for bit in np.random.default_rng(0).permutation(8 * len(content))[:4000].tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        found, message = load(path, loss.start())
        if found is None:
            assert message.startswith(str(path)), bit
            refused += 1
        else:
            assert np.array_equal(found.x, whole.x), bit
            assert (found.objective, found.history) == (whole.objective, whole.history), bit
    assert refused > 2000


def load(path, zero):
    """What a checkpoint holds, or the words of its refusal."""
    try:
        return saved(path, zero), ""
    except ValueError as error:
        return None, str(error)


def test_several_problems_have_a_file_each():
    run = Run(checkpoint="folder/fit.npz")
    assert [run.numbered(k, 2).checkpoint.path.name for k in range(2)] == ["fit-0.npz", "fit-1.npz"]
    assert run.numbered(0, 1) is run
