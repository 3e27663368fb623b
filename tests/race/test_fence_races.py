"""Two words about one attempt at the same moment: the row lock orders them, the fence decides (CLM-05, CLM-09)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from seapost.model.delivery import Claim
from tests.kit.builders import BILLING, PLACED
from tests.kit.clock import Clock
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.sessions import Session, SessionFactory, Step

Verb = Callable[..., Any]

FINISHES: dict[str, Verb] = {"acknowledge": Kernel.acknowledge, "retry": Kernel.retry, "quarantine": Kernel.quarantine}
VERBS: dict[str, Verb] = {**FINISHES, "renew": Kernel.renew}
STATUS = {"acknowledge": "acknowledged", "retry": "pending", "quarantine": "quarantined", "renew": "leased"}
SECOND = timedelta(seconds=1)


def _start(session: Session, verb: Verb, *arguments: Any, **options: Any) -> Step[Any]:
    return session.start_call(lambda connection: verb(Kernel(connection), *arguments, **options))


def _call(session: Session, verb: Verb, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - each verb has its own answer
    return _start(session, verb, *arguments, **options).result()


def _is_refused(answer: object, claim: Claim) -> bool:
    return answer in (set(), [(claim.fence.event_id, claim.fence.attempt_id, "stale")])


def _expired(kernel: Kernel, clock: Clock) -> Claim:
    kernel.append_new()
    claim = kernel.claim_one(lease=SECOND)
    clock.advance(2)
    return claim


@pytest.mark.req("TST-29", "TST-30", "CLM-07", "CLM-09", "NEG-43", "F14")
@pytest.mark.parametrize("verb", VERBS)
def test_a_recovery_that_holds_the_row_beats_the_old_worker(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, sessions: SessionFactory, verb: str
) -> None:
    """The old worker waits for the recoverer's lock and is stale once that commits; one finish is written."""
    claim = _expired(kernel, clock)
    recoverer, worker = sessions(each_guard_database)
    assert _call(recoverer, Kernel.recover) == {BILLING: 1}
    late = _start(worker, VERBS[verb], claim)
    worker.wait_until_blocked(by=recoverer)
    recoverer.commit()
    assert _is_refused(late.result(), claim)
    worker.commit()
    assert (kernel.status(claim.fence.event_id), kernel.count("outbox_delivery_attempt_finishes")) == ("pending", 1)


@pytest.mark.req("TST-29", "AMB-06")
@pytest.mark.parametrize("verb", VERBS)
def test_a_recovery_that_rolls_back_leaves_the_old_worker_its_lease(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, sessions: SessionFactory, verb: str
) -> None:
    """The worker waits, the recoverer gives up, and the worker's word counts although its lease has expired."""
    claim = _expired(kernel, clock)
    recoverer, worker = sessions(each_guard_database)
    _call(recoverer, Kernel.recover)
    late = _start(worker, VERBS[verb], claim)
    worker.wait_until_blocked(by=recoverer)
    recoverer.rollback()
    assert not _is_refused(late.result(), claim)
    worker.commit()
    assert kernel.status(claim.fence.event_id) == STATUS[verb]


@pytest.mark.req("TST-29", "TST-30", "AMB-06", "CLM-07")
@pytest.mark.parametrize("verb", VERBS)
def test_a_worker_that_holds_the_row_beats_the_recovery(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, sessions: SessionFactory, verb: str
) -> None:
    """Recovery skips a locked lease without waiting; after the worker's commit there is nothing to recover."""
    claim = _expired(kernel, clock)
    worker, recoverer = sessions(each_guard_database)
    _call(worker, VERBS[verb], claim)
    assert _call(recoverer, Kernel.recover) == {}
    worker.commit()
    assert _call(recoverer, Kernel.recover) == {}
    recoverer.commit()
    assert kernel.status(claim.fence.event_id) == STATUS[verb]


