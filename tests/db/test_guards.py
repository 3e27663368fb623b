"""The two guard levels: what strict refuses that lean leaves to the functions, and the way there and back."""

from __future__ import annotations

from typing import LiteralString

import psycopg
import pytest

from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED, envelope
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, refused

OBJECTS = (
    "select c.conname from pg_constraint as c join pg_class as t on t.oid = c.conrelid"
    " where c.connamespace = 'seapost'::regnamespace and c.contype = 'f' and c.conparentid = 0"
    " union all select g.tgname || ' on ' || g.tgrelid::regclass::text from pg_trigger as g"
    " join pg_class as t on t.oid = g.tgrelid"
    " where t.relnamespace = 'seapost'::regnamespace and not g.tgisinternal and g.tgparentid = 0 order by 1"
)


def _level(kernel: Kernel) -> str:
    return kernel.value("select level from seapost.guard_levels")


def _set(kernel: Kernel, level: str) -> None:
    kernel.run("select seapost.guards_set_v1(%s)", level)


@pytest.mark.req("STO-10", "APP-05")
def test_the_switch_goes_there_and_back(lean_kernel: Kernel) -> None:
    """Strict adds its keys and triggers and lean takes exactly them away; setting the present level changes nothing."""
    lean = lean_kernel.rows(OBJECTS)
    changed = lean_kernel.value("select changed_at from seapost.guard_levels")
    _set(lean_kernel, "lean")
    assert lean_kernel.value("select changed_at from seapost.guard_levels") == changed
    _set(lean_kernel, "strict")
    strict = {row[0] for row in lean_kernel.rows(OBJECTS)}
    assert strict - {row[0] for row in lean} == {
        "acknowledgement_delivery",
        "delivery_event",
        "delivery_member",
        "event_definition",
        "finish_start",
        "publication_event",
        "start_delivery",
        "complete on seapost.delivery",
        "complete on seapost.event",
        "strict on seapost.event",
    }
    assert _level(lean_kernel) == "strict"
    _set(lean_kernel, "lean")
    assert lean_kernel.rows(OBJECTS) == lean


def test_an_unknown_level_is_refused(lean_kernel: Kernel) -> None:
    """There are two levels."""
    for level in ("off", "", None):
        with refused("SP013"):
            lean_kernel.run("select seapost.guards_set_v1(%s)", level)


def test_switching_keeps_the_facts_and_the_work_goes_on(lean_kernel: Kernel) -> None:
    """Deliveries in every state pass through both switches, and each can be settled at the other level."""
    lean_kernel.append_new(SHIPPED, 3)
    first, second, _ = lean_kernel.claim()
    lean_kernel.acknowledge(first)
    _set(lean_kernel, "strict")
    lean_kernel.append_new(SHIPPED, 2)
    assert lean_kernel.acknowledge(second) == []
    _set(lean_kernel, "lean")
    assert len(lean_kernel.claim(SEARCH)) == 5
    assert lean_kernel.defects() == []


@pytest.mark.req("STO-10", "DLV-18")
def test_strict_cannot_be_reached_over_broken_facts(database: TestDatabase) -> None:
    """A finish without its start stops the switch, and the database stays lean."""
    kernel = Kernel(database.connect(autocommit=True))
    kernel.run("insert into seapost.delivery_attempt_finish values (gen_random_uuid(), 1, now(), 2, 'timeout', null)")
    with refused("23503"):
        _set(kernel, "strict")
    assert _level(kernel) == "lean"


EXTRA_DELIVERY = (
    "insert into seapost.delivery select e.event_id, e.created_at, m.member_id, m.destination"
    " from seapost.event as e, seapost.delivery_set_member as m where m.destination = 'search'"
)


@pytest.mark.req("APP-05", "NEG-07", "NEG-06")
def test_strict_refuses_an_extra_delivery_at_commit(strict_kernel: Kernel) -> None:
    """A delivery to a destination that the event's own lines do not name fails the producer's commit."""
    with refused("SP007"), strict_kernel.connection.transaction():
        strict_kernel.append_new(PLACED)
        strict_kernel.run(EXTRA_DELIVERY)
    assert strict_kernel.count("outbox_events") == 0


@pytest.mark.req("APP-05", "NEG-07")
def test_strict_refuses_a_delivery_added_later(strict_kernel: Kernel) -> None:
    """The set is checked for every new delivery, not only for those that come with the event."""
    strict_kernel.append_new(PLACED)
    with refused("SP007"):
        strict_kernel.run(EXTRA_DELIVERY)
    assert strict_kernel.count("outbox_deliveries") == 1


