"""What runs through PgBouncer in transaction mode, and what says that it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from seapost.database.installer import migrate
from seapost.database.pool import open_pool, open_sync_pool
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.dispatcher.settings import DestinationSettings, DispatcherSettings
from seapost.inbox.receive import Receiving
from seapost.model.errors import UnsupportedDatabase
from seapost.transport.inprocess import InProcessTransport
from tests.kit import builders, commands
from tests.kit.consumer import DEFINITION, NAME, ORDERED, PAID, Script, scripted_inbox
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually_async
from tests.kit.kernel import Kernel
from tests.kit.pgbouncer import PgBouncer

POLLING = DispatcherSettings(recover_every_seconds=0.05, poll_seconds=(0.005, 0.02))
DEAF_FOR = DispatcherSettings(poll_seconds=(0.005, 60.0))
"""Between two looks lies a minute: whatever comes sooner was heard."""

EFFECTS = "create table public.effect (event_id uuid not null, colour text not null)"
SLEEPERS = """
select count(*) from pg_locks as l join pg_stat_activity as a using (pid)
where l.locktype = 'advisory' and a.datname = current_database() and a.application_name = 'seapost-listener'"""
SESSION_SETTINGS = "select name, setting from pg_settings where source = 'session' and name <> 'application_name'"
"""PgBouncer itself gives the session the name of each client."""
HELD = """
select count(*) from pg_locks as l join pg_stat_activity as a using (pid)
where l.locktype = 'advisory' and a.datname = current_database() and a.application_name <> 'seapost-listener'"""


@pytest.fixture
def kernel(database: TestDatabase) -> Kernel:
    """A database that is producer and consumer in one, as an onlooker sees it directly."""
    seen = Kernel(database.connect(autocommit=True))
    seen.register(DEFINITION)
    seen.activate("7", DEFINITION)
    seen.run(EFFECTS)
    return seen


def append(dsn: str, kind: str, *, count: int = 1, do: str = "apply") -> None:
    """Append events through a connection that prepares nothing."""
    envelopes = [builders.envelope(kind, payload={"do": do}) for _ in range(count)]
    with psycopg.connect(dsn, prepare_threshold=None) as connection:
        connection.execute("select seapost.outbox_append_v1(%s)", (envelopes,))


@asynccontextmanager
async def working(dsn: str, listen_dsn: str | None, settings: DispatcherSettings) -> AsyncGenerator[Dispatcher]:
    """A dispatcher and an inbox with handlers of both colours, all on pools of this connection string."""
    async with open_pool(dsn, part="dispatcher", size_max=8, behind_pooler=True) as pool:
        with open_sync_pool(dsn, part="inbox", behind_pooler=True) as sync_pool:
            async with Receiving(scripted_inbox(Script()), pool, sync_pool) as receiving:
                consumer = Destination(DestinationSettings(name=NAME), InProcessTransport(receiving.receive))
                dispatcher = Dispatcher(pool, [consumer], listen_dsn=listen_dsn, settings=settings)
                task = asyncio.create_task(dispatcher.run())
                try:
                    yield dispatcher
                finally:
                    dispatcher.stop()
                    await asyncio.wait_for(task, 30)


async def acknowledged(kernel: Kernel, number: int) -> None:
    """Wait until so many deliveries are acknowledged, each with one effect."""

    def done() -> bool:
        return kernel.count("delivery_acknowledgement") == number

    await eventually_async(done, what=f"{number} acknowledgements")
    assert kernel.value("select count(*) from public.effect") == number
    assert kernel.count("inbox_receipt") == number


@pytest.mark.req("F84")
def test_it_is_the_transaction_mode(pgbouncer: PgBouncer, database: TestDatabase) -> None:
    """Two clients take turns on one server session: nothing of a session can be relied on here."""
    with (
        psycopg.connect(pgbouncer.dsn(database.dsn), autocommit=True, prepare_threshold=None) as one,
        psycopg.connect(pgbouncer.dsn(database.dsn), autocommit=True, prepare_threshold=None) as other,
    ):
        seen = [client.execute("select pg_backend_pid()").fetchone() for client in (one, other, one, other)]
        assert len(set(seen)) == 1
        assert one.info.backend_pid != other.info.backend_pid


@pytest.mark.req("F84")
async def test_everything_but_listening_goes_through(
    pgbouncer: PgBouncer, database: TestDatabase, kernel: Kernel
) -> None:
    """Append, claim, deliver, receive and settle through the pooler; the dispatcher polls."""
    dsn = pgbouncer.dsn(database.dsn)
    async with working(dsn, None, POLLING):
        append(dsn, ORDERED, count=30)
        append(dsn, PAID, count=30)
        await acknowledged(kernel, 60)

    assert kernel.value(HELD) == 0
    assert kernel.defects() == []


@pytest.mark.req("F84")
async def test_a_direct_listener_hears_appends_that_went_through(
    pgbouncer: PgBouncer, database: TestDatabase, kernel: Kernel
) -> None:
    """The sleep is declared on a direct session, so an append through the pooler wakes the dispatcher."""
    dsn = pgbouncer.dsn(database.dsn)
    async with working(dsn, database.dsn, DEAF_FOR):
        for number in (1, 2):
            await eventually_async(lambda: kernel.value(SLEEPERS) > 0, what="a declared sleep")
            append(dsn, ORDERED)
            await acknowledged(kernel, number)

    assert kernel.value(HELD) == 0


@pytest.mark.req("F84")
async def test_listening_through_it_is_refused(pgbouncer: PgBouncer, database: TestDatabase, kernel: Kernel) -> None:
    """A listener that would hear nothing ends the dispatcher with advice."""
    assert kernel.count("event") == 0
    dsn = pgbouncer.dsn(database.dsn)
    async with open_pool(dsn, part="dispatcher", behind_pooler=True) as pool:
        receiving = Receiving(scripted_inbox(Script()), pool, open_sync_pool(dsn, part="inbox", behind_pooler=True))
        consumer = Destination(DestinationSettings(name=NAME), InProcessTransport(receiving.receive))
        dispatcher = Dispatcher(pool, [consumer], listen_dsn=dsn, settings=POLLING)
        with pytest.raises((UnsupportedDatabase, ExceptionGroup)) as refusal:
            await asyncio.wait_for(dispatcher.run(), 30)
    assert "direct connection" in _texts(refusal.value)


def _texts(error: BaseException) -> str:
    parts: Any = getattr(error, "exceptions", ())
    return " ".join((str(error), *map(_texts, parts)))


@pytest.mark.req("F84")
def test_migrating_through_it_is_refused(pgbouncer: PgBouncer, empty_database: TestDatabase) -> None:
    """The installer's session lock would guard nothing."""
    with pytest.raises(UnsupportedDatabase, match="direct connection"):
        migrate(pgbouncer.dsn(empty_database.dsn))


