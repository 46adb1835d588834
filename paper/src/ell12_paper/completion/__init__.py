"""The paper's image completion: half of a photograph's pixels are known, the others are to be found."""
