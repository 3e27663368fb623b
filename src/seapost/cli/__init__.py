"""The command line and the only composition root."""
