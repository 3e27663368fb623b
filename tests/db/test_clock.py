"""Whose clock: every lease and due time is the database's, as an interval from its own now (F19)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tests.kit.builders import BILLING
from tests.kit.clock import Clock
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel

SECOND = timedelta(seconds=1)
SPRING_FORWARD = datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC)


@pytest.mark.req("F19", "AMB-06", "CLM-10")
def test_leases_and_delays_move_with_the_databases_clock_only(kernel: Kernel, clock: Clock) -> None:
    """However long the test really takes, nothing expires and nothing falls due until the database's clock moves."""
    kernel.append_new()
    claim = kernel.claim_one(lease=timedelta(milliseconds=100))
    kernel.connection.execute("select count(*) from generate_series(1, 200000)")
    assert kernel.recover() == {}
    kernel.retry(claim, delay=timedelta(milliseconds=1))
    assert kernel.claim() == []
    clock.advance(0.001)
    assert len(kernel.claim()) == 1


@pytest.mark.req("F19")
def test_a_clock_that_goes_back_steals_nothing_and_loses_nothing(kernel: Kernel, clock: Clock) -> None:
    """Set back an hour, leases run longer and due times wait; nobody is robbed, and the fence still decides."""
    kernel.append_new()
    claim = kernel.claim_one(lease=SECOND)
    clock.advance(-3600)
    assert kernel.recover() == {}
    assert kernel.retry(claim) == []
    (again,) = kernel.claim(lease=SECOND)
    assert kernel.acknowledge(claim)[0][2] == "stale"
    clock.advance(3601)
    assert kernel.recover() == {BILLING: 1}
    assert kernel.acknowledge(again)[0][2] == "stale"


@pytest.mark.req("F19")
@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/New_York", "Europe/Berlin", "UTC"])
def test_the_sessions_time_zone_decides_nothing(
    kernel: Kernel, clock: Clock, each_guard_database: TestDatabase, zone: str
) -> None:
    """Across a change to summer time, a lease of a day and a delay of a day are 24 hours in every zone."""
    clock.set(SPRING_FORWARD)
    worker = Kernel(each_guard_database.connect("dispatcher", autocommit=True))
    worker.value("select set_config('timezone', %s, false)", zone)
    kernel.append_new(count=2)
    held, postponed = (worker.claim(limit=1, lease=timedelta(days=1))[0] for _ in range(2))
    worker.retry(postponed, delay=timedelta(days=1))
    expires, due = kernel.row("select max(lease_expires_at), max(available_at) from seapost.outbox_deliveries")
    assert expires == due == SPRING_FORWARD + timedelta(hours=24)
    clock.set(SPRING_FORWARD + timedelta(hours=23, minutes=59))
    assert (worker.claim(), worker.recover()) == ([], {})
    clock.set(SPRING_FORWARD + timedelta(hours=24))
    assert [c.fence for c in worker.claim()] != []
    assert worker.recover() == {BILLING: 1}
    assert worker.acknowledge(held)[0][2] == "stale"


@pytest.mark.req("F19")
def test_a_renewal_late_in_a_long_transaction_uses_the_moving_clock(lean_kernel: Kernel) -> None:
    """With the real clock, a renewal in a transaction that began earlier counts from now, not from its beginning."""
    lean_kernel.append_new()
    claim = lean_kernel.claim_one()
    with lean_kernel.connection.transaction():
        began = lean_kernel.value("select now()")
        lean_kernel.value("select count(*) from generate_series(1, 300000)")
        lean_kernel.renew(claim, lease=timedelta(seconds=10))
        expires = lean_kernel.value("select lease_expires_at from seapost.outbox_deliveries")
    assert expires - timedelta(seconds=10) > began


@pytest.mark.req("F19")
def test_every_stored_time_has_a_zone(lean_kernel: Kernel) -> None:
    """All times are timestamptz, so no reader can mistake one for local time."""
    rows = lean_kernel.rows(
        "select a.attrelid::regclass::text, a.attname from pg_attribute as a join pg_class as c on c.oid = a.attrelid"
        " where c.relnamespace = 'seapost'::regnamespace and a.attnum > 0"
        " and a.atttypid in ('timestamp'::regtype, 'date'::regtype, 'time'::regtype)"
    )
    assert rows == []


@pytest.mark.req("F19", "CLM-10")
def test_no_runtime_role_can_replace_the_clock(lean_kernel: Kernel, database: TestDatabase) -> None:
    """Only who owns the schema could; a temporary function or a search path of the caller's own changes nothing."""
    connection = database.connect("dispatcher", autocommit=True)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(
            "create or replace function seapost.clock_now() returns timestamptz language sql as 'select now()'"
        )
    connection.execute(
        "create function pg_temp.clock_now() returns timestamptz language sql as $$ select '-infinity'::timestamptz $$"
    )
    connection.execute("set search_path = pg_temp, seapost")
    lean_kernel.append_new()
    assert len(Kernel(connection).claim()) == 1
