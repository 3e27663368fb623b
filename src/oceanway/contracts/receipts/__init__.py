"""The four receipts by which the consumers prove that an event was applied."""
