"""What operators see: runs, cases and timelines, folded from events."""
