"""Reservations, finalization, and the settlement of what comes later."""
