"""`inbox_receive_v1`: the first receipt of an event, for ever, written in the consumer's own transaction."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from tests.kit import builders
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, Row, refused

CONSUMER = "billing_consumer"
DIGEST = builders.digest(b"event")


def _receive(
    kernel: Kernel,
    *event_ids: UUID,
    consumer: str = CONSUMER,
    digests: Sequence[bytes] | None = None,
    receipt: bytes = b'{"outcome":"applied"}',
    ref: str = "ref-1",
) -> list[Row]:
    size = len(event_ids)
    return kernel.rows(
        "select * from seapost.inbox_receive_v1(%s, %s, %s, %s, %s)",
        consumer,
        list(event_ids),
        [DIGEST] * size if digests is None else list(digests),
        [ref] * size,
        [receipt] * size,
    )


@pytest.mark.req("DLV-14", "DLV-20", "F31", "TST-34")
def test_a_new_event_is_absent_and_a_known_one_brings_its_first_receipt(kernel: Kernel) -> None:
    """Absent from the answer means new; a redelivery is answered with the first receipt, byte for byte."""
    event_id = builders.new_event_id()
    assert _receive(kernel, event_id) == []
    first = kernel.row("select committed_at from seapost.inbox_receipts")[0]
    again = _receive(kernel, event_id, receipt=b'{"outcome":"other"}', ref="ref-2")
    assert again == [(event_id, "duplicate", "ref-1", b'{"outcome":"applied"}', first, DIGEST)]
    assert kernel.count("inbox_receipts") == 1
    assert kernel.value("select receipt_digest from seapost.inbox_receipts") == (
        builders.digest(b'{"outcome":"applied"}').hex()
    )


@pytest.mark.req("F35", "DLV-20")
def test_a_known_event_with_other_content_is_a_conflict(kernel: Kernel) -> None:
    """The answer shows the first digest and receipt; nothing is written for the second content."""
    event_id = builders.new_event_id()
    _receive(kernel, event_id)
    ((_, result, ref, _, _, digest),) = _receive(kernel, event_id, digests=[builders.digest(b"changed")])
    assert (result, ref, bytes(digest)) == ("conflict", "ref-1", DIGEST)
    assert kernel.count("inbox_receipts") == 1


@pytest.mark.req("DLV-18", "RCP-58")
def test_consumers_of_one_database_do_not_see_each_other(kernel: Kernel) -> None:
    """Each consumer has its own first receipt of the same event."""
    event_id = builders.new_event_id()
    assert _receive(kernel, event_id) == []
    assert _receive(kernel, event_id, consumer="search_consumer", ref="ref-s") == []
    assert [row[2] for row in _receive(kernel, event_id)] == ["ref-1"]


@pytest.mark.req("F32", "DLV-14")
def test_receipt_and_effect_share_one_fate(kernel: Kernel, each_guard_database: TestDatabase) -> None:
    """A handler that rolls back leaves no receipt: the event is new at the next delivery."""
    event_id = builders.new_event_id()
    consumer = Kernel(each_guard_database.connect("consumer"))
    assert _receive(consumer, event_id) == []
    consumer.connection.rollback()
    assert kernel.count("inbox_receipts") == 0
    assert _receive(consumer, event_id) == []
    consumer.connection.commit()
    assert [row[1] for row in _receive(consumer, event_id)] == ["duplicate"]


def test_a_batch_is_answered_event_by_event(kernel: Kernel) -> None:
    """New, duplicate and conflicting events of one call are told apart."""
    new, known, changed = sorted(builders.new_event_id() for _ in range(3))
    _receive(kernel, known, changed)
    answer = _receive(kernel, changed, new, known, digests=[builders.digest(b"x"), DIGEST, DIGEST])
    assert {row[0]: row[1] for row in answer} == {changed: "conflict", known: "duplicate"}


@pytest.mark.req("F32")
def test_an_event_twice_in_one_call_is_refused(kernel: Kernel) -> None:
    """The call could not say which of the two is new, and an effect would be applied twice."""
    event_id = builders.new_event_id()
    for digests in ([DIGEST, DIGEST], [DIGEST, builders.digest(b"x")]):
        with refused("SP013", "twice"):
            _receive(kernel, event_id, event_id, digests=digests)
    _receive(kernel, event_id)
    with refused("SP013", "twice"):
        _receive(kernel, event_id, event_id)
    assert kernel.count("inbox_receipts") == 1


def test_committed_at_is_the_same_for_all_receipts_of_a_transaction(kernel: Kernel) -> None:
    """The time is known before the handler runs, and the stored rows carry exactly it."""
    with kernel.connection.transaction():
        announced = kernel.value("select seapost.inbox_committed_at_v1()")
        _receive(kernel, builders.new_event_id())
        _receive(kernel, builders.new_event_id())
    assert kernel.rows("select distinct committed_at from seapost.inbox_receipts") == [(announced,)]


def test_arguments_are_bounded(kernel: Kernel) -> None:
    """Parallel arrays, a consumer, 32-byte digests and a bounded receipt; an empty call answers nothing."""
    assert _receive(kernel) == []
    with refused("SP013", "parallel"):
        kernel.rows("select seapost.inbox_receive_v1('c', %s, '{}', '{}', '{}')", [builders.new_event_id()])
    with refused("SP013"):
        kernel.rows("select seapost.inbox_receive_v1(null, '{}', '{}', '{}', '{}')")
    with refused("23514"):
        _receive(kernel, builders.new_event_id(), digests=[b"short"])
    with refused("23514"):
        _receive(kernel, builders.new_event_id(), receipt=b"x" * 65_537)
    for ref in ("", "r" * 201):
        with refused("23514"):
            _receive(kernel, builders.new_event_id(), ref=ref)
    assert kernel.count("inbox_receipts") == 0