def _insert(kernel: Kernel, text: bytes, *destinations: str) -> None:
    """Store an event and some of its deliveries without the append function."""
    kernel.run(
        "insert into seapost.event (event_id, created_at, occurred_at, aggregate_revision, definition_id,"
        " mandatory_count,"
        " event_type, schema_version, aggregate_kind, aggregate_id, envelope)"
        " select (d ->> 'eventId')::uuid, now(), now(), (d #>> '{aggregate,revision}')::int, 1, 2, d ->> 'eventType',"
        " '1', 'order', d #>> '{aggregate,id}', %s from (select convert_from(%s, 'UTF8')::jsonb as d) as x",
        text,
        text,
    )
    kernel.run(
        "insert into seapost.delivery select %s, now(), member_id, destination from seapost.delivery_set_member"
        " where event_type = %s and destination = any (%s)",
        builders.event_id_of(text),
        SHIPPED,
        list(destinations),
    )


@pytest.mark.req("APP-05", "NEG-06")
@pytest.mark.parametrize("present", [(), (BILLING,), (SEARCH,)], ids=str)
def test_strict_refuses_a_missing_delivery_at_commit(strict_kernel: Kernel, present: tuple[str, ...]) -> None:
    """An event that reaches none or only some of its mandatory destinations cannot be committed, whoever wrote it."""
    with refused("SP007"), strict_kernel.connection.transaction():
        _insert(strict_kernel, envelope(SHIPPED), *present)
    assert strict_kernel.count("outbox_events") == 0
    with strict_kernel.connection.transaction(force_rollback=True):
        _insert(strict_kernel, envelope(SHIPPED), BILLING, SEARCH)
        strict_kernel.run("set constraints all immediate")


@pytest.mark.req("APP-05", "F30")
def test_lean_reports_the_same_defect_afterwards(database: TestDatabase) -> None:
    """Without the deferred check such a row can only come from outside the functions, and audit_places names it."""
    kernel = Kernel(database.connect(autocommit=True))
    kernel.route()
    _insert(kernel, envelope(SHIPPED), BILLING)
    assert {row[0] for row in kernel.defects()} == {"mandatory delivery missing", "delivery in 0 places"}


@pytest.mark.req("STO-10", "DLV-15")
@pytest.mark.parametrize(
    "statement",
    [
        "insert into seapost.delivery_attempt_finish values (gen_random_uuid(), 1, now(), 2, 'timeout', null)",
        (
            "insert into seapost.delivery_attempt_start"
            " values (gen_random_uuid(), 1, gen_random_uuid(), now(), 1, 'billing', 'w')"
        ),
        "insert into seapost.delivery_acknowledgement values (gen_random_uuid(), 1, now(), 'billing', sha256(''), 'r')",
        "insert into seapost.publication values (gen_random_uuid(), now())",
        "insert into seapost.delivery values (gen_random_uuid(), now(), 1, 'billing')",
    ],
    ids=["finish", "start", "acknowledgement", "publication", "delivery"],
)
def test_strict_refuses_a_fact_without_its_origin(strict_kernel: Kernel, statement: LiteralString) -> None:
    """A finish needs its start, a start and an acknowledgement their delivery, a publication and a delivery their
    event.
    """
    with pytest.raises(psycopg.Error) as caught:
        strict_kernel.run(statement)
    assert caught.value.sqlstate in {"23503", "SP007"}


@pytest.mark.req("REF-01")
def test_strict_allows_one_event_per_revision_of_an_aggregate(strict_kernel: Kernel) -> None:
    """A second event of the same producer, kind, id and revision is refused; another revision or producer is not."""
    aggregate = {"kind": "order", "id": "order-17", "revision": 3}
    assert strict_kernel.append(envelope(aggregate=aggregate)) == 1
    with refused("SP002", "revision 3 of aggregate order-17"):
        strict_kernel.append(envelope(SHIPPED, aggregate=aggregate))
    assert strict_kernel.append(envelope(aggregate=aggregate | {"revision": 4})) == 1
    assert strict_kernel.append(envelope(aggregate=aggregate, producer="depot")) == 1


def test_the_switch_to_strict_learns_the_revisions_of_lean_times(lean_kernel: Kernel) -> None:
    """Events appended at lean occupy their revision afterwards, and two of one revision stop the switch."""
    aggregate = {"kind": "order", "id": "order-17", "revision": 3}
    lean_kernel.append(envelope(aggregate=aggregate))
    _set(lean_kernel, "strict")
    with refused("SP002"):
        lean_kernel.append(envelope(aggregate=aggregate))
    _set(lean_kernel, "lean")
    lean_kernel.append(envelope(aggregate=aggregate | {"revision": 4}))
    _set(lean_kernel, "strict")
    _set(lean_kernel, "lean")
    lean_kernel.append(envelope(aggregate=aggregate))
    with refused("23505"):
        _set(lean_kernel, "strict")
    assert _level(lean_kernel) == "lean"
