"""The proximal step alone: closed form against the numerical method."""
