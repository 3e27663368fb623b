"""One event delivered twice at the same moment: one effect, one receipt (DLV-14, F32)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.kit import builders
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, Row
from tests.kit.sessions import SessionFactory

DIGEST = builders.digest(b"event")


def _receive(ref: str, *event_ids: UUID, digest: bytes = DIGEST) -> Callable[[psycopg.Connection[Any]], list[Row]]:
    size = len(event_ids)
    return lambda connection: Kernel(connection).rows(
        "select event_id, result, receipt_ref from seapost.inbox_receive_v1('c', %s, %s, %s, %s)",
        list(event_ids),
        [digest] * size,
        [ref] * size,
        [b"{}"] * size,
    )


@pytest.mark.req("DLV-14", "DLV-20", "F32", "TST-34")
@pytest.mark.parametrize("digest", [DIGEST, builders.digest(b"other")], ids=["duplicate", "conflict"])
def test_a_concurrent_redelivery_waits_and_gets_the_first_receipt(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory, digest: bytes
) -> None:
    """The second handler never starts: it waits for the first commit and is told what that wrote."""
    event_id = builders.new_event_id()
    one, two = sessions(each_guard_database, role="consumer")
    assert one.call(_receive("first", event_id)) == []
    late = two.start_call(_receive("second", event_id, digest=digest))
    two.wait_until_blocked(by=one)
    one.commit()
    assert late.result() == [(event_id, "duplicate" if digest == DIGEST else "conflict", "first")]
    two.commit()
    assert kernel.count("inbox_receipts") == 1


@pytest.mark.req("DLV-14", "F32")
def test_when_the_first_handler_fails_the_waiting_one_has_the_new_event(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """The rollback takes the receipt with the effect; the second delivery finds the event new."""
    event_id = builders.new_event_id()
    one, two = sessions(each_guard_database, role="consumer")
    one.call(_receive("first", event_id))
    late = two.start_call(_receive("second", event_id))
    two.wait_until_blocked(by=one)
    one.rollback()
    assert late.result() == []
    two.commit()
    assert kernel.value("select receipt_ref from seapost.inbox_receipts") == "second"


@pytest.mark.req("F18")
def test_batches_in_opposite_order_never_deadlock(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """The waiting batch holds nothing behind its lowest id, so the first one can go on."""
    low, middle, high = sorted(builders.new_event_id() for _ in range(3))
    one, two = sessions(each_guard_database, role="consumer")
    one.call(_receive("first", low))
    late = two.start_call(_receive("second", high, middle, low))
    two.wait_until_blocked(by=one)
    assert one.call(_receive("first", high, middle)) == []
    one.commit()
    assert {row[1:] for row in late.result()} == {("duplicate", "first")}
    two.commit()
    assert kernel.count("inbox_receipts") == 3
