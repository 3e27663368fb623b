"""Seapost: committed facts out of PostgreSQL, believed only with a receipt; this module holds the public names only."""
