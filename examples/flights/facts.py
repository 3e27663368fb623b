"""What the databases say afterwards: counts of facts, read by plain SQL, with no help from the code that wrote them.

The questions go to the fact tables themselves. Nothing is asked of a dispatcher, a consumer or a metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, LiteralString
from uuid import UUID

import psycopg

from examples.flights.tables import Mileage, Punctuality, Tables

DEFECTS_KEPT_MAX: Final = 20

_COUNTS: Final = """
select (select count(*) from seapost.event where event_type = 'flight.completed@1'),
       (select count(*) from seapost.event where event_type = 'flight.cancelled@1'),
       (select count(*) from flight),
       (select count(*) from flight as f
        where not exists (select from seapost.event as e where e.event_id = f.event_id)),
       (select count(*) from seapost.event as e join taken_back as t on t.event_id = e.event_id),
       (select count(*) from taken_back),
       (select count(*) from seapost.delivery),
       (select count(*) from seapost.delivery_attempt_start),
       (select count(*) from seapost.delivery_acknowledgement),
       (select count(*) from seapost.delivery_quarantine),
       (select count(*) from seapost.delivery as d
        where not exists (select from seapost.delivery_acknowledgement as a
                          where a.event_id = d.event_id and a.destination = d.destination)
          and not exists (select from seapost.delivery_quarantine as q
                          where q.event_id = d.event_id and q.destination = d.destination))"""

STALE_RULES: Final[dict[str, LiteralString]] = {
    "an acknowledgement belongs to an attempt that finished otherwise": """
        select count(*) from seapost.delivery_acknowledgement as a
        left join seapost.delivery_attempt_finish as f on f.event_id = a.event_id and f.attempt_id = a.attempt_id
        where f.outcome is distinct from 1""",
    "an acknowledgement belongs to an attempt that was not the last one started": """
        select count(*) from seapost.delivery_acknowledgement as a
        left join seapost.delivery_attempt_start as s on s.event_id = a.event_id and s.attempt_id = a.attempt_id
        where s.attempt_number is distinct from (
            select max(l.attempt_number) from seapost.delivery_attempt_start as l
            where l.event_id = a.event_id and l.destination = a.destination)""",
    "an attempt has more than one finish": """
        select count(*) from (
            select from seapost.delivery_attempt_finish group by event_id, attempt_id having count(*) > 1) as s""",
    "a delivery has more than one acknowledgement": """
        select count(*) from (
            select from seapost.delivery_acknowledgement group by event_id, destination having count(*) > 1) as s""",
    "an attempt finished after the next one had started": """
        select count(*) from (
            select f.finished_at, lead(s.started_at) over delivery as next_started_at
            from seapost.delivery_attempt_start as s
            left join seapost.delivery_attempt_finish as f on f.event_id = s.event_id and f.attempt_id = s.attempt_id
            window delivery as (partition by s.event_id, s.destination order by s.attempt_number)) as attempt
        where next_started_at is not null and (finished_at is null or finished_at > next_started_at)""",
}
"""What must never be found, and the count of it: each is a word of an attempt that no longer held the delivery."""

_DEFECTS: Final = "select defect, event_id::text, destination from seapost.audit_places limit %s"
_OUTCOMES: Final = """
select case f.outcome when 1 then 'acknowledged' when 2 then 'retryable: ' || f.error_code
                      when 3 then 'non-retryable: ' || f.error_code when 4 then 'lease expired, outcome unknown'
                      else 'never finished' end as ending, count(*)
from seapost.delivery_attempt_start as s
left join seapost.delivery_attempt_finish as f on f.event_id = s.event_id and f.attempt_id = s.attempt_id
group by 1 order by 2 desc, 1"""
_PACE: Final = """
select min(e.created_at), max(a.acknowledged_at),
       percentile_cont(array[0.5, 0.99, 1.0]) within group (order by a.acknowledged_at - e.created_at)
