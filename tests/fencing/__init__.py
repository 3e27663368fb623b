"""Stale words in large numbers: every verb, every driver, alone and in batches beside live ones (`make fencing`)."""
