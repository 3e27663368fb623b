"""`audit_places` reports every defect that the triggers and functions normally make impossible (F30).

Each case is produced behind the triggers' back, by a superuser in replica mode, in a database that holds deliveries in
every state; the sound database reports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import LiteralString

import pytest

from seapost.database.installer import GuardLevel
from tests.kit.builders import PLACED, SEARCH, SHIPPED
from tests.kit.database import DatabaseServer
from tests.kit.kernel import Kernel

# What is done to the facts → the defects that the view then reports (a damage can have several faces).
DAMAGES: dict[str, tuple[LiteralString, set[str]]] = {
    "a pending row vanishes": (
        "delete from seapost.delivery_ready where destination = 'search'",
        {"delivery in 0 places"},
    ),
    "a delivery stands in two places": (
        (
            "insert into seapost.delivery_ready (event_id, available_at, created_at, member_id, attempt_count, "
            "failure_count, lost_count, event_digest, destination) select d.event_id, now(), d.created_at, "
            "d.member_id, 1, 0, 0, e.digest, d.destination from seapost.delivery as d join seapost.event as e "
            "using (event_id) join seapost.delivery_acknowledgement as a using (event_id, destination) where "
            "d.destination = 'billing' limit 1"
        ),
        {"delivery in 2 places"},
    ),
    "a place has no delivery": (
        (
            "insert into seapost.delivery_ready (event_id, available_at, created_at, member_id, attempt_count, "
            "failure_count, lost_count, event_digest, destination) select event_id, now(), now(), 1, 0, 0, 0, "
            "digest, 'nowhere' from seapost.event limit 1"
        ),
        {"place without delivery"},
    ),
    "a delivery has no event": (
        (
            "with d as (insert into seapost.delivery values (gen_random_uuid(), now(), 1, 'billing') returning *) "
            "insert into seapost.delivery_ready (event_id, available_at, created_at, member_id, attempt_count, "
            "failure_count, lost_count, event_digest, destination) select event_id, now(), created_at, 1, 0, 0, "
            "0, '', 'billing' from d"
        ),
        {"delivery without event"},
    ),
    "a mandatory delivery is missing": (
        "delete from seapost.delivery where destination = 'search'",
        {"mandatory delivery missing", "place without delivery", "start without delivery"},
    ),
    "a delivery belongs to no line of the definition": (
        "update seapost.delivery set member_id = 99 where destination = 'search'",
        {"copy differs from the fact", "delivery outside its definition", "mandatory delivery missing"},
    ),
    "an event has a pair that its definition lacks": (
        "update seapost.event set mandatory_count = 7",
        {"event of an unknown pair", "published too early or not at all"},
    ),
    "a start has no delivery": (
        (
            "insert into seapost.delivery_attempt_start values (gen_random_uuid(), 900, gen_random_uuid(), now(), "
            "1, 'billing', 'w')"
        ),
        {"open start without lease", "start without delivery"},
    ),
    "a finish has no start": (
        ("insert into seapost.delivery_attempt_finish values (gen_random_uuid(), 900, now(), 2, 'timeout', null)"),
        {"finish without start"},
    ),
    "a lease vanishes under a running attempt": (
        "delete from seapost.delivery_lease",
        {"delivery in 0 places", "open start without lease"},
    ),
    "a lease has another token than its start": (
        "update seapost.delivery_lease set token = gen_random_uuid()",
        {"open start without lease"},
    ),
    "a lease outlives its finished attempt": (
        (
            "insert into seapost.delivery_attempt_finish select event_id, attempt_id, now(), 2, 'timeout', null "
            "from seapost.delivery_lease"
        ),
        {"lease without its open start"},
    ),
    "an acknowledgement lost its finish": (
        "delete from seapost.delivery_attempt_finish where outcome = 1",
        {"acknowledged without its finish", "open start without lease"},
    ),
    "an acknowledging finish lost its acknowledgement": (
        "delete from seapost.delivery_acknowledgement",
        {"acknowledging finish without acknowledgement", "delivery in 0 places", "published too early or not at all"},
    ),
    "a quarantine lost its finish": (
        "delete from seapost.delivery_attempt_finish where outcome = 3",
        {"open start without lease", "quarantined without its finish"},
    ),
    "a quarantining finish lost its quarantine": (
        "delete from seapost.delivery_quarantine",
        {"delivery in 0 places", "quarantining finish without quarantine"},
    ),
    "an acknowledgement names the attempt of another destination": (
        (
            "update seapost.delivery_attempt_start set destination = 'search' where attempt_id = (select "
            "a.attempt_id from seapost.delivery_acknowledgement as a  join seapost.delivery as d on d.event_id = "
            "a.event_id and d.destination = 'search' limit 1)"
        ),
        {
            "attempt count differs from the starts",
            "attempt numbers not 1 to n",
            "settled by an attempt of another destination",
        },
    ),
    "a publication came too early": (
        (
            "insert into seapost.publication select event_id, now() from seapost.delivery where destination = "
            "'search' limit 1"
        ),
        {"published too early or not at all"},
    ),
    "a complete event was not published": (
        "delete from seapost.publication",
        {"published too early or not at all"},
    ),
    "a publication has no event": (
        "insert into seapost.publication values (gen_random_uuid(), now())",
        {"publication without event"},
    ),
    "an attempt number is missing": (
        ("update seapost.delivery_attempt_start set attempt_number = attempt_number + 1 where destination = 'billing'"),
        {"attempt numbers not 1 to n"},
    ),
    "the count of attempts was reset": (
        "update seapost.delivery_ready set attempt_count = 0 where attempt_count > 0",
        {"attempt count differs from the starts"},
    ),
    "a moving row carries another digest": (
        "update seapost.delivery_ready set event_digest = sha256('other')",
        {"copy differs from the fact"},
    ),
}


@pytest.fixture(scope="module")
def damaged(database_server: DatabaseServer) -> Iterator[Kernel]:
    """Give a lean kernel with deliveries in every state; each test damages it in a transaction that is rolled back."""
    database = database_server.create(GuardLevel.LEAN)
    kernel = Kernel(database.connect(autocommit=True))
    kernel.route()
    kernel.append_new(SHIPPED)
    kernel.append_new(PLACED, 5)
    done, also_done, isolated, postponed, *_ = kernel.claim(limit=5)
    assert kernel.acknowledge(done, also_done) == kernel.quarantine(isolated) == kernel.retry(postponed) == []
    kernel.retry(*kernel.claim(SEARCH))
    yield kernel
    database_server.drop(database)


@pytest.mark.req("F30")
def test_a_sound_database_reports_nothing(damaged: Kernel) -> None:
    """Pending, postponed, leased, acknowledged, quarantined and published rows are no defects."""
    assert damaged.defects() == []
    statuses = {row[0] for row in damaged.rows("select status from seapost.outbox_deliveries")}
    assert statuses == {"pending", "leased", "acknowledged", "quarantined"}


@pytest.mark.req("F30", "NEG-01")
@pytest.mark.parametrize("damage", DAMAGES)
def test_each_defect_is_reported_by_its_name(damaged: Kernel, damage: str) -> None:
    """Whatever a key or a trigger would have prevented, the view names, and nothing else."""
    statement, defects = DAMAGES[damage]
    connection = damaged.connection
    with connection.transaction(force_rollback=True):
        connection.execute("set local session_replication_role = replica")
        assert connection.execute(statement).rowcount > 0
        assert {row[0] for row in damaged.defects()} == defects
    assert damaged.defects() == []
