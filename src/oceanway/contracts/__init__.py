"""What the owners agree on: events, facts, works, receipts, owner reads and the release definition."""
