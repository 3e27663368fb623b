"""Of one destination at most one claim of suspects is out at a time, whoever asks: a deadly event dies alone (F20)."""

from __future__ import annotations

from datetime import timedelta
from threading import Lock
from uuid import UUID

import pytest

from tests.kit.builders import BILLING, SEARCH, SHIPPED
from tests.kit.clock import Clock
from tests.kit.database import TestDatabase
from tests.kit.kernel import HALF_MINUTE, Kernel, refused
from tests.kit.sessions import Session, SessionFactory

pytestmark = pytest.mark.req("CLM-02", "F20")

SECOND = timedelta(seconds=1)


def _suspects(kernel: Kernel, clock: Clock, count: int) -> list[UUID]:
    """Events whose deliveries to both destinations have each been lost once."""
    ids = kernel.append_new(SHIPPED, count)
    for destination in (BILLING, SEARCH):
        assert len(kernel.claim(destination, lease=SECOND)) == count
    clock.advance(1)
    kernel.recover()
    return ids


def _claim(session: Session, destination: str = BILLING, *, lease: timedelta = HALF_MINUTE) -> int:
    """How many suspects a session gets; it never waits for another one."""
    return len(
        session.start_call(
            lambda connection: Kernel(connection).claim(destination, lease=lease, suspects=True)
        ).result()
    )


def test_a_second_process_gets_no_suspects_while_some_are_out(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """Neither beside an open claim nor after its commit; another destination has a turn of its own."""
    _suspects(kernel, clock, 100)
    first, second = sessions(each_guard_database)
    assert _claim(first) == 12
    assert _claim(second) == 0
    assert _claim(second, SEARCH) == 12
    first.commit()
    assert _claim(second) == 0
    second.commit()
    assert _claim(second) == 0


def test_the_next_batch_goes_out_when_the_last_one_is_settled(kernel: Kernel, clock: Clock) -> None:
    """Every end of the claims that were out frees the turn: here acknowledged, retried and quarantined ones."""
    _suspects(kernel, clock, 100)
    claims = kernel.claim(suspects=True)
    assert kernel.acknowledge(*claims[:4]) == kernel.retry(*claims[4:8]) == kernel.quarantine(*claims[8:-1]) == []
    assert kernel.claim(suspects=True) == []
    assert kernel.retry(claims[-1], lost=True, delay=SECOND) == []
    assert len(kernel.claim(suspects=True)) == 12


def test_a_claim_that_rolls_back_frees_the_turn(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """What was never committed is out for nobody."""
    _suspects(kernel, clock, 10)
    first, second = sessions(each_guard_database)
    assert _claim(first) == 10
    assert _claim(second) == 0
    first.rollback()
    assert _claim(second) == 10


def test_a_dead_holder_blocks_no_longer_than_its_lease(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """Its lease ends by the database's clock, recovered or not; a renewal keeps the turn."""
    _suspects(kernel, clock, 100)
    first, second = sessions(each_guard_database)
    assert _claim(first, lease=SECOND) == 12
    first.commit()
    clock.advance(0.9)
    assert _claim(second) == 0
    clock.advance(0.1)
    assert _claim(second, lease=SECOND) == 12
    second.commit()
    kernel.recover()
    assert kernel.claim(suspects=True) == []


def test_an_older_snapshot_is_no_proof(kernel: Kernel, clock: Clock) -> None:
    """In REPEATABLE READ the lock could be free and the lease unseen, so such a claim is refused."""
    _suspects(kernel, clock, 1)
    with kernel.connection.transaction(force_rollback=True):
        kernel.run("set transaction isolation level repeatable read")
        with refused("SP012"):
            kernel.claim(suspects=True)


def test_many_claimers_never_hold_two(lean_kernel: Kernel, database: TestDatabase, sessions: SessionFactory) -> None:
    """Six sessions claim and acknowledge sixty suspects one by one: no two are ever out together, and none is left."""
    clock = Clock(lean_kernel.connection)
    ids = _suspects(lean_kernel, clock, 60)
    guard = Lock()
    held: set[UUID] = set()
    done: list[UUID] = []

    def work(kernel: Kernel) -> None:
        while len(done) < len(ids):
            claims = kernel.claim(limit=8, suspects=True)
            kernel.connection.commit()
            if not claims:
                continue
            (claim,) = claims
            with guard:
                assert not held
                held.add(claim.fence.event_id)
            with guard:
                held.discard(claim.fence.event_id)
            assert kernel.acknowledge(claim) == []
            kernel.connection.commit()
            done.append(claim.fence.event_id)

    steps = [session.start_call(lambda connection: work(Kernel(connection))) for session in sessions(database, 6)]
    for step in steps:
        step.result()
    assert sorted(done) == sorted(ids)
