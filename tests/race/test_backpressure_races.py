"""Back-pressure under many producers: what waits stays within a tenth of the watermark, with nobody draining."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.kit.builders import BILLING, envelope
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.sessions import SessionFactory

PRODUCERS = 16
WATERMARK = 2_000
STEP = WATERMARK // 20
REFUSALS = 20
"""A producer stops when it was refused so often in a row."""


def _produce(database: TestDatabase, size: int, single: bool, start: threading.Barrier) -> int:
    """Append transactions of `size` events, in one call or event by event, until nothing gets in any more."""
    stored = refused = 0
    pause = threading.Event()
    with psycopg.connect(database.dsn) as connection:
        producer = Kernel(connection)
        start.wait()
        while refused < REFUSALS:
            events = [envelope() for _ in range(size)]
            try:
                with connection.transaction():
                    for call in [[event] for event in events] if single else [events]:
                        producer.append(*call)
            except psycopg.Error as error:
                if error.sqlstate != "SP024":
                    raise
                refused += 1
                pause.wait(0.01)  # somebody else's closure ends
            else:
                stored += size
                refused = 0
    return stored


def _waiting(kernel: Kernel) -> int:
    return kernel.value("select count(*) from seapost.delivery_ready where destination = %s", BILLING)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("single", [False, True], ids=["one call", "many calls"])
def test_racing_producers_stay_within_a_tenth_of_the_watermark(
    lean_kernel: Kernel, database: TestDatabase, *, single: bool
) -> None:
    """Nothing drains, sixteen producers push transactions of ten: the queue fills to the watermark and never passes it
    by more than what fifteen others can have in flight. After a drain it does so again.
    """
    size = 10
    lean_kernel.run("select seapost.backpressure_set_v1(%s, %s, 'refuse', 0, 'ann')", BILLING, WATERMARK)
    for _ in range(2):
        start = threading.Barrier(PRODUCERS)
        with ThreadPoolExecutor(PRODUCERS) as pool:
            runs = [pool.submit(_produce, database, size, single, start) for _ in range(PRODUCERS)]
        waiting = _waiting(lean_kernel)
        in_flight = (PRODUCERS - 1) * size
        assert sum(run.result() for run in runs) > 0
        assert WATERMARK - STEP - size < waiting <= WATERMARK + in_flight <= WATERMARK * 1.1
        lean_kernel.acknowledge(*lean_kernel.claim(limit=WATERMARK // 2))


def test_a_producer_waits_for_another_that_counts(
    lean_kernel: Kernel, database: TestDatabase, sessions: SessionFactory
) -> None:
    """Two counts at once would be one too many; the second waits, finds the credit of the first and does not count."""
    lean_kernel.run("select seapost.backpressure_set_v1(%s, %s, 'refuse', 0, 'ann')", BILLING, WATERMARK)
    counting, late = sessions(database)
    counting.execute(
        "select pg_advisory_xact_lock_shared(hashtextextended('seapost.backpressure/' || %s, 0))", (BILLING,)
    )
    step = late.start_call(lambda connection: Kernel(connection).append(envelope()))
    late.wait_until_blocked(by=counting)
    counting.execute("select setval(gate, 7) from seapost.backpressure_limit")
    counting.commit()
    assert step.result() == 1
    late.commit()
    assert lean_kernel.value("select credit from seapost.backpressure_show_v1()") == 6


def test_the_lock_of_a_count_ends_with_the_count(lean_kernel: Kernel, database: TestDatabase) -> None:
    """It does not outlive the call, whatever the caller's transaction does after it: others go on and count again."""
    lean_kernel.run("select seapost.backpressure_set_v1(%s, %s, 'refuse', 0, 'ann')", BILLING, WATERMARK)
    with psycopg.connect(database.dsn) as idle, psycopg.connect(database.dsn) as other:
        Kernel(idle).append(envelope())  # counts, and stays in its transaction
        held = lean_kernel.value("select count(*) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock'")
        assert held == 0
        for _ in range(STEP + 2):  # uses up the credit and counts again
            Kernel(other).append(envelope())
        other.commit()
        idle.rollback()
    assert _waiting(lean_kernel) == STEP + 2