@pytest.mark.req("TST-29")
def test_a_worker_that_dies_holding_the_row_is_recovered_later(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """A settle that never commits costs one round of recovery, not the delivery."""
    claim = _expired(kernel, clock)
    worker, recoverer = sessions(each_guard_database)
    _call(worker, Kernel.acknowledge, claim)
    assert _call(recoverer, Kernel.recover) == {}
    each_guard_database.kill(worker.process_id)
    assert _call(recoverer, Kernel.recover) == {BILLING: 1}
    recoverer.commit()
    assert kernel.status(claim.fence.event_id) == "pending"


@pytest.mark.req("TST-31", "TST-32", "DLV-15", "NEG-43", "CLM-06")
@pytest.mark.parametrize("second", FINISHES)
@pytest.mark.parametrize("first", FINISHES)
def test_of_two_finishes_at_once_one_counts(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory, first: str, second: str
) -> None:
    """Whatever pair of verbs meets on one claim, the second waits for the first and is stale; the first stands."""
    kernel.append_new()
    claim = kernel.claim_one()
    one, two = sessions(each_guard_database)
    assert _call(one, VERBS[first], claim) == []
    late = _start(two, VERBS[second], claim)
    two.wait_until_blocked(by=one)
    one.commit()
    assert _is_refused(late.result(), claim)
    two.commit()
    assert (kernel.status(claim.fence.event_id), kernel.count("outbox_delivery_attempt_finishes")) == (STATUS[first], 1)


@pytest.mark.req("TST-32", "TST-31")
@pytest.mark.parametrize("verb", FINISHES)
def test_when_the_first_finish_rolls_back_the_second_counts(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory, verb: str
) -> None:
    """Waiting is not losing: the lease is still there, so the second word moves it."""
    kernel.append_new()
    claim = kernel.claim_one()
    one, two = sessions(each_guard_database)
    _call(one, Kernel.quarantine, claim)
    late = _start(two, VERBS[verb], claim)
    two.wait_until_blocked(by=one)
    one.rollback()
    assert late.result() == []
    two.commit()
    assert kernel.status(claim.fence.event_id) == STATUS[verb]


@pytest.mark.req("CLM-05", "TST-30")
@pytest.mark.parametrize("verb", FINISHES)
def test_a_settle_behind_a_renewal_moves_the_renewed_row(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory, verb: str
) -> None:
    """A renewal writes a new version of the lease; the settle that waited for it deletes that one, by key."""
    kernel.append_new()
    claim = kernel.claim_one()
    renewer, worker = sessions(each_guard_database)
    assert _call(renewer, Kernel.renew, claim) == {claim.fence.event_id}
    late = _start(worker, VERBS[verb], claim)
    worker.wait_until_blocked(by=renewer)
    renewer.commit()
    assert late.result() == []
    worker.commit()
    assert kernel.status(claim.fence.event_id) == STATUS[verb]


@pytest.mark.req("TST-30")
def test_a_renewal_behind_a_finish_is_lost(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """The renewal waits for the finish and answers that the lease is gone; it brings nothing back."""
    kernel.append_new()
    claim = kernel.claim_one()
    worker, renewer = sessions(each_guard_database)
    _call(worker, Kernel.retry, claim)
    late = _start(renewer, Kernel.renew, claim)
    renewer.wait_until_blocked(by=worker)
    worker.commit()
    assert late.result() == set()
    renewer.commit()
    assert kernel.status(claim.fence.event_id) == "pending"


@pytest.mark.req("CLM-01", "CLM-02", "STO-20", "STO-25")
def test_two_claims_at_once_share_the_queue_without_waiting(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """Each takes exactly its limit, the oldest free ones first, and nobody gets what the other holds."""
    ids = sorted(kernel.append_new(PLACED, 25))
    one, two = sessions(each_guard_database, role="dispatcher")
    first = _call(one, Kernel.claim, limit=10)
    second = _call(two, Kernel.claim, limit=10)
    rest = _call(one, Kernel.claim, limit=10)
    assert [c.fence.event_id for c in first] == ids[:10]
    assert [c.fence.event_id for c in second] == ids[10:20]
    assert [c.fence.event_id for c in rest] == ids[20:]
    one.rollback()
    two.commit()
    assert [c.fence.event_id for c in kernel.claim()] == ids[:10] + ids[20:]


@pytest.mark.req("CLM-01", "STO-25", "NEG-44")
def test_a_claim_during_recovery_gets_the_delivery_only_after_its_commit(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """Between the old lease and the next claim stands the committed recovery, never a moment of both."""
    claim = _expired(kernel, clock)
    recoverer, worker = sessions(each_guard_database)
    _call(recoverer, Kernel.recover)
    assert _call(worker, Kernel.claim, suspects=True) == []
    recoverer.commit()
    (again,) = _call(worker, Kernel.claim, suspects=True)
    worker.commit()
    assert again.fence.event_id == claim.fence.event_id
    assert again.attempt_number == 2


@pytest.mark.req("CLM-07", "F18")
def test_two_recoveries_at_once_share_the_expired_leases(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """Neither waits and none is recovered twice."""
    kernel.append_new(PLACED, 10)
    kernel.claim(lease=SECOND)
    clock.advance(2)
    one, two = sessions(each_guard_database)
    assert _call(one, Kernel.recover, limit=6) == {BILLING: 6}
    assert _call(two, Kernel.recover) == {BILLING: 4}
    one.commit()
    two.commit()
    assert kernel.count("outbox_delivery_attempt_finishes") == 10
