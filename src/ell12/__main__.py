"""``python -m ell12`` is the command ``ell12``."""

from ell12.cli import main

if __name__ == "__main__":  # not in the processes that an experiment starts
    main()
