"""The producer's side: append in the caller's transaction, and the registry of delivery sets."""
