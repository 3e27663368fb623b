"""The listening connection hears quickly, knows when it is deaf, and comes back by itself."""

from __future__ import annotations

import asyncio
import socket
import statistics
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest
from psycopg import AsyncConnection, conninfo

from seapost.database.listener import Listener, ListenerTimes
from seapost.model.errors import InvalidSetting, UnsupportedDatabase
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.eventually import eventually_async

QUICK = ListenerTimes(
    probe_every_seconds=0.2, probe_timeout_seconds=0.3, backoff_base_seconds=0.01, backoff_max_seconds=0.05
)
LOCK_KEY = 4_294_967_296_001


async def _declare(connection: AsyncConnection, destination: str) -> bool:
    del destination
    row = await (await connection.execute("select pg_try_advisory_lock(%s)", (LOCK_KEY,))).fetchone()
    return row is not None and bool(row[0])


async def _withdraw(connection: AsyncConnection, destination: str) -> bool:
    del destination
    row = await (await connection.execute("select pg_advisory_unlock(%s)", (LOCK_KEY,))).fetchone()
    return row is not None and bool(row[0])


class Ear:
    """A running listener and what it has heard."""

    def __init__(self, dsn: str, times: ListenerTimes) -> None:
        self.heard: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
        self.sweeps = 0
        self.listener = Listener(
            dsn,
            on_notify=lambda payload: self.heard.put_nowait((payload, time.perf_counter())),
            on_connected=self._sweep,
            declare=_declare,
            withdraw=_withdraw,
            times=times,
        )

    def _sweep(self) -> None:
        self.sweeps += 1


@asynccontextmanager
async def _ear(dsn: str, times: ListenerTimes = QUICK) -> AsyncGenerator[Ear]:
    ear = Ear(dsn, times)
    task = asyncio.create_task(ear.listener.run())
    try:
        await eventually_async(lambda: ear.listener.connected or task.done(), what="a listening session")
        yield ear
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_notification_arrives_at_once(empty_database: TestDatabase) -> None:
    """Half of a hundred notifications reach the callback in less than two milliseconds after the commit returned."""
    producer = await empty_database.connect_async(autocommit=True)
    delays: list[float] = []
    async with _ear(empty_database.dsn) as ear:
        for number in range(100):
            await producer.execute("select pg_notify('seapost', %s)", (str(number),))
            committed = time.perf_counter()
            payload, arrived = await asyncio.wait_for(ear.heard.get(), 5)
            assert payload == str(number)
            delays.append(arrived - committed)
    assert statistics.median(delays) < 0.002


async def test_notifications_and_questions_share_the_session(empty_database: TestDatabase) -> None:
    """Declarations asked from many tasks at once are answered in turn, and no notification is lost meanwhile."""
    producer = await empty_database.connect_async(autocommit=True)
    async with _ear(empty_database.dsn) as ear:

        async def ask() -> None:
            for _ in range(20):
                assert await ear.listener.declare("billing")
                assert await ear.listener.withdraw("billing")

        async def tell() -> None:
            for number in range(50):
                await producer.execute("select pg_notify('seapost', %s)", (str(number),))

        await asyncio.gather(ask(), ask(), tell())
        payloads = [(await asyncio.wait_for(ear.heard.get(), 5))[0] for _ in range(50)]
    assert payloads == [str(number) for number in range(50)]


async def test_one_declaration_at_a_time(empty_database: TestDatabase) -> None:
    """Of two listeners only one holds the declaration, and it ends with the session that made it."""
    async with _ear(empty_database.dsn) as second:
        async with _ear(empty_database.dsn) as first:
            assert await first.listener.declare("billing")
            assert not await second.listener.declare("billing")
        assert await eventually_async(lambda: second.listener.declare("billing"), what="the declaration")


async def test_a_cancelled_question_leaves_the_session_whole(empty_database: TestDatabase) -> None:
    """A task that is cancelled while it declares neither breaks the session nor blocks the next question."""
    async with _ear(empty_database.dsn) as ear:
        for _ in range(20):
            task = asyncio.create_task(ear.listener.declare("billing"))
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert await ear.listener.declare("billing")
        assert ear.listener.connections == 1


@pytest.mark.req("F72")
async def test_a_killed_session_comes_back_and_sweeps(empty_database: TestDatabase) -> None:
    """A terminated backend is noticed without a probe; the new session listens and asks for a sweep."""
    producer = await empty_database.connect_async(autocommit=True)
    patient = ListenerTimes(probe_every_seconds=3600, backoff_base_seconds=0.01, backoff_max_seconds=0.05)
    async with _ear(empty_database.dsn, patient) as ear:
        assert ear.sweeps == 1
        process_id = ear.listener.process_id
        await producer.execute("select pg_terminate_backend(%s)", (process_id,))
        await eventually_async(lambda: ear.sweeps == 2, what="the second sweep")
        assert ear.listener.process_id not in {None, process_id}
        await producer.execute("select pg_notify('seapost', 'after')")
        assert (await asyncio.wait_for(ear.heard.get(), 5))[0] == "after"


