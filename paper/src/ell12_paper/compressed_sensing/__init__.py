"""The paper's compressed sensing: how long each method needs, and how well x is recovered."""
