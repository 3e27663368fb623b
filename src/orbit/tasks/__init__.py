"""The task platform: submission, worker claims, confirmation, recovery."""
