"""An experiment that behaves as it is told, for the tests of runs: each trial has a mood, and logs its number."""

import os

LOG, MOODS = "", ()


def trials(preset, seed):
    return [{"i": i, "repeat": 0, "seed": seed, "mood": mood, "log": LOG} for i, mood in enumerate(MOODS)]


def measure(settings):
    with open(settings["log"], "a") as log:
        print(settings["i"], file=log)
    if settings["mood"] == "raises":
        raise ZeroDivisionError("a fake trouble")
    if settings["mood"] == "dies":
        os._exit(3)
    if settings["mood"] == "no JSON":
        return {"value": object()}
    threads = {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")}
    return {"value": settings["i"] ** 2, "hole": float("nan"), "threads": threads}
