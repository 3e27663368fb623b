"""Works: what an owner has decided to do later, and how each attempt at it ended."""
