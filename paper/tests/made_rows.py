"""Rows made up in the spirit of the paper's claims, for the tests of reports, claims and words."""

import numpy as np

from ell12.datasets import STAND_INS
from ell12_paper import findings
from ell12_paper.completion import study as completion
from ell12_paper.completion.study import IMAGES
from ell12_paper.compressed_sensing.claims import METHODS as SENSING_METHODS
from ell12_paper.compressed_sensing.claims import OURS as CLOSED_FORM
from ell12_paper.denoising import study as denoising
from ell12_paper.denoising.extras import BLUR, BOUNDS, LINES, WEIGHTS
from ell12_paper.level_curves import study as curves
from ell12_paper.rows import make_row

# Compressed sensing, level curves and the proximal step

ENVIRONMENT = {"python": "3.11.0", "numpy": "2.0", "scipy": "1.13", "ell12": "0.1", "cpu": "A <fast> CPU & more"}
ENVIRONMENT |= {"date": "2024-05-01T10:00:00+00:00", "trial_seconds": 1.5}
# As the paper has it: the closed form fastest, l1 less accurate, SCP at a larger objective.
SENSING_SECONDS = {
    "DCA": 5.0,
    "SCP": 8.0,
    "nmAPG(numerical)": 2.0,
    CLOSED_FORM: 1.0,
    "FISTA": 3.0,
    "DCA(rho=1)": 20.0,
}
SENSING_RMSE = {"FISTA": 0.09}
OBJECTIVE = {"SCP": 1.2, "FISTA": 1.5}


def sensing_rows(n_repeats=4, methods=SENSING_METHODS, setups=("stated", "calibrated"), change=None):
    """Rows of compressed sensing as the paper claims them; change(settings, results) makes them differ."""
    rows = []
    for setup in setups:
        for i in range(5):
            for repeat in range(n_repeats):
                random = np.random.default_rng([i, repeat])
                for method in methods:
                    settings = {
                        "setup": setup,
                        "i": i,
                        "alpha": 0.01 * 0.25**i,
                        "repeat": repeat,
                        "method": method,
                    }
                    settings |= {
                        "n_samples": 50,
                        "seed": repeat,
                        "tol": 1e-3,
                        "max_cpu_seconds": 60.0,
                        "max_iter": None,
                    }
                    results = sensing_results(method, i, 1 + 0.02 * random.random())
                    if change:
                        change(settings, results)
                    rows.append(make_row("compressed-sensing", settings, results, ENVIRONMENT))
    return rows


def sensing_results(method, i, noise):
    seconds, objective = SENSING_SECONDS.get(method, 0.5) * 2**i * noise, OBJECTIVE.get(method, 1.0) * noise
    path = {
        "cpu_seconds": [0.0, 0.5 * seconds, seconds],
        "objective": [9.0, 2.0, objective],
        "rmse": [1.0, 0.5, 0.1],
    }
    return {
        "seconds": seconds,
        "cpu_seconds": seconds,
        "setup_seconds": 0.01,
        "n_iter": 100,
        "status": "CONVERGED",
        "objective": objective,
        "stationarity": 9e-4,
        "rmse": SENSING_RMSE.get(method, 0.05) * noise,
        "n_nonzero": 10,
        "early": {"cpu_seconds": 0.5 * seconds, "objective": 1.1 * objective, "rmse": 0.2, "n_iter": 50},
        "history": path,
    }


def curve_rows():
    trials = curves.trials("quick", 0)
    measured = [settings | {"grid": 21} for settings in trials]
    return [make_row("level-curves", s, curves.measure(s), ENVIRONMENT) for s in measured]


def prox_rows(power=1.0, slowdown=10.0):
    rows = []
    for d in (10**k for k in range(2, 7)):
        for method, factor in (("closed-form", 1.0), ("numerical", slowdown)):
            for case, threshold in (("t = 1", 1.0), ("t near max|z|", 4.0)):
                for repeat in range(2):
                    settings = {"d": d, "method": method, "case": case, "threshold": threshold, "repeat": repeat}
                    results = {
                        "seconds": 1e-8 * factor * d**power,
                        "n_iter": 7,
                        "value": 1.0,
                        "copy_seconds": 1e-10 * d,
                    }
                    rows.append(make_row("prox", settings | {"seed": repeat}, results, ENVIRONMENT))
    return rows


def limit(method, i):
    def change(settings, results):
        if settings["method"] == method and settings["i"] == i:
            results["status"] = "STOPPED"

    return change


# Completion

PAPER = findings.paper()["completion"]
# What the paper does not print, in the spirit of what it claims.
COMPLETION_RMSE = {
    "nmAPG(block)": 1.41,
    "nmAPG(full SVD)": 1.41,
    "nuclear norm(block)": 1.75,
    "log-sum(block)": 1.5,
}
COMPLETION_SECONDS = {"LMaFit": 3.0, "nmAPG(full SVD)": 80.0, "nmAPG(block)": 1.0, "DCA(block)": 60.0}


def completion_rows(n_repeats=4, change=None, keep=None):
    """Rows as the paper claims them, but for what change(settings, results) does; keep(settings) chooses."""
    size = completion.CompletionSize(48, n_repeats, 60.0, 500, 40, 10.0, 500)
    rows = []
    for settings in planned(size):
        if keep and not keep(settings):
            continue
        random = np.random.default_rng([settings["repeat"], IMAGES.index(settings["image"])])
        results = made_results(settings, 1 + 0.02 * random.random())
        if change:
            change(settings, results)
        rows.append(make_row("completion", settings, results, {"date": "2024-05-01T10:00:00+00:00"}))
    return rows


