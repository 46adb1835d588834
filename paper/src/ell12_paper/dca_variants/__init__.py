"""What the DCA of the paper may have been: its open choices, and what each costs."""
