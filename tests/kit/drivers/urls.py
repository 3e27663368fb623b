"""The connection string of a test as the URL or settings that other libraries want; a host may be a socket's folder."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from psycopg import conninfo


def parts_of(dsn: str) -> dict[str, str]:
    """Host, port, user, password and database name; what is not said is empty."""
    given = conninfo.conninfo_to_dict(dsn)
    return {name: str(given.get(name) or "") for name in ("host", "port", "user", "password", "dbname")}


def url_of(dsn: str, scheme: str = "postgresql") -> str:
    """The URL with host and port as query parameters, which may be a folder and need no escaping there."""
    parts = parts_of(dsn)
    secret = f":{quote(parts['password'], safe='')}" if parts["password"] else ""
    query = urlencode({name: parts[name] for name in ("host", "port") if parts[name]})
    return f"{scheme}://{quote(parts['user'], safe='')}{secret}@/{parts['dbname']}?{query}"
