"""What is measured: moments that facts carry, and the counters of the server."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from psycopg import Connection

_CLOSED: Final = """
select aggregate_id, created_at from seapost.event
where event_type = 'execution.run-finalization.closed@1' and aggregate_id = any(%s)"""
_SETTLED: Final = """
select r.run_id, e.created_at from billing.finalization_fact as f
join billing.reservation as r using (billing_reservation_id)
join seapost.event as e on e.event_id = f.finalization_committed_event_id
where r.run_id = any(%s)"""
_ADMITTED: Final = "select min(admitted_at) from billing.reservation where run_id = any(%s)"
_COUNTERS: Final = """
select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'), sum(xact_commit + xact_rollback)
from pg_catalog.pg_stat_database where datname = any(%s)"""
_HAS_STATEMENTS: Final = """
select 'pg_stat_statements' = any(string_to_array(current_setting('shared_preload_libraries'), ','))"""
_STATEMENTS: Final = """
select coalesce(sum(s.calls), 0) from pg_stat_statements as s join pg_catalog.pg_database as d on d.oid = s.dbid
where d.datname = any(%s) and s.toplevel"""


def closed_at(execution: Connection[Any], runs: list[str]) -> dict[str, datetime]:
    """When each of these runs was closed."""
    return dict(execution.execute(_CLOSED, (runs,)).fetchall())


def settled_at(billing: Connection[Any], runs: list[str]) -> dict[str, datetime]:
    """When each of these runs was settled; those that are not are missing."""
    return dict(billing.execute(_SETTLED, (runs,)).fetchall())


def admitted_at(billing: Connection[Any], runs: list[str]) -> datetime | None:
    """When the first of these runs was admitted."""
    row = billing.execute(_ADMITTED, (runs,)).fetchone()
    return None if row is None else row[0]


def counters(connection: Connection[Any], databases: list[str]) -> tuple[int, int]:
    """Bytes of WAL that the server has written, and transactions of these databases."""
    row = connection.execute(_COUNTERS, (databases,)).fetchone()
    assert row is not None  # noqa: S101 - an aggregate has one row
    return int(row[0]), int(row[1] or 0)


def count_statements(connection: Connection[Any]) -> bool:
    """Make statements countable, where the server has the library loaded."""
    row = connection.execute(_HAS_STATEMENTS).fetchone()
    if row is None or not row[0]:
        return False
    _ = connection.execute("create extension if not exists pg_stat_statements")
    return True


def statements(connection: Connection[Any], databases: list[str]) -> int:
    """Statements that clients have sent to these databases: one round trip each."""
    row = connection.execute(_STATEMENTS, (databases,)).fetchone()
    return 0 if row is None else int(row[0])
