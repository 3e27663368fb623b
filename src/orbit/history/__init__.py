"""Histories of a run, and the checker that holds them to the promises."""
