"""Commands beyond the experiments: one file per group of them, each with a function ``add_to(application)``."""


class CommandError(Exception):
    """Why a command cannot begin, in one line for its user."""
