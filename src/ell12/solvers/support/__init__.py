"""The default solver: working sets, coordinate descent, Newton on the support, and paths from kink to kink."""
