"""One suite for every library and mode: the caller's transaction decides everything, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from seapost.contracts.envelope import Aggregate, PreparedEvent, Tenant, build_envelope_of, new_event_id
from seapost.contracts.events import Event
from seapost.model.errors import (
    AppendOutsideTransaction,
    BackPressure,
    CanonicalError,
    ContractError,
    EventConflict,
    EventNotRoutable,
    InvalidEnvelope,
    LimitExceeded,
    NoActiveDeliverySet,
)
from seapost.outbox.append import EVENTS_PER_CALL_MAX, prepare
from tests.conformance.conftest import MakeProducer, Shop
from tests.kit import builders
from tests.kit.drivers.base import Producer

MOMENT = datetime(2026, 1, 31, tzinfo=UTC)
DIGEST = "9ca94e7d0cfe69cd4a1a2608cff00304a756f357cb8eb577276807bacff92218"


class Counted(Event, type="test.counted@1", producer="tests", aggregate="counter"):
    """An event that is routed."""

    n: int


class Unrouted(Event, type="test.unrouted@1", producer="tests"):
    """An event that is not in the delivery set."""

    n: int


def counted(n: int) -> PreparedEvent:
    """A fresh prepared event."""
    return prepare(Counted(n=n), key=f"c-{n}", revision=1)


def document(payload: dict[str, Any], identity: UUID | None = None) -> PreparedEvent:
    """A prepared event of any payload."""
    return build_envelope_of(
        payload,
        event_type="test.counted@1",
        event_schema_version="1",
        producer="tests",
        aggregate=Aggregate("counter", "c-1", 1),
        tenant=Tenant("organization", "default", "default"),
        occurred_at=MOMENT,
        event_id=identity or new_event_id(),
    )


@pytest.mark.req("F01", "GEN-13")
def test_others_see_it_after_the_commit(producer: Producer, shop: Shop) -> None:
    """Event and business row appear together, at the caller's commit and not before."""
    with producer.transaction():
        producer.execute("insert into public.business values (1)")
        producer.append(Counted(n=1), key="c-1", revision=1)
        assert (shop.numbers(), shop.business()) == ([], [])

    assert (shop.numbers(), shop.business()) == ([1], [1])


@pytest.mark.req("F01", "GEN-13")
def test_a_rollback_leaves_nothing(producer: Producer, shop: Shop) -> None:
    """What rolls back was never there; the same connection then appends as before."""
    with producer.transaction(then="rollback"):
        producer.execute("insert into public.business values (1)")
        producer.append(Counted(n=1), key="c-1", revision=1)
    assert (shop.numbers(), shop.business(), shop.kernel.count("delivery")) == ([], [], 0)

    with producer.transaction():
        producer.append(Counted(n=2), key="c-2", revision=1)
    assert shop.numbers() == [2]


@pytest.mark.req("F01")
def test_a_savepoint_takes_its_events_with_it(producer: Producer, shop: Shop) -> None:
    """Rolling back to a savepoint of the library undoes what was appended after it, and only that."""
    with producer.transaction():
        producer.append(Counted(n=1), key="c-1", revision=1)
        with producer.savepoint(then="rollback"):
            producer.execute("insert into public.business values (2)")
            producer.append(Counted(n=2), key="c-2", revision=1)
        with producer.savepoint():
            producer.append(Counted(n=3), key="c-3", revision=1)
        producer.execute("insert into public.business values (4)")

    assert (shop.numbers(), shop.business()) == ([1, 3], [4])


@pytest.mark.req("F03", "TST-09")
def test_the_same_event_again_changes_nothing(producer: Producer, shop: Shop) -> None:
    """A repeated append says that nothing was new, in the same transaction and in a later one."""
    event = counted(1)
    with producer.transaction():
        assert producer.append_many([event, counted(2)]) == 2
        assert producer.append_many([event]) == 0
    with producer.transaction():
        assert producer.append_many([event, counted(3)]) == 1

    assert shop.numbers() == [1, 2, 3]


@pytest.mark.req("F03")
def test_other_content_under_a_known_id_is_refused(producer: Producer, shop: Shop) -> None:
    """A conflict is an error of its own; a savepoint around the append keeps the rest of the transaction."""
    identity = new_event_id()
    with producer.transaction():
        producer.append_many([document({"n": 1}, identity)])
    with producer.transaction():
        producer.execute("insert into public.business values (1)")
        with producer.refused("SP002", EventConflict), producer.savepoint():
            producer.append_many([document({"n": 2}, identity)])
        producer.append_many([counted(3)])

    assert (shop.numbers(), shop.business()) == ([1, 3], [1])


@pytest.mark.req("SET-38", "SET-39")
def test_an_event_without_a_route_fails_its_transaction(producer: Producer, shop: Shop) -> None:
    """The error names the event; the transaction is failed, as after any error of the database."""
    with producer.transaction(then="rollback"):
        with producer.refused("SP003", EventNotRoutable):
            producer.append_many([counted(1), prepare(Unrouted(n=2), key="u-1", revision=1)])
        with producer.refused("25P02"):
            producer.append_many([counted(3)])

    assert shop.numbers() == []


