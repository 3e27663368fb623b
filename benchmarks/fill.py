"""Big tables in little time: events that wait, and events that are finished, written straight into the tables.

Only for measuring and for tests of plans: what is written here went through none of the checks of append. Ids are
UUIDv7, one per row and rising, so that the tables have the order that they get from appends; the oldest are from
`AGE_SECONDS` ago.
"""

from __future__ import annotations

from typing import Any, Final, LiteralString

import psycopg

AGE_SECONDS: Final = 86_400
CHUNK: Final = 200_000

_SOURCE: Final = """
    create temporary table if not exists filled (
        event_id uuid, moment timestamptz, envelope bytea, digest bytea);
    truncate filled"""

_ROWS: Final = """
    insert into filled
    select (lpad(to_hex(m.milliseconds), 12, '0') || '7' || lpad(to_hex(n & 4095), 3, '0')
            || 'b' || lpad(to_hex(n), 15, '0'))::uuid,
        to_timestamp(m.milliseconds / 1000.0), e.envelope, sha256(e.envelope)
    from generate_series(%(first)s::bigint, %(last)s::bigint) as n
    cross join lateral (select (extract(epoch from now()) * 1000)::bigint - %(age)s * 1000
        + n * %(age)s * 1000 / (%(total)s + 1)) as m (milliseconds)
    cross join lateral (select convert_to(rpad(n::text, %(size)s, 'x'), 'UTF8')) as e (envelope)"""

_EVENTS: Final = """
    insert into seapost.event (event_id, definition_id, mandatory_count, created_at, occurred_at, aggregate_revision,
        event_type, schema_version, aggregate_kind, aggregate_id, envelope)
    select f.event_id, m.definition_id, 1, f.moment, f.moment, 1, m.event_type, m.schema_version, 'filled', 'filled-1',
        f.envelope
    from filled as f cross join seapost.delivery_set_member as m where m.member_id = %(member)s"""

_DELIVERIES: Final = """
    insert into seapost.delivery (event_id, created_at, member_id, destination)
    select f.event_id, f.moment, %(member)s, %(destination)s from filled as f"""

_READY: Final = """
    insert into seapost.delivery_ready (event_id, available_at, created_at, member_id, attempt_count, failure_count,
        lost_count, event_digest, destination)
    select f.event_id, f.moment, f.moment, %(member)s, 0, 0, 0, f.digest, %(destination)s from filled as f"""

_FINISHED: Final = (
    """with started as (
        insert into seapost.delivery_attempt_start (event_id, attempt_id, token, started_at, attempt_number,
            destination, owner)
        select f.event_id, nextval('seapost.attempt_id'), gen_random_uuid(), f.moment, 1, %(destination)s, 'filled'
        from filled as f
        returning event_id, attempt_id, started_at),
    ended as (
        insert into seapost.delivery_attempt_finish (event_id, attempt_id, finished_at, outcome)
        select s.event_id, s.attempt_id, s.started_at, 1 from started as s)
    insert into seapost.delivery_acknowledgement (event_id, attempt_id, acknowledged_at, destination, receipt_digest,
        receipt_ref)
    select s.event_id, s.attempt_id, s.started_at, %(destination)s, sha256(s.event_id::text::bytea),
        'filled:' || s.event_id
    from started as s""",
    """insert into seapost.publication (event_id, published_at) select f.event_id, f.moment from filled as f""",
)


def waiting(connection: psycopg.Connection[Any], destination: str, count: int, *, envelope_bytes: int = 1_024) -> None:
    """Write events that wait for `destination`; the connection is the owner's, in autocommit."""
    _fill(connection, destination, count, envelope_bytes, (_EVENTS, _DELIVERIES, _READY))


def finished(connection: psycopg.Connection[Any], destination: str, count: int, *, envelope_bytes: int = 1_024) -> None:
    """Write events that were delivered, acknowledged and published."""
    _fill(connection, destination, count, envelope_bytes, (_EVENTS, _DELIVERIES, *_FINISHED))


def _fill(
    connection: psycopg.Connection[Any],
    destination: str,
    count: int,
    envelope_bytes: int,
    statements: tuple[LiteralString, ...],
) -> None:
    row = connection.execute(
        "select m.member_id from seapost.delivery_set_member as m join seapost.delivery_set_version as v"
        " using (definition_id) where v.status = 'active' and m.destination = %s and m.siblings = 1 limit 1",
        (destination,),
    ).fetchone()
    if row is None:
        message = f"no event of the active delivery set goes to {destination} alone"
        raise ValueError(message)
    arguments = {"destination": destination, "member": row[0], "size": envelope_bytes, "total": count}
    for first in range(1, count + 1, CHUNK):
        with connection.transaction():
            _ = connection.execute("set local synchronous_commit = off")
            _ = connection.execute(_SOURCE)
            bounds = {"first": first, "last": min(count, first + CHUNK - 1), "age": AGE_SECONDS}
            _ = connection.execute(_ROWS, arguments | bounds)
            for statement in statements:
                _ = connection.execute(statement, arguments)
