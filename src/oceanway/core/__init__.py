"""Admission: the run and the reservation of its wallet."""
