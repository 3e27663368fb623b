"""The way to PostgreSQL: pools, installer, listener, embedded server and the registry of SQLSTATEs."""
