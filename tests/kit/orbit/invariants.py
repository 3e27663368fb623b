"""What must hold in an Orbit database after every commit, asked of one snapshot (section 28.4, T-P01 to T-P03).

Run after every race and fault test. Each question answers the rows that break its rule, so a failure shows them.
"""

from __future__ import annotations

from typing import Any, Final, LiteralString

import psycopg
from psycopg import IsolationLevel

RULES: Final[dict[str, LiteralString]] = {
    "T-P01 sequences of a namespace are 1 to the head without a gap": """
        select e.namespace_id, count(*), min(e.sequence), max(e.sequence)
        from orbit.result_events as e join orbit.event_stream_locks as l using (namespace_id)
        where e.sequence >= l.retained_from_sequence
        group by e.namespace_id, l.retained_from_sequence
        having min(e.sequence) <> l.retained_from_sequence
            or max(e.sequence) - min(e.sequence) + 1 <> count(*)""",
    "T-P01 a result state event has one journal row of the same identity, any other event none": """
        select coalesce(s.event_id, j.event_id), s.type, j.type
        from orbit.events as s full join orbit.result_events as j on j.event_id = s.event_id
        where (s.type in ('task.succeeded', 'task.failed', 'task.cancelled', 'task.needs_review')) is distinct from
                (j.event_id is not null)
            or (j.event_id is not null and (s.namespace_id, s.queue_id, s.task_id, s.type)
                is distinct from (j.namespace_id, j.queue_id, j.task_id, j.type))""",
    "T-P02 pending_count is the number of deliveries that are not acknowledged, and fits the window": """
        select s.subscription_id, s.pending_count, s.max_pending, d.count
        from orbit.event_subscriptions as s cross join lateral (
            select count(*) from orbit.event_deliveries as d
            where d.subscription_id = s.subscription_id and d.state in ('PENDING', 'LEASED', 'EXPIRED')) as d
        where not s.legacy and (s.pending_count <> d.count or s.pending_count > s.max_pending)""",
    "T-P03 deliveries are exactly the wanted journal rows up to the cursor": """
        select s.subscription_id, s.cursor_sequence, x.sequence, x.delivery_id
        from orbit.event_subscriptions as s cross join lateral (
            select e.event_id, e.sequence, d.event_id as delivered_id, d.delivery_id
            from (select e.event_id, e.sequence from orbit.result_events as e
                  where e.queue_id = s.queue_id and e.type = any (s.types)
                    and e.sequence > s.from_sequence and e.sequence <= s.cursor_sequence) as e
            full join (select d.event_id, d.event_sequence, d.delivery_id from orbit.event_deliveries as d
                       where d.subscription_id = s.subscription_id and not d.legacy) as d
                on d.event_id = e.event_id and d.event_sequence = e.sequence) as x
        where not s.legacy and (x.event_id is null or x.delivered_id is null)""",
    "T-P03 the cursor is not beyond the head": """
        select s.subscription_id, s.cursor_sequence, v.last_sequence
        from orbit.event_subscriptions as s join orbit.event_streams as v using (namespace_id)
        where not s.legacy and s.cursor_sequence > v.last_sequence""",
    "AUD-05 one audit row for each claim of a delivery": """
        select d.delivery_id, d.attempts, d.lease_epoch, a.count
        from orbit.event_deliveries as d left join (
            select a.resource_id, count(*), count(distinct a.detail_json::json ->> 'lease_epoch') as epochs
            from orbit.audit_log as a where a.action = 'event.delivery.authorized' group by a.resource_id) as a
            on a.resource_id = d.delivery_id
        where not d.legacy and (coalesce(a.count, 0) <> d.attempts or coalesce(a.epochs, 0) <> d.attempts
            or d.lease_epoch <> d.attempts)""",
    "AUD-05 one audit row for each acknowledged delivery": """
        select d.delivery_id, d.state, a.count
        from orbit.event_deliveries as d left join (
            select a.resource_id, count(*) from orbit.audit_log as a
            where a.action = 'event.delivery.acked' group by a.resource_id) as a on a.resource_id = d.delivery_id
        where not d.legacy and coalesce(a.count, 0) <> (d.state = 'ACKED')::integer""",
    "IDM-11 every idempotency identity has a response": """
        select i.identity_sha256 from orbit.idempotency_records as i
        where i.response_status is null or i.response_json is null""",
}
"""Rule → rows that break it."""


def broken_rules(connection: psycopg.Connection[Any]) -> dict[str, list[tuple[Any, ...]]]:
    """Rows that break a rule, by rule; empty when all hold. The connection must not be inside a transaction."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with psycopg.connect(connection.info.dsn, password=connection.info.password or None) as observer:
        observer.isolation_level = IsolationLevel.REPEATABLE_READ
        for rule, question in RULES.items():
            rows = observer.execute(question).fetchall()
            if rows:
                found[rule] = rows
    return found


def assert_invariants(connection: psycopg.Connection[Any]) -> None:
    """Fail when a rule of section 28.4 does not hold in the database of the connection, over one snapshot."""
    broken = broken_rules(connection)
    assert not broken, "\n".join(f"{rule}: {rows[:5]}" for rule, rows in broken.items())
