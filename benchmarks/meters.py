"""What the server says about itself: WAL bytes, CPU time of a backend, and its own statistics.

Counters are the same on every machine; CPU time is nearly so. Neither is a wall clock.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import psycopg

CLOCK_TICKS: Final = os.sysconf("SC_CLK_TCK")

Connection = psycopg.Connection[Any]


def wal_position(connection: Connection) -> int:
    """Bytes of write-ahead log so far, of the whole server."""
    return int(_value(connection, "select pg_current_wal_insert_lsn() - '0/0'"))


def page_images(connection: Connection) -> int:
    """Full-page images so far, of the whole server; a figure of WAL bytes is only good if none were added."""
    _ = connection.execute("select pg_stat_clear_snapshot()")
    return int(_value(connection, "select wal_fpi from pg_stat_wal"))


def wal_fsyncs(connection: Connection) -> int:
    """Flushes of the write-ahead log so far that somebody waited for, of sessions that have ended (PostgreSQL 18)."""
    _ = connection.execute("select pg_stat_clear_snapshot()")
    return int(
        _value(
            connection,
            "select coalesce(sum(fsyncs), 0) from pg_stat_io where object = 'wal' and backend_type = 'client backend'",
        )
    )


def dead_rows(connection: Connection) -> int:
    """Dead rows of the kernel's tables, as sessions that have ended reported them."""
    _ = connection.execute("select pg_stat_clear_snapshot()")
    return int(
        _value(connection, "select coalesce(sum(n_dead_tup), 0) from pg_stat_user_tables where schemaname = 'seapost'")
    )


def rows_scanned(connection: Connection, table: str) -> int:
    """Index entries and rows that scans of a kernel table have read, by sessions that have ended."""
    _ = connection.execute("select pg_stat_clear_snapshot()")
    return int(
        _value(
            connection,
            "select (select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes where relid = r.oid)"
            " + (select seq_tup_read from pg_stat_user_tables where relid = r.oid)"
            " from (select %s::regclass as oid) as r",
            f"seapost.{table}",
        )
    )


def cpu_seconds(process_id: int) -> float | None:
    """CPU time, user and system, that a process of this machine has used; None where /proc does not say."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold spaces
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def _value(connection: Connection, query: str, *arguments: object) -> Any:  # noqa: ANN401 - what the column holds
    row = connection.execute(query.encode(), arguments).fetchone()
    assert row is not None  # noqa: S101 - each of these queries has one row
    return row[0]
