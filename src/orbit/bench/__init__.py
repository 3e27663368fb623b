"""`orbit bench`: how fast results are confirmed and delivered, measured on a database of its own."""
