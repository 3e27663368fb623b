"""One Python function per SQL function; the only room with SQL text, all of it literal."""