@pytest.mark.req("F84")
def test_commands_take_the_way_that_they_can(
    pgbouncer: PgBouncer, empty_database: TestDatabase, tmp_path: Path
) -> None:
    """With both addresses `migrate` goes to the server itself, and what only looks goes through the pooler."""
    env = {
        "SEAPOST_DATABASE_DSN": pgbouncer.dsn(empty_database.dsn),
        "SEAPOST_DATABASE_BEHIND_POOLER": "true",
    }
    refused = commands.seapost("migrate", folder=tmp_path, env=env)
    assert refused.code != 0
    assert "direct connection" in refused.stderr

    env["SEAPOST_DATABASE_DIRECT_DSN"] = empty_database.dsn
    migrated = commands.seapost("migrate", folder=tmp_path, env=env)
    assert migrated.code == 0, migrated.stderr
    looked = commands.seapost("status", "--json", folder=tmp_path, env=env)
    assert looked.code == 0, looked.stderr


@pytest.mark.req("F84")
def test_our_pools_leave_nothing_in_a_shared_session(pgbouncer: PgBouncer, database: TestDatabase) -> None:
    """What a pool behind a pooler ran leaves the server session as it was, for whoever gets it next."""
    dsn = pgbouncer.dsn(database.dsn)
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as other:
        before = other.execute(SESSION_SETTINGS).fetchall()
        with open_sync_pool(dsn, part="inbox", behind_pooler=True) as pool, pool.connection() as connection:
            for _ in range(10):
                connection.execute("select %s::int", (1,))
                connection.commit()
        after = other.execute(SESSION_SETTINGS).fetchall()
        prepared = other.execute("select count(*) from pg_prepared_statements").fetchone()

    assert after == before
    assert prepared == (0,)
