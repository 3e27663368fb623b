"""The oracle is judged: it sees a lost event, a doubled effect, a ghost, a call without an attempt, a stale word.

Some of the defects are real ones of broken parts that really run; what no program of ours would ever do is done by a
superuser who switches the guards off.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import LiteralString

import pytest

from seapost.database.installer import GuardLevel
from tests.fault.matrix import oracle
from tests.fault.matrix.oracle import Verdict
from tests.fault.matrix.stage import Ledger, Stage
from tests.kit.crash import Point, Trap
from tests.kit.database import DatabaseServer
from tests.kit.processes import Nursery
from tests.kit.scene import Side, opened

PLACED, SHIPPED = 3, 3
DELIVERIES = PLACED + 2 * SHIPPED
ANOTHER = "018f2f6e-0000-7000-8000-000000000000"

# Column of the verdict, side, and what breaks it.
TAMPERINGS: dict[str, tuple[str, str, LiteralString]] = {
    "an effect is gone": (
        "lost",
        "sink",
        "delete from public.effect where ctid = (select min(ctid) from public.effect)",
    ),
    "a receipt is gone": (
        "lost",
        "sink",
        "delete from seapost.inbox_receipt where ctid = (select min(ctid) from seapost.inbox_receipt)",
    ),
    "an effect is there twice": (
        "doubled",
        "sink",
        "insert into public.effect select * from public.effect limit 1",
    ),
    "an effect of no event": (
        "uncommitted",
        "sink",
        "insert into public.effect values ('billing_consumer', gen_random_uuid())",
    ),
    "the business change was taken back": (
        "uncommitted",
        "source",
        "delete from public.placed_order where ctid = (select min(ctid) from public.placed_order)",
    ),
    "a call without an attempt": (
        "unproved",
        "sink",
        "update public.call set attempt_id = -1 where attempt_number = 1",
    ),
    "an attempt called for twice": (
        "unproved",
        "sink",
        "insert into public.call select * from public.call limit 1",
    ),
    "a former holder was believed": (
        "stale_accepted",
        "source",
        """update seapost.delivery_acknowledgement as a set attempt_id = s.attempt_id
           from seapost.delivery_attempt_start as s
           where (s.event_id, s.destination, s.attempt_number) = (a.event_id, a.destination, 1)""",
    ),
}


def _verdict(stage: Stage) -> Verdict:
    return oracle.judge(oracle.read(stage.source.connection, stage.sink.connection), stage.ledger)


def _unguarded(side: Side) -> None:
    side.connection.execute("set session_replication_role = replica")


def _redeliver(stage: Stage) -> None:
    """One dispatcher dies between the answer and its settle; the next one delivers the same events again."""
    stage.over_http = False
    stage.load(PLACED, SHIPPED)
    stage.deliverer("victim", trap=Trap(Point.ANSWERED)).await_end()


@pytest.fixture(scope="module")
def finished(
    database_server: DatabaseServer, nursery: Nursery, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Give a stage on which a redelivery has ended well."""
    source, sink = database_server.create(GuardLevel.LEAN), database_server.create(GuardLevel.LEAN)
    with opened(Stage(source, sink, nursery, tmp_path_factory.mktemp("oracle"), rng=random.Random(1))) as stage:
        assert isinstance(stage, Stage)
        _redeliver(stage)
        stage.deliverer("successor")
        stage.await_end()
        stage.end()
        _unguarded(stage.source)
        _unguarded(stage.sink)
        yield stage
    for database in (source, sink):
        database_server.drop(database)


@pytest.fixture
def stage(database_server: DatabaseServer, nursery: Nursery, tmp_path: Path) -> Iterator[Stage]:
    """Give a stage of its own."""
    source, sink = database_server.create(GuardLevel.LEAN), database_server.create(GuardLevel.LEAN)
    made = Stage(source, sink, nursery, tmp_path, rng=random.Random(1))
    with opened(made):
        yield made
    for database in (source, sink):
        database_server.drop(database)


@pytest.mark.req("TST-33", "TST-34")
def test_what_went_well_has_no_findings(finished: Stage) -> None:
    """A redelivery is counted and is no defect."""
    verdict = _verdict(finished)
    assert verdict.redeliveries > 0
    assert verdict == Verdict(
        events=PLACED + SHIPPED,
        deliveries=DELIVERIES,
        redeliveries=verdict.redeliveries,
        lost=0,
        doubled=0,
        uncommitted=0,
        unproved=0,
        stale_accepted=0,
    )


@pytest.mark.req("TST-33", "TST-34")
@pytest.mark.parametrize("defect", TAMPERINGS, ids=lambda defect: defect.replace(" ", "-"))
def test_a_defect_is_seen(finished: Stage, defect: str) -> None:
    """Tampered facts raise the number that is there for it, and a finding; rolled back, there is none."""
    column, side, statement = TAMPERINGS[defect]
    connection = (finished.sink if side == "sink" else finished.source).connection
    with connection.transaction(force_rollback=True):
        assert connection.execute(statement).rowcount > 0
        verdict = _verdict(finished)
    assert getattr(verdict, column) > 0
    assert verdict.findings
    assert not _verdict(finished).findings


@pytest.mark.req("TST-33")
def test_what_a_producer_was_told_counts(finished: Stage) -> None:
    """A confirmed event that is nowhere is lost; one that was never to commit and is there has no right to be."""
    facts = oracle.read(finished.source.connection, finished.sink.connection)
    there = next(iter(facts.committed))
    assert oracle.judge(facts, Ledger(committed={ANOTHER})).lost == 1
    assert oracle.judge(facts, Ledger(doomed={there})).uncommitted == 1
    assert oracle.judge(replace(facts, leases=2), Ledger()).findings == ["leases left: 2"]


@pytest.mark.req("TST-34", "F31")
def test_an_inbox_that_forgets_doubles_effects(stage: Stage) -> None:
    """A consumer that drops its receipts before the redelivery applies every event twice, and the oracle says so."""
    _redeliver(stage)
    applied = stage.sink.count("public.effect")
    assert applied > 0
    _unguarded(stage.sink)
    stage.sink.rows("delete from seapost.inbox_receipt returning 1")
    stage.deliverer("successor")
    stage.await_end()
    stage.end()
    verdict = _verdict(stage)
    assert verdict.doubled == applied
    assert verdict.lost == 0


@pytest.mark.req("TST-33", "GEN-16")
def test_a_dropped_delivery_is_lost(stage: Stage) -> None:
    """A delivery that nobody will ever claim leaves nothing to wait for, and is missing at its consumer."""
    dropped, *_ = stage.load(PLACED, SHIPPED)
    _unguarded(stage.source)
    assert len(stage.source.rows("delete from seapost.delivery_ready where event_id = %s returning 1", dropped)) == 1
    stage.over_http = False
    stage.deliverer("dispatcher")
    stage.await_end()
    stage.end()
    verdict = _verdict(stage)
    assert verdict.lost == 1
    assert any(dropped in finding for finding in verdict.findings)


@pytest.mark.req("TST-33", "F01")
def test_an_event_without_its_business_change_is_a_ghost(stage: Stage) -> None:
    """An event that was appended outside its business transaction is delivered, and has no right to be."""
    stage.load(PLACED, SHIPPED)
    stage.append(1)
    stage.over_http = False
    stage.deliverer("dispatcher")
    stage.await_end()
    stage.end()
    assert _verdict(stage).uncommitted == 1