@pytest.mark.req("F72")
async def test_an_immediate_restart_of_the_server_is_survived(database_server: DatabaseServer) -> None:
    """While the server is away the listener says so; when it is back the listener listens again."""
    if database_server.embedded is None:
        pytest.skip("the server named by SEAPOST_TEST_DSN is not ours to restart")
    embedded = database_server.embedded
    async with _ear(embedded.dsn()) as ear:
        await asyncio.to_thread(embedded.stop, immediate=True)
        await eventually_async(lambda: not ear.listener.connected, what="the loss of the session")
        assert await ear.listener.declare("billing") is False
        await asyncio.to_thread(embedded.start)
        await eventually_async(lambda: ear.sweeps == 2, what="the second sweep")


class BlackHole:
    """A relay that on request swallows everything without closing anything, as a broken network does."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.swallows = False
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection in both directions."""
        there, back = await asyncio.open_unix_connection(self.target)
        self._writers += [writer, back]
        await asyncio.gather(self._copy(reader, back), self._copy(there, writer))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if not self.swallows:
                    target.write(data)
                    await target.drain()
        if not self.swallows:
            target.close()

    def close(self) -> None:
        """Cut everything."""
        for writer in self._writers:
            writer.close()


@pytest.mark.req("F72")
async def test_a_silent_network_is_noticed_by_the_probe(database_server: DatabaseServer) -> None:
    """A session that is swallowed without a FIN is given up when its probe is not answered in time."""
    parameters = conninfo.conninfo_to_dict(database_server.dsn())
    folder = str(parameters.get("host", ""))
    if not folder.startswith("/"):
        pytest.skip("the relay needs the server's unix socket")
    hole = BlackHole(f"{folder}/.s.PGSQL.{parameters.get('port', 5432)}")
    relay = await asyncio.start_server(hole.serve, "127.0.0.1", 0)
    port = relay.sockets[0].getsockname()[1]
    dsn = conninfo.make_conninfo("", **{**parameters, "host": "127.0.0.1", "port": port, "connect_timeout": 2})
    try:
        async with _ear(dsn) as ear:
            hole.swallows = True
            await eventually_async(lambda: not ear.listener.connected, what="the loss of the session")
            hole.swallows = False
            await eventually_async(lambda: ear.sweeps == 2, what="the second sweep")
            assert ear.listener.age_seconds < 5
    finally:
        hole.close()
        relay.close()


async def test_a_pooler_ends_the_listener(empty_database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a pooler nothing would ever be heard, so `run` refuses instead of being deaf."""

    def pooled(startup_process_id: int, actual_process_id: int) -> None:
        del startup_process_id, actual_process_id
        raise UnsupportedDatabase

    monkeypatch.setattr("seapost.database.listener.refuse_pooler", pooled)
    with pytest.raises(UnsupportedDatabase):
        await Listener(empty_database.dsn, on_notify=lambda _: None).run()


async def test_an_unreachable_server_is_tried_again(empty_database: TestDatabase) -> None:
    """A refused connection is no end: the listener stays disconnected, says why without secrets, and tries on."""
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    dsn = f"postgresql://app:s3cret@127.0.0.1:{port}/x"
    listener = Listener(dsn, on_notify=lambda _: None, times=QUICK)
    task = asyncio.create_task(listener.run())
    await eventually_async(lambda: listener.last_error, what="an error")
    assert not task.done()
    assert "s3cret" not in f"{listener!r} {listener.last_error}"
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    del empty_database


async def test_a_listener_without_declarations_says_so(empty_database: TestDatabase) -> None:
    """Declaring on a listener that was made without store functions is a mistake of the caller."""
    with pytest.raises(InvalidSetting):
        await Listener(empty_database.dsn, on_notify=lambda _: None).declare("billing")


def test_delays_grow_and_stay_below_their_limit() -> None:
    """Reconnect delays have full jitter below a doubling limit, however often it failed."""
    times = ListenerTimes(backoff_base_seconds=0.1, backoff_max_seconds=5)
    assert all(0 <= times.backoff_seconds(1) <= 0.1 for _ in range(50))
    assert all(0 <= times.backoff_seconds(10_000) <= 5 for _ in range(50))
