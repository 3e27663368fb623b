"""What must hold after any fault, read from facts alone: plain SQL over both sides, no help from the code under test.

`violations` names every rule that is broken; an empty list is the proof. The producer's side is asked for the
deliveries and their attempts, the consumers' side for receipts and effects, and each is held against the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, LiteralString

from psycopg import Connection

DEADLOCKS: Final = "select deadlocks from pg_stat_database where datname = current_database() and deadlocks > 0"

SOURCE_RULES: Final[dict[str, LiteralString]] = {
    "audit_places has rows": "select defect, event_id::text, destination from seapost.audit_places",
    "a delivery has not ended": """
        select d.event_id, d.destination from seapost.delivery as d
        where not exists (select from seapost.delivery_acknowledgement as a
                          where (a.event_id, a.destination) = (d.event_id, d.destination))
          and not exists (select from seapost.delivery_quarantine as q
                          where (q.event_id, q.destination) = (d.event_id, d.destination))""",
    "a delivery has ended twice": """
        select event_id, destination from (
            select event_id, destination from seapost.delivery_acknowledgement
            union all select event_id, destination from seapost.delivery_quarantine) as e
        group by 1, 2 having count(*) > 1""",
    "a start has not exactly one finish": """
        select s.event_id, s.attempt_id from seapost.delivery_attempt_start as s
        left join seapost.delivery_attempt_finish as f on (f.event_id, f.attempt_id) = (s.event_id, s.attempt_id)
        group by 1, 2 having count(f.attempt_id) <> 1""",
    "a delivery has ended by another attempt than its last": """
        select e.event_id, e.destination from (
            select event_id, destination, attempt_id from seapost.delivery_acknowledgement
            union all select event_id, destination, attempt_id from seapost.delivery_quarantine) as e
        join seapost.delivery_attempt_start as s on (s.event_id, s.attempt_id) = (e.event_id, e.attempt_id)
        where s.attempt_number <> (select max(l.attempt_number) from seapost.delivery_attempt_start as l
                                   where (l.event_id, l.destination) = (e.event_id, e.destination))""",
    "an attempt has ended after the next one began": """
        select event_id, attempt_id from (
            select s.event_id, s.attempt_id, f.finished_at, lead(s.started_at) over delivery as next_at
            from seapost.delivery_attempt_start as s
            left join seapost.delivery_attempt_finish as f on (f.event_id, f.attempt_id) = (s.event_id, s.attempt_id)
            window delivery as (partition by s.event_id, s.destination order by s.attempt_number)) as a
        where next_at is not null and (finished_at is null or finished_at > next_at)""",
    "published_at is not exactly on complete events": """
        select e.event_id from seapost.event as e
        left join seapost.publication as p on p.event_id = e.event_id
        where (p.event_id is not null) <> (not exists (
            select from seapost.delivery_set_member as m
            where m.definition_id = e.definition_id and m.event_type = e.event_type
              and m.schema_version = e.schema_version and m.mandatory
              and not exists (select from seapost.delivery_acknowledgement as a
                              where a.event_id = e.event_id and a.destination = m.destination)))""",
    "published_at is older than an acknowledgement": """
        select p.event_id, a.destination from seapost.publication as p
        join seapost.delivery_acknowledgement as a on a.event_id = p.event_id and a.acknowledged_at > p.published_at""",
    "the server met a deadlock": DEADLOCKS,
}

SINK_RULES: Final[dict[str, LiteralString]] = {
    "an event has several receipts of one consumer": """
        select consumer, event_id from seapost.inbox_receipt group by 1, 2 having count(*) > 1""",
    "an effect was applied more than once": """
        select consumer, event_id, count(*) from public.effect group by 1, 2 having count(*) > 1""",
    "an effect has no receipt": """
        select e.consumer, e.event_id from public.effect as e
        where not exists (select from seapost.inbox_receipt as r
                          where (r.consumer, r.event_id) = (e.consumer, e.event_id))""",
    "a receipt has no effect": """
        select r.consumer, r.event_id from seapost.inbox_receipt as r
        where not exists (select from public.effect as e where (e.consumer, e.event_id) = (r.consumer, r.event_id))""",
    "a redelivery was answered with other bytes": """
        select consumer, event_id from public.answer where outcome = 'acknowledged'
        group by 1, 2 having count(distinct (receipt, ack)) > 1""",
    "the server met a deadlock": DEADLOCKS,
}

_ACKNOWLEDGED: Final = """
select m.consumer_name, a.event_id, a.receipt_ref, a.receipt_digest, e.digest
from seapost.delivery_acknowledgement as a
join seapost.delivery as d on (d.event_id, d.destination) = (a.event_id, a.destination)
join seapost.delivery_set_member as m on m.member_id = d.member_id
join seapost.event as e on e.event_id = a.event_id"""
_RECEIPTS: Final = "select consumer, event_id, receipt_ref, receipt_digest, event_digest from seapost.inbox_receipt"
_STARTS: Final = """
select s.attempt_id, s.event_id, m.consumer_name, s.attempt_number
from seapost.delivery_attempt_start as s
join seapost.delivery as d on (d.event_id, d.destination) = (s.event_id, s.destination)
join seapost.delivery_set_member as m on m.member_id = d.member_id"""
_CALLS: Final = "select attempt_id, event_id, consumer, attempt_number from public.call"


def violations(source: Connection[Any], sink: Connection[Any]) -> list[str]:
    """Every broken rule with its number of cases and one of them; both sides must be at rest."""
    found = [*_broken(source, SOURCE_RULES), *_broken(sink, SINK_RULES)]
    believed = set(source.execute(_ACKNOWLEDGED).fetchall())
    written = set(sink.execute(_RECEIPTS).fetchall())
    started = set(source.execute(_STARTS).fetchall())
    called = set(sink.execute(_CALLS).fetchall())
    if missing := believed - written:
        found.append(_describe("an acknowledgement has no such receipt", missing))
    if unknown := called - started:
        found.append(_describe("a consumer was called for an attempt that was never started", unknown))
    return found


def assert_kept(source: Connection[Any], sink: Connection[Any]) -> None:
    """Fail with every broken rule."""
    found = violations(source, sink)
    assert not found, "\n".join(found)


def _broken(connection: Connection[Any], rules: dict[str, LiteralString]) -> Iterator[str]:
    for rule, query in rules.items():
        if cases := connection.execute(query).fetchall():
            yield _describe(rule, cases)


def _describe(rule: str, cases: Collection[object]) -> str:
    return f"{rule}: {len(cases)} times, for instance {next(iter(cases))}"
