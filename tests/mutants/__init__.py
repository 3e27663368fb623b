"""Mutants: known protocol bugs, planted one at a time, each of which a named test must notice."""