from seapost.delivery_acknowledgement as a join seapost.event as e on e.event_id = a.event_id"""
_PER_SECOND: Final = """
select floor(extract(epoch from a.acknowledged_at - (select min(created_at) from seapost.event)))::int, count(*)
from seapost.delivery_acknowledgement as a group by 1 order by 1"""
_ACKNOWLEDGED: Final = """
select a.event_id, a.receipt_ref, a.receipt_digest, s.started_at
from seapost.delivery_acknowledgement as a
left join seapost.delivery_attempt_start as s on s.event_id = a.event_id and s.attempt_id = a.attempt_id
where a.destination = %s"""
_RECEIPTS: Final = (
    "select event_id, receipt_ref, receipt_digest, committed_at from seapost.inbox_receipt where consumer = %s"
)


@dataclass(frozen=True, slots=True)
class Proof:
    """A receipt as one side has it: reference, digest, and that side's moment.

    `at` is the start of the attempt that was acknowledged, or the commit of the receipt.
    """

    reference: str
    digest: bytes
    at: datetime | None


@dataclass(frozen=True, slots=True)
class ReceiptFacts:
    """The acknowledgements of one destination held against the receipts in its consumer's database.

    Attributes:
        receipts: receipts found there.
        without_receipt: deliveries acknowledged with no such receipt, or with another one.
        several: events with more than one receipt.
        unasked: receipts of events that no acknowledgement speaks of.
        met_by_receipt: deliveries whose last attempt found the receipt of an earlier one: the same event arrived
            again, and its effect was not applied again.
    """

    receipts: int = 0
    without_receipt: int = 0
    several: int = 0
    unasked: int = 0
    met_by_receipt: int = 0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast it went: first append, last acknowledgement, latency from one to the other, counts by second."""

    first: datetime | None = None
    last: datetime | None = None
    latencies: tuple[timedelta, ...] = ()
    per_second: dict[int, int] = field(default_factory=dict[int, int])


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the judgement needs, as counted in the databases.

    Attributes:
        completed, cancelled: events by type.
        flights: rows of the producer's own table; `flights_untold` of them have no event.
        taken_back: events of transactions rolled back on purpose; `taken_back_seen` of them exist nevertheless.
        unfinished: deliveries neither acknowledged nor quarantined.
        stale: count by broken rule, see `STALE_RULES`.
        defects: the first rows of `audit_places`.
        endings: attempts by how they ended.
        receipts: by destination.
        tables: the consumers' tables.
    """

    completed: int
    cancelled: int
    flights: int
    flights_untold: int
    taken_back_seen: int
    taken_back: int
    deliveries: int
    starts: int
    acknowledged: int
    quarantined: int
    unfinished: int
    stale: dict[str, int] = field(default_factory=dict[str, int])
    defects: tuple[str, ...] = ()
    endings: dict[str, int] = field(default_factory=dict[str, int])
    receipts: dict[str, ReceiptFacts] = field(default_factory=dict[str, ReceiptFacts])
    pace: Pace = field(default_factory=Pace)
    tables: Tables = field(default_factory=Tables)

    @property
    def events(self) -> int:
        """Events of both types."""
        return self.completed + self.cancelled


def gather(source: psycopg.Connection, punctuality: psycopg.Connection, mileage: psycopg.Connection) -> Facts:
    """Read the facts once nothing moves any more; the connections may see every table."""
    counts = source.execute(_COUNTS).fetchone()
    assert counts is not None, "counts always come back"  # noqa: S101 - for the type checker
    pace = source.execute(_PACE).fetchone() or (None, None, None)
    return Facts(
        *(int(count) for count in counts),
        stale={rule: _count(source, query) for rule, query in STALE_RULES.items()},
        defects=tuple(
            " ".join(part or "" for part in row) for row in source.execute(_DEFECTS, (DEFECTS_KEPT_MAX,)).fetchall()
        ),
        endings={str(ending): int(count) for ending, count in source.execute(_OUTCOMES).fetchall()},
        receipts={
            name: compare_receipts(_acknowledged(source, name), _receipts(consumer, name))
            for name, consumer in (("punctuality", punctuality), ("mileage", mileage))
        },
        pace=Pace(pace[0], pace[1], tuple(pace[2] or ()), dict(source.execute(_PER_SECOND).fetchall())),
        tables=Tables(
            punctuality={
                row[0]: Punctuality(*row[1:])
                for row in punctuality.execute(
                    "select carrier, flights, on_time, delay_minutes, cancelled from punctuality order by carrier"
                ).fetchall()
            },
            mileage={
                row[0]: Mileage(*row[1:])
                for row in mileage.execute("select tailnum, flights, miles from mileage order by tailnum").fetchall()
            },
        ),
    )


def compare_receipts(acknowledged: dict[UUID, Proof], receipts: Iterable[tuple[UUID, Proof]]) -> ReceiptFacts:
    """Hold what the producer's side believes against what the consumer's side has written."""
    count = several = unasked = differing = met = 0
    seen: set[UUID] = set()
    for event_id, receipt in receipts:
        count += 1
        several += event_id in seen
        seen.add(event_id)
        believed = acknowledged.get(event_id)
        if believed is None:
            unasked += 1
        elif (believed.reference, believed.digest) != (receipt.reference, receipt.digest):
            differing += 1
        elif believed.at is not None and receipt.at is not None and receipt.at < believed.at:
            met += 1
    missing = len(acknowledged.keys() - seen)
    return ReceiptFacts(count, missing + differing, several, unasked, met)


def _count(connection: psycopg.Connection, query: LiteralString) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def _acknowledged(source: psycopg.Connection, destination: str) -> dict[UUID, Proof]:
    rows = source.execute(_ACKNOWLEDGED, (destination,), binary=True).fetchall()
    return {event_id: Proof(reference, bytes(digest), at) for event_id, reference, digest, at in rows}


def _receipts(consumer: psycopg.Connection, name: str) -> Iterator[tuple[UUID, Proof]]:
    for event_id, reference, digest, at in consumer.execute(_RECEIPTS, (name,), binary=True):
        yield event_id, Proof(reference, bytes(digest), at)
