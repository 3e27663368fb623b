"""Wiring only: the plugins that every test may use; what they do is in `tests/kit`."""

from __future__ import annotations

pytest_plugins = [
    "tests.kit.database",
    "tests.kit.kernel",
    "tests.kit.pgbouncer",
    "tests.kit.sessions",
    "tests.kit.sql_files",
    "tests.kit.trace",
]
