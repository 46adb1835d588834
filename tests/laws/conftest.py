"""A time limit for each law and name: a call without an end becomes an error."""

import signal

import pytest

SECONDS = 60


@pytest.fixture(autouse=True)
def time_limit():
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def out_of_time(number, frame):
        raise TimeoutError(f"the law took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
