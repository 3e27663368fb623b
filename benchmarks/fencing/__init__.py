"""The same stale success put to several systems, side by side: who believes it, and what becomes of the true owner."""
