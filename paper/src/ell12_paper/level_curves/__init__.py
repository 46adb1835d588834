"""The paper's first figure: penalties in two dimensions."""
