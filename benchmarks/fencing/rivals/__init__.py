"""The rivals, each by the calls that its own workers make."""
