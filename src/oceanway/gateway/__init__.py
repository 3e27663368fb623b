"""What the providers report: evidence and its availability."""
