"""Owner reads: one question about one fact, with a token bound to its arguments."""
