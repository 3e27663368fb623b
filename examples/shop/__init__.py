"""Two services on FastAPI and SQLAlchemy: orders appends, billing receives over HTTP."""
