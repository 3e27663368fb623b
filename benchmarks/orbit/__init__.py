"""Orbit's chapter of the report: what `orbit bench` measures, over the whole range."""
