"""Measurements of the hot path, as ratios to the raw SQL limit in one run; seconds of one machine prove nothing."""
