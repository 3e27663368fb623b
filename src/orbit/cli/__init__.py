"""The `orbit` program: the composition root."""
