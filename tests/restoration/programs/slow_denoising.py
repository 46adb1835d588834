"""Denoises the same image for ever, slowly, and prints each iteration."""

import sys
import time

import numpy as np

import ell12


def stop(history):
    print(len(history["objective"]), flush=True)
    time.sleep(0.02)


ell12.denoise_tv(np.load(sys.argv[1]), 0.1, tol=0, stop=stop, checkpoint=sys.argv[2], checkpoint_seconds=0)
