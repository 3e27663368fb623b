"""Back-pressure: append refuses, or waits, when too many deliveries wait for a destination; off by default."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import IsolationLevel

from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED, envelope
from tests.kit.clock import Clock
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.kernel import Kernel, refused
from tests.kit.sessions import SessionFactory

WATERMARK = 100
STEP = WATERMARK // 20


def _limit(
    kernel: Kernel, destination: str = BILLING, *, watermark: int = WATERMARK, action: str = "refuse", wait: int = 0
) -> None:
    kernel.run("select seapost.backpressure_set_v1(%s, %s, %s, %s, 'ann')", destination, watermark, action, wait)


def _gate(kernel: Kernel, destination: str = BILLING) -> tuple[bool, int, int | None]:
    """Whether the gate is closed, its credit and what its closure saw."""
    return kernel.row(
        "select closed_for > interval '0', credit, waiting from seapost.backpressure_show_v1() where destination = %s",
        destination,
    )


def _fill(kernel: Kernel, size: int, event_type: str = PLACED) -> int:
    """Append calls of one size until one is refused; how many events got in."""
    stored = 0
    while True:
        try:
            stored += kernel.append(*(envelope(event_type) for _ in range(size)))
        except psycopg.Error as error:
            if error.sqlstate != "SP024":
                raise
            return stored


def _drain(kernel: Kernel, count: int, destination: str = BILLING) -> None:
    kernel.acknowledge(*kernel.claim(destination, limit=count))


@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_what_waits_never_passes_the_watermark(kernel: Kernel, clock: Clock, size: int) -> None:
    """One producer alone fills the queue to within a twentieth, or one call, of the watermark, and not above it."""
    _limit(kernel)
    stored = _fill(kernel, size)
    assert WATERMARK - max(STEP, size) < stored <= WATERMARK
    assert kernel.count("outbox_events") == kernel.count("delivery_ready") == stored
    clock.advance(60)
    assert _fill(kernel, size) == 0


def test_the_credit_ends_at_the_watermark(kernel: Kernel, clock: Clock) -> None:
    """A call that fills the queue to the brim leaves no credit for the next."""
    _limit(kernel)
    assert kernel.append(*(envelope() for _ in range(40))) == 40
    assert kernel.append(*(envelope() for _ in range(60))) == 60
    assert _fill(kernel, 1) == 0
    assert clock.now == clock.start


def test_a_refusal_names_destination_watermark_and_what_waits(kernel: Kernel, clock: Clock) -> None:
    """The error tells an operator what is full, and a producer when to look again."""
    _limit(kernel)
    stored = _fill(kernel, 1)
    with refused("SP024", BILLING, f"{stored} deliveries", f"watermark is {WATERMARK}", "gate is closed for"):
        kernel.append(envelope())
    assert clock.now == clock.start
    assert _gate(kernel) == (True, 0, stored)


def test_a_closed_gate_refuses_without_counting_and_opens_after_its_time(kernel: Kernel, clock: Clock) -> None:
    """Until the time of the closure is over nobody counts, even if the queue is empty again; then the next append
    does.
    """
    _limit(kernel)
    stored = _fill(kernel, 1)
    _drain(kernel, stored)
    with refused("SP024"):
        kernel.append(envelope())
    clock.advance(1)
    assert _gate(kernel) == (False, 0, None)
    assert kernel.append(envelope()) == 1
    assert _gate(kernel) == (False, STEP, None)


def test_a_gate_opens_only_a_twentieth_below_the_watermark(kernel: Kernel, clock: Clock) -> None:
    """Room for one delivery does not open it, or a full queue would be counted for every event."""
    _limit(kernel)
    assert kernel.append(*(envelope() for _ in range(WATERMARK - STEP))) + _fill(kernel, 1) == WATERMARK
    clock.advance(1)
    _drain(kernel, STEP - 1)
    with refused("SP024"):
        kernel.append(envelope())
    _drain(kernel, 1)
    clock.advance(1)
    assert kernel.append(envelope()) == 1


def test_a_clock_that_was_set_back_does_not_keep_a_gate_closed(kernel: Kernel, clock: Clock) -> None:
    """An end that lies further away than any closure lasts is not believed."""
    _limit(kernel)
    _drain(kernel, _fill(kernel, 1))
    clock.advance(-3600)
    assert kernel.append(envelope()) == 1


def test_a_refused_call_writes_nothing_and_a_savepoint_saves_the_transaction(
    kernel: Kernel, each_guard_database: TestDatabase
) -> None:
    """The refusal comes before the inserts: one full destination refuses the event whole, and no other event."""
    _limit(kernel, SEARCH, watermark=10)
    _fill(kernel, 1, SHIPPED)
    before = kernel.count("event")
    producer = Kernel(each_guard_database.connect("producer"))
    for events in ([envelope(SHIPPED)], [envelope(PLACED), envelope(SHIPPED)]):
        with refused("SP024", SEARCH), producer.connection.transaction():
            producer.append(*events)
    assert producer.append(envelope(PLACED)) == 1
    producer.connection.commit()
    assert kernel.count("event") == before + 1


def test_a_call_above_the_watermark_is_told_to_be_smaller(kernel: Kernel) -> None:
    """It could never pass, whatever is drained, and it closes the gate for nobody."""
    _limit(kernel, watermark=10)
    with refused("SP024", "one call appends 11 deliveries", "smaller calls"):
        kernel.append(*(envelope() for _ in range(11)))
    assert kernel.append(*(envelope() for _ in range(10))) == 10


def test_slow_waits_until_there_is_room(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """The append sleeps in its own transaction and goes on when the queue was drained."""
    _limit(kernel, action="refuse")
    stored = _fill(kernel, 1)
    _limit(kernel, action="slow", wait=60)
    producer = sessions(each_guard_database)[0]
    late = producer.start_call(lambda connection: Kernel(connection).append(envelope()))
    eventually(
        lambda: kernel.rows(
            "select from pg_stat_activity where pid = %s and wait_event = 'PgSleep'", producer.process_id
        ),
        what="the wait for room",
    )
    assert not late.done
    _drain(kernel, stored)
    assert late.result() == 1
    producer.commit()


@pytest.mark.parametrize(
    "isolation", [None, IsolationLevel.REPEATABLE_READ], ids=["half of the timeout", "old snapshot"]
)
def test_slow_refuses_before_a_timeout_and_where_waiting_cannot_help(
    kernel: Kernel, each_guard_database: TestDatabase, isolation: IsolationLevel | None
) -> None:
    """The clear error comes at half of statement_timeout; a snapshot that never changes is not waited for."""
    _limit(kernel, action="refuse")
    _fill(kernel, 1)
    _limit(kernel, action="slow", wait=60)
    producer = Kernel(each_guard_database.connect())
    producer.connection.isolation_level = isolation
    if isolation is None:
        producer.run("set statement_timeout = '4s'")
    with refused("SP024"):
        producer.append(envelope())


def test_off_lets_everything_in_and_each_change_is_audited(kernel: Kernel) -> None:
    """A limit that is switched off costs nothing and holds nobody; the audit keeps who decided what."""
    _limit(kernel, watermark=5)
    _fill(kernel, 1)
    _limit(kernel, watermark=5, action="off")
    assert kernel.append(*(envelope() for _ in range(20))) == 20
    assert kernel.rows(
        "select actor, action, subject_ref from seapost.audit_records where action = %s order by audit_id",
        "backpressure.set",
    ) == [
        ("ann", "backpressure.set", f"{BILLING}=refuse at 5, wait 0 s"),
        ("ann", "backpressure.set", f"{BILLING}=off at 5, wait 0 s"),
    ]


def test_each_destination_has_a_gate_of_its_own(kernel: Kernel) -> None:
    """A full queue elsewhere is no reason to refuse."""
    _limit(kernel, BILLING, watermark=10)
    _limit(kernel, SEARCH, watermark=1000)
    _fill(kernel, 1)
    assert _gate(kernel)[0] is True
    assert _gate(kernel, SEARCH) == (False, 0, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere", 10, "refuse", 0, "ann"),
        (BILLING, 0, "refuse", 0, "ann"),
        (BILLING, 1_000_001, "refuse", 0, "ann"),
        (BILLING, None, "refuse", 0, "ann"),
        (BILLING, 10, "drop", 0, "ann"),
        (BILLING, 10, None, 0, "ann"),
        (BILLING, 10, "slow", 0, "ann"),
        (BILLING, 10, "slow", 61, "ann"),
        (BILLING, 10, "refuse", 1, "ann"),
        (BILLING, 10, "off", None, "ann"),
        (BILLING, 10, "refuse", 0, ""),
        (BILLING, 10, "refuse", 0, None),
    ],
)
def test_arguments_are_checked(shared_kernel: Kernel, arguments: tuple[object, ...]) -> None:
    """A destination of no delivery set, a watermark or a wait beyond its limits, and an unnamed actor are refused."""
    with refused("SP013"):
        shared_kernel.run("select seapost.backpressure_set_v1(%s, %s::int, %s, %s::int, %s)", *arguments)
    assert shared_kernel.rows("select * from seapost.backpressure_show_v1()") == []