@pytest.mark.req("APP-01")
def test_without_an_active_delivery_set(producer: Producer, bare_shop: Shop) -> None:
    """The set comes from the database alone."""
    with producer.refused("SP001", NoActiveDeliverySet), producer.transaction():
        producer.append_many([counted(1)])

    assert bare_shop.kernel.count("event") == 0


def test_a_limit_of_the_destination_reaches_the_caller(producer: Producer, shop: Shop) -> None:
    """Back-pressure is an error of its own, and the business change is refused with the event."""
    shop.kernel.run("select seapost.backpressure_set_v1(%s, 1, 'refuse', 0, 'tester')", builders.BILLING)
    with producer.transaction():
        producer.append_many([counted(1)])
    with producer.refused("SP024", BackPressure), producer.transaction():
        producer.execute("insert into public.business values (2)")
        producer.append_many([counted(2)])

    assert (shop.numbers(), shop.business()) == ([1], [])


@pytest.mark.req("F04")
def test_an_envelope_that_breaks_a_rule_is_named(producer: Producer, shop: Shop) -> None:
    """The database has the last word about the bytes, whoever wrote them."""
    event = counted(1)
    broken = replace(event, envelope=event.envelope.replace(b'"eventId":"', b'"eventId":"0'))
    with producer.refused("SP006", InvalidEnvelope), producer.transaction():
        producer.append_many([counted(2), broken])

    assert shop.numbers() == []


@pytest.mark.req("F01")
def test_autocommit_is_refused(make: MakeProducer, shop: Shop) -> None:
    """Where every statement commits by itself an event would be alone: refused with advice, before anything is sent."""
    producer = make(autocommit=True)
    if not producer.kind.refuses_autocommit:
        pytest.skip("plain SQL commits alone when it is told to")
    with pytest.raises(AppendOutsideTransaction, match="transaction"):
        producer.append(Counted(n=1), key="c-1", revision=1)
    with pytest.raises(AppendOutsideTransaction):
        producer.append_many([])

    assert shop.numbers() == []


@pytest.mark.req("F01")
def test_many_at_once(producer: Producer, shop: Shop) -> None:
    """A thousand events are one call; none is no call."""
    with producer.transaction():
        assert producer.append_many(counted(n) for n in range(1000)) == 1000

    assert shop.numbers() == list(range(1000))


@pytest.mark.req("F04")
def test_too_many_are_refused_before_anything_is_sent(producer: Producer, shop: Shop) -> None:
    """The limit of one call is named, and the transaction stays usable."""
    if not producer.kind.translates:
        pytest.skip("plain SQL has the limit in the database")
    event = counted(1)
    with producer.transaction():
        with pytest.raises(LimitExceeded, match=str(EVENTS_PER_CALL_MAX)):
            producer.append_many([event] * (EVENTS_PER_CALL_MAX + 1))
        producer.append_many([event])

    assert shop.numbers() == [1]


@pytest.mark.req("F04", "STO-13")
def test_text_is_stored_as_it_is(producer: Producer, shop: Shop) -> None:
    """Astral characters, composed and decomposed letters, quotes, percent signs and colons arrive byte for byte."""
    event = document(
        {"n": 1, "a": "\\u0000", "b": "\U0001f600", "café": "cafe\u0301", "c": "50%s :envelopes $1 'x' \\\\ \"y\" %%"}
    )
    with producer.transaction():
        producer.append_many([event])

    assert shop.kernel.rows("select event_envelope from seapost.outbox_events") == [(event.envelope,)]


@pytest.mark.req("F04", "F11")
@pytest.mark.parametrize("n", ["x\u0000y", "\ud83d"], ids=["nul", "half a pair"])
def test_what_no_database_can_hold_is_refused_at_the_boundary(n: str, producer: Producer, shop: Shop) -> None:
    """Nothing was sent, so the caller's transaction is still usable."""
    with producer.transaction():
        with pytest.raises(CanonicalError, match="payload"):
            producer.append_many([document({"n": n})])
        with pytest.raises(ContractError) as refusal:
            producer.append(Counted(n=1), key="", revision=1)
        assert refusal.value.pointer == "/aggregate/id"
        producer.append(Counted(n=1), key="c-1", revision=1)

    assert shop.numbers() == [1]


@pytest.mark.req("STO-13", "F36")
def test_the_stored_bytes_are_those_of_the_event(producer: Producer, shop: Shop) -> None:
    """One event, fixed in every byte, is stored alike by every driver: the digest is a constant."""
    event = document({"n": 1, "text": "grüße \U0001f600"}, UUID("01981f3c-5d2e-7a31-9c44-0f6f2b7f1d10"))
    with producer.transaction():
        producer.append_many([event])

    ((stored, digest),) = shop.kernel.rows("select event_envelope, event_envelope_sha256 from seapost.outbox_events")
    assert stored == event.envelope
    assert digest == DIGEST
