"""Frozen values and the one tree of errors; imports nothing of Seapost."""
