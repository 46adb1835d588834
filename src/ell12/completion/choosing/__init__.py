"""What "auto" stands for, and the search on hidden entries that chooses."""
