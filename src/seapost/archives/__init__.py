"""Restore archives: canonical envelopes and the facts of their delivery, in files that prove themselves."""
