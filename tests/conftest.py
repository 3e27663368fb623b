"""Wiring only: the plugins that every test may use; what they do is in `tests/kit`."""

from __future__ import annotations

pytest_plugins = [
    "tests.kit.database",
    "tests.kit.kernel",
    "tests.kit.oceanway.database",
    "tests.kit.orbit.database",
    "tests.kit.orbit.server",
    "tests.kit.orbit.callers",  # after what it imports: pytest rewrites the asserts of what it loads itself
    "tests.kit.orbit.scene",
    "tests.kit.orbit.schema_histories",
    "tests.kit.orbit.sdk_flavours",
    "tests.kit.pgbouncer",
    "tests.kit.sessions",
    "tests.kit.sql_files",
    "tests.kit.trace",
]
