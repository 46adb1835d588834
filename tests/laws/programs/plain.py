"""Computes every case of `compiled_cases` without compiled code, and stores the answers."""

import sys
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from tests.laws.compiled_cases import CASES

    np.savez(sys.argv[1], **{name: compute() for name, (compute, _) in CASES.items()})
