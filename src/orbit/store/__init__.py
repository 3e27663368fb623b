"""One Python function for each SQL function of the schema `orbit`; the only room with SQL strings."""