def planned(size):
    before = dict(completion.PRESETS)
    try:
        completion.PRESETS["quick"] = size
        return completion.trials("quick", 0)
    finally:
        completion.PRESETS.update(before)


def made_results(settings, noise):
    method, image = settings["method"], settings["image"]
    rmse = PAPER["rmse_times_100"][image].get(method, [COMPLETION_RMSE.get(method, 2.0)])[0] / 100 * noise
    seconds = COMPLETION_SECONDS.get(method, PAPER["cpu_seconds"][image].get(method, [5.0])[0])
    away = abs(np.log(settings["alpha_factor"] / 0.3)) + (settings["rank"] - 19) ** 2 / 400
    rmse *= 1 + (0.1 * away if settings["study"] == "path" else 0) - 0.01 * settings["center"]
    is_shown = settings["study"] == "table" and settings["repeat"] == 0 and method in completion.PICTURED
    return {
        "seconds": seconds,
        "cpu_seconds": seconds * noise,
        "n_iter": 100,
        "status": "STOPPED",
        "is_limited": False,
        "objective": 1.0,
        "stationarity": 9e-3,
        "rank": settings["rank"] if completion.METHODS[method].parameter == "rank" else 20,
        "alpha": 0.1,
        "theta": settings["theta"] or 0.3,
        "rmse": rmse,
        "rmse_missing": 1.4 * rmse,
        "first_share": 0.93,
        "difference": completion.pack_picture(np.full((48, 48), rmse)) if is_shown else None,
        "clean": completion.pack_picture(np.full((48, 48), 0.5), 1.0) if is_shown and method == "LMaFit" else None,
    }


def change_of(method, image=None, study="table", **factors):
    """A change that multiplies results of one method."""

    def change(settings, results):
        if settings["method"] == method and settings["study"] == study and image in (None, settings["image"]):
            for name, factor in factors.items():
                results[name] = factor if isinstance(factor, bool) else results[name] * factor

    return change


# Denoising

# As the paper has it: DCA 25 times slower than AltMin, errors alike.
DENOISING_SECONDS = {"DCA": 25.0, "AltMin": 1.0, "AltMin(accurate)": 1.0, "accelerated gradient": 0.2}
DRAWN = ("Rectangles", "Discs", "Phantom")


def strength_rows(n_repeats=2, grid=(1, 8, 64), change=None):
    """Rows of the paper's study as it claims them; change(settings, results) makes them differ."""
    rows = []
    for reading, noise in denoising.READINGS.items():
        for image in STAND_INS:
            for i in grid:
                for repeat in range(n_repeats):
                    for method in denoising.METHODS:
                        settings = {"study": "strengths", "setup": reading, "image": image, "i": i}
                        settings |= {"alpha": 0.02 * i, "noise": noise, "repeat": repeat, "method": method}
                        settings |= {"size": 96, "seed": repeat, "max_iter": 100}
                        results = strength_results(method, i, 1 + 0.01 * repeat)
                        if image == "Mountain" and repeat == 0:
                            results["difference"] = ["00ff80", "102030"]
                        if change:
                            change(settings, results)
                        rows.append(make_row("denoising", settings, results, {}))
    return rows


def strength_results(method, i, noise):
    seconds, rmse = DENOISING_SECONDS[method] * noise, 0.05 + 0.01 * abs(np.log2(i / 8)) * noise
    end = {"n_iter": 30, "cpu_seconds": seconds, "rmse": rmse}
    early = {"n_iter": 10, "cpu_seconds": 0.5 * seconds, "rmse": 1.01 * rmse}
    return {
        "status": "CONVERGED",
        "n_iter": 30,
        "cpu_seconds": seconds,
        "objective": 2.0,
        "smoothed_objective": 1.0,
        "rmse": rmse,
        "psnr": 25.0,
        "rmse_noisy": 0.1,
        "rules": {"loose": early, "strict": end},
        "difference": [],
    }


def extra_rows(gain=lambda image, weight: weight, lines=lambda weight, bounds: 8 - 2 * weight):
    """Rows in which a weight improves the PSNR by so many dB, and needs so many lines."""
    rows = []
    for image in (*STAND_INS, *DRAWN):
        for study, weights in ((WEIGHTS, (0.0, 0.5, 1.0)), (BLUR, (0.0, 0.5, 1.0))):
            for weight in weights:
                settings = {
                    "study": study,
                    "image": image,
                    "l2_weight": weight,
                    "repeat": 0,
                    "seed": 0,
                    "size": 96,
                }
                results = {"alpha": 0.05, "psnr": 30.0 + gain(image, weight), "psnr_given": 26.0, "tried": []}
                rows.append(make_row("denoising", settings, results, {}))
    for bounds in BOUNDS:
        for weight in (0.0, 0.5, 1.0):
            for count in range(5, 10):
                settings = {"study": LINES, "lines": count, "l2_weight": weight, "bounds": bounds, "size": 64}
                error = 1e-5 if count >= lines(weight, bounds) else 0.1
                rows.append(make_row("denoising", settings, {"relative_error": error, "measured": 0.1}, {}))
    return rows


def unfinished(method, rule):
    def change(settings, results):
        if settings["method"] == method and settings["i"] == 8 and settings["repeat"] == 0:
            results["rules"][rule] = None

    return change
