"""Attempts: manifests, eligibility, and the closing of a run's attempt set."""
