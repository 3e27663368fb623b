"""The demo's evidence on real databases: right after a right run, and seen through after each forgery.

A few flights are delivered here without processes; then somebody with all rights breaks one rule inside a transaction
that is rolled back afterwards, and the evidence must say what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg
import pytest

from examples.flights import databases as demo
from examples.flights.consumers import mileage, punctuality
from examples.flights.data import Selection
from examples.flights.databases import SOURCE, Databases
from examples.flights.events import MILEAGE, PUNCTUALITY, application
from examples.flights.evidence import Evidence, judge
from examples.flights.expected import compute
from examples.flights.facts import gather
from examples.flights.producer import ProducerSettings, produce
from seapost.inbox.inbox import Inbox
from seapost.model.delivery import Claim
from seapost.store import inbox as store
from seapost.store.inbox import NewReceipt
from tests.kit.builders import receipt_for
from tests.kit.database import DatabaseServer
from tests.kit.kernel import Kernel

FLIGHTS: Final = 900
SEED: Final = 4
"""Takes transactions back among so few flights."""
INBOXES: Final[dict[str, Inbox]] = {PUNCTUALITY: punctuality, MILEAGE: mileage}

Connection = psycopg.Connection[tuple[Any, ...]]


def apply(consumer: Connection, name: str, claims: list[Claim]) -> None:
    """Receipts and effects of one batch, in one transaction of the consumer."""
    receipts = [
        NewReceipt(claim.fence.event_id, claim.event_digest, f"receipt-{claim.fence.event_id}", receipt_for(claim))
        for claim in claims
    ]
    with consumer.transaction():
        known, _ = store.receive_at(consumer, consumer=name, receipts=receipts)
        for claim in claims:
            if claim.fence.event_id not in known:
                handler = INBOXES[name].handlers[claim.member.event_type, claim.member.schema_version]
                payload = json.loads(claim.envelope)["payload"]
                event = application.events.decode(claim.member.event_type, claim.member.schema_version, payload)
                handler.function(consumer, event)


def deliver(source: Connection, consumer: Connection, name: str) -> None:
    """Deliver everything to one consumer; the first batch is applied, not acknowledged, and delivered again."""
    kernel = Kernel(source)
    first = kernel.claim(name)
    apply(consumer, name, first)
    assert kernel.retry(*first) == []
    while claims := kernel.claim(name):
        apply(consumer, name, claims)
        assert kernel.acknowledge(*claims) == []


@dataclass(frozen=True)
class Finished:
    """The databases of a finished run, each with a session that may do anything and whose work is thrown away."""

    source: Connection
    punctuality: Connection
    mileage: Connection

    def evidence(self) -> Evidence:
        """What the demo would say now."""
        facts = gather(self.source, self.punctuality, self.mileage)
        return judge(facts, compute(Selection.parse(str(FLIGHTS))), kills=0)


@pytest.fixture(scope="module")
def delivered(database_server: DatabaseServer) -> Iterator[Databases]:
    """Give the databases of a run in which everything was delivered, a hundred of it twice to each consumer."""
    databases = demo.choose_names(database_server.dsn())
    try:
        demo.create(databases)
        produce(databases.as_role(SOURCE, "producer"), ProducerSettings(str(FLIGHTS), SEED, 1_000_000))
        for name in INBOXES:
            with databases.observe(SOURCE) as source, databases.observe(name) as consumer:
                deliver(source, consumer, name)
        yield databases
    finally:
        demo.drop(databases)


@pytest.fixture
def finished(delivered: Databases) -> Iterator[Finished]:
    """Give sessions inside transactions that are rolled back, with triggers switched off for the forger."""
    with ExitStack() as stack:
        connections: list[Connection] = []
        for part in (SOURCE, PUNCTUALITY, MILEAGE):
            connection = stack.enter_context(delivered.observe(part))
            stack.enter_context(connection.transaction(force_rollback=True))
            connection.execute("set local session_replication_role = replica")
            connections.append(connection)
        yield Finished(*connections)


@pytest.mark.req("TST-34", "GEN-16")
def test_a_right_run_holds(finished: Finished) -> None:
    """After redelivery of what had been applied, nothing is lost or doubled; the taken-back events were never seen."""
    facts = gather(finished.source, finished.punctuality, finished.mileage)
    assert facts.taken_back > 0
    assert facts.receipts[PUNCTUALITY].met_by_receipt == facts.receipts[MILEAGE].met_by_receipt == 100
    evidence = finished.evidence()
    assert evidence.findings == ()
    assert evidence.holds
    assert evidence.redeliveries == 200
    assert evidence.events == FLIGHTS
    assert evidence.acknowledged == evidence.deliveries


@pytest.mark.parametrize(
    ("statement", "doubled", "lost"),
    [
        ("update punctuality set flights = flights + 1 where carrier = 'UA'", 1, 0),
        ("update punctuality set cancelled = cancelled + 2 where carrier = 'EV'", 2, 0),
        ("update punctuality set flights = flights - 1 where carrier = 'UA'", 0, 1),
        (
            """
            insert into seapost.inbox_receipt
                (event_id, committed_at, event_digest, consumer, receipt_ref, receipt_candidate)
            select gen_random_uuid(), now(), event_digest, consumer, 'ghost', receipt_candidate
            from seapost.inbox_receipt limit 1""",
            1,
            0,
        ),
        ("delete from seapost.inbox_receipt where ctid = (select ctid from seapost.inbox_receipt limit 1)", 0, 1),
        (
            """
            update seapost.inbox_receipt set receipt_candidate = receipt_candidate || ' '
            where ctid = (select ctid from seapost.inbox_receipt limit 1)""",
            0,
            1,
        ),
    ],
)
def test_an_edit_of_the_consumers_database_is_seen(
    finished: Finished, statement: LiteralString, doubled: int, lost: int
) -> None:
    """A counter or receipt that somebody changed by hand shows as exactly that many effects doubled or lost."""
    finished.punctuality.execute(statement)
    evidence = finished.evidence()
    assert (evidence.effects_doubled, evidence.lost, evidence.stale_settles_accepted) == (doubled, lost, 0)
    assert not evidence.holds


@pytest.mark.parametrize(
    "statement",
    [
        "update mileage set miles = miles + 1 where tailnum = 'N14228'",
        "update mileage set tailnum = 'N00000' where tailnum = 'N14228'",
    ],
)
def test_a_wrong_cell_is_seen(finished: Finished, statement: LiteralString) -> None:
    """A cell that differs from the file fails the demo, whether or not a count moved with it."""
    finished.mileage.execute(statement)
    evidence = finished.evidence()
    assert evidence.cells_differing > 0
    assert not evidence.holds


@pytest.mark.req("F14")
@pytest.mark.parametrize(
    "statement",
    [
        """
        update seapost.delivery_acknowledgement as a set attempt_id = s.attempt_id
        from (select * from seapost.delivery_attempt_start where attempt_number = 1 limit 1) as s
        where a.event_id = s.event_id and a.destination = s.destination""",
        "update seapost.delivery_attempt_finish set finished_at = finished_at + interval '1 day' where outcome = 2",
        "delete from seapost.delivery_attempt_finish where outcome = 2",
        "update seapost.delivery_attempt_finish set outcome = 4, error_code = 'lease_expired' where outcome = 1",
        """
        insert into seapost.delivery_lease (event_id, attempt_id, token, expires_at, created_at, member_id,
            attempt_count, failure_count, lost_count, company, event_digest, destination)
        select s.event_id, s.attempt_id, s.token, now(), now(), 1, 1, 0, 0, 1, '\\x00', s.destination
        from seapost.delivery_attempt_start as s limit 1""",
    ],
    ids=["superseded attempt believed", "late finish", "open attempt", "expired attempt believed", "two places"],
)
def test_a_broken_fence_is_seen(finished: Finished, statement: LiteralString) -> None:
    """An acknowledgement or finish that only a superseded attempt could have made is counted as accepted."""
    finished.source.execute(statement)
    evidence = finished.evidence()
    assert evidence.stale_settles_accepted > 0
    assert not evidence.holds


@pytest.mark.parametrize(
    ("statement", "doubled", "lost"),
    [
        ("insert into taken_back (event_id) select event_id from flight limit 1", 1, 0),
        ("update flight set event_id = gen_random_uuid() where flight_id = 1", 0, 1),
        ("delete from flight where flight_id = 1", 0, 1),
    ],
)
def test_an_edit_of_the_producers_table_is_seen(
    finished: Finished, statement: LiteralString, doubled: int, lost: int
) -> None:
    """An event of a rolled-back transaction counts as doubled, a flight without its event as lost."""
    finished.source.execute(statement)
    evidence = finished.evidence()
    assert (evidence.effects_doubled, evidence.lost) == (doubled, lost)
    assert not evidence.holds


def test_a_delivery_without_an_end_is_lost(finished: Finished) -> None:
    """A delivery whose acknowledgement is gone is lost, and its receipt is one that nobody asked for."""
    finished.source.execute(
        "delete from seapost.delivery_acknowledgement where ctid ="
        " (select ctid from seapost.delivery_acknowledgement limit 1)"
    )
    evidence = finished.evidence()
    assert evidence.lost == 1
    assert not evidence.holds
