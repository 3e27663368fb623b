"""Orders and invoices with psycopg alone, in one file."""
