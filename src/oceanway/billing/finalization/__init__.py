"""The finalization of a reservation, once."""
