"""What operators ask: streams, subscriptions, and sessions that hold others up (OPS-06, F51, F77, F83).

Only reads, each bounded: the view `orbit.subscription_status` counts up to the window, the sessions are those of this
database and at most a hundred. Looking must never cost the database more than a moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeVar

from psycopg.rows import class_row

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.AsyncConnection[Any]

RecordT = TypeVar("RecordT")

ROWS_MAX: Final = 1_000
"""Subscriptions shown at once; a namespace has at most 64."""
OLD_SNAPSHOT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One namespace: sequences are committed and gapless, so `results` is exact without counting."""

    namespace: str
    namespace_id: str
    last_sequence: int
    retained_from_sequence: int
    results: int


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """One subscription; `reason` says why nothing moves, and is None while something does.

    `cursor_sequence` is how far the journal has been scanned, not what was acknowledged (SUB-16).
    """

    namespace: str
    subscription_id: str
    name: str
    queue: str | None
    status: str
    revision: int
    last_sequence: int | None
    retained_from_sequence: int | None
    cursor_sequence: int
    lag: int | None
    pending_count: int
    max_pending: int | None
    ready: int
    leased: int
    overdue: int
    expired: int
    next_available_at: datetime | None
    last_claimed_at: datetime | None
    unscanned_since: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class WaitRecord:
    """A session that waits for a lock, and one that it waits for; pid 0 is a prepared transaction."""

    process_id: int
    application: str | None
    waiting_seconds: float
    holder_process_id: int
    holder_application: str | None
    holder_state: str | None
    holder_transaction_seconds: float | None


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """A session whose snapshot is older than a minute: no row version that it may see can be removed."""

    process_id: int
    application: str | None
    state: str | None
    transaction_seconds: float


_STREAMS: Final = """
    select namespace, namespace_id, last_sequence, retained_from_sequence, results from orbit.stream_status
    where %(namespace)s::text is null or namespace = %(namespace)s
    order by namespace limit %(rows)s"""

_SUBSCRIPTIONS: Final = """
    select namespace, subscription_id, name, queue, status, revision, last_sequence, retained_from_sequence,
        cursor_sequence, lag, pending_count, max_pending, ready, leased, overdue, expired, next_available_at,
        last_claimed_at, unscanned_since, reason
    from orbit.subscription_status
    where %(namespace)s::text is null or namespace = %(namespace)s
    order by namespace, name limit %(rows)s"""

_WAITS: Final = """
    select w.pid as process_id, w.application_name as application,
        extract(epoch from clock_timestamp() - w.query_start)::float8 as waiting_seconds, h.pid as holder_process_id,
        b.application_name as holder_application, b.state as holder_state,
        extract(epoch from clock_timestamp() - b.xact_start)::float8 as holder_transaction_seconds
    from (select pid, application_name, query_start from pg_catalog.pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' order by query_start limit 100) as w
    cross join lateral unnest(pg_blocking_pids(w.pid)) as h(pid)
    left join pg_catalog.pg_stat_activity as b on b.pid = h.pid
    order by w.query_start"""

_SNAPSHOTS: Final = """
    select pid as process_id, application_name as application, state,
        extract(epoch from clock_timestamp() - xact_start)::float8 as transaction_seconds
    from pg_catalog.pg_stat_activity
    where datname = current_database() and backend_xmin is not null and pid <> pg_backend_pid()
      and xact_start <= clock_timestamp() - make_interval(secs => %(seconds)s)
    order by xact_start limit 10"""


async def streams(connection: Connection, namespace: str | None) -> list[StreamRecord]:
    """Each namespace's head and retained boundary."""
    return await _records(connection, StreamRecord, _STREAMS, {"namespace": namespace, "rows": ROWS_MAX})


async def subscriptions(connection: Connection, namespace: str | None) -> list[SubscriptionRecord]:
    """Each subscription, and why it stands still."""
    return await _records(connection, SubscriptionRecord, _SUBSCRIPTIONS, {"namespace": namespace, "rows": ROWS_MAX})


async def waits(connection: Connection) -> list[WaitRecord]:
    """Who waits for a lock in this database, and for whom; seen in full only by members of pg_read_all_stats."""
    return await _records(connection, WaitRecord, _WAITS, {})


async def snapshots(
    connection: Connection, *, older_than_seconds: float = OLD_SNAPSHOT_SECONDS
) -> list[SnapshotRecord]:
    """Sessions with a snapshot older than a minute, oldest first."""
    return await _records(connection, SnapshotRecord, _SNAPSHOTS, {"seconds": older_than_seconds})


async def _records(
    connection: Connection, record: type[RecordT], query: LiteralString, arguments: dict[str, object]
) -> list[RecordT]:
    async with connection.cursor(row_factory=class_row(record)) as cursor:
        return await (await cursor.execute(query, arguments)).fetchall()
