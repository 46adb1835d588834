"""Images in bands of rows (planes), in files or on workers, which images larger than memory are made of."""
