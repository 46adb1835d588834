"""A limit of processor time for each law and name: a call without an end becomes an error."""

import signal

import pytest

SECONDS = 60


@pytest.fixture(autouse=True)
def time_limit():
    if not hasattr(signal, "SIGPROF"):
        yield
        return

    def out_of_time(number, frame):
        raise TimeoutError(f"the law took more than {SECONDS} s")

    before = signal.signal(signal.SIGPROF, out_of_time)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
