"""The paper's image denoising, and the studies of total variation beyond it."""
