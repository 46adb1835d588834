"""The processes that measure trials."""

import os
import signal
import threading
import time

import pytest

from ell12_paper.workers import _held_back


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to processes")
def test_ctrl_c_waits_until_a_worker_has_started_though_another_thread_gets_it():
    done, other = [], threading.Event()
    idle = threading.Thread(target=other.wait)  # it blocks no signal, so that the system may choose it
    idle.start()

    def start():
        with _held_back(signal.SIGINT):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            done.append(True)

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        other.set()
        idle.join()
    assert done
