"""Switches back and forth while events are appended, delivered and read: nobody sees an empty or an older view."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from typing import Self

import pytest

from seapost.database.installer import GuardLevel
from seapost.database.pool import open_pool, open_sync_pool
from seapost.inbox.receive import Receiving
from seapost.model.outcome import Acknowledged
from seapost.projections import reading
from seapost.projections.cutover import Cutover
from seapost.projections.feed import Feed
from seapost.store import projection_feed
from seapost.transport.protocol import pack
from tests.kit import accounts as kit
from tests.kit.cutovers import SETTINGS
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.eventually import eventually
from tests.kit.kernel import Kernel

SWITCHES = 10
NEAR = 50
"""Events that a version may lack when its switch begins."""


@pytest.fixture
def database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database in which version 1 is read and version 2 is known."""
    database = database_server.create(GuardLevel.LEAN)
    kit.prepare_database(database, "1", "2")
    yield database
    database_server.drop(database)


class Traffic:
    """Appends, deliveries and reads, each in a thread, until told to stop."""

    def __init__(self, database: TestDatabase) -> None:
        self.database = database
        self.stop = threading.Event()
        self.appended: list[bytes] = []
        self.reads = 0
        self.backward: list[tuple[int, int]] = []
        self.errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,)) for work in (self._append, self._read, self._deliver)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(30)

    def _guarded(self, work: Callable[[Kernel], None]) -> None:
        try:
            with self.database.connect(autocommit=True) as connection:
                work(Kernel(connection))
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.errors.append(error)
            self.stop.set()

    def _append(self, kernel: Kernel) -> None:
        number = 0
        while not self.stop.wait(0.01):
            number += 1
            text = kit.moved(f"account-{number}", 1)
            kernel.append(text)
            self.appended.append(text)

    def _read(self, kernel: Kernel) -> None:
        seen = 0
        while not self.stop.is_set():
            found = kernel.value("select count(*) from public.balance")
            if found < seen:
                self.backward.append((seen, found))
            seen, self.reads = found, self.reads + 1

    def _deliver(self, kernel: Kernel) -> None:
        asyncio.run(self._delivering(kernel))

    async def _delivering(self, kernel: Kernel) -> None:
        versions = {version: kit.accounts(version).inbox for version in ("1", "2")}
        async with open_pool(self.database.dsn, part="inbox", role=kit.ROLE) as pool:
            with open_sync_pool(self.database.dsn, part="inbox", role=kit.ROLE) as threads:
                inboxes = {name: Receiving(inbox, pool, threads) for name, inbox in versions.items()}
                while not self.stop.is_set():
                    await self._deliver_some(kernel, inboxes)
                for inbox in inboxes.values():
                    await inbox.aclose()

    async def _deliver_some(self, kernel: Kernel, inboxes: dict[str, Receiving]) -> None:
        claims = kernel.claim(kit.DESTINATION, limit=20)
        for claim in claims:
            target = claim.member.projection
            assert target is not None
            (parcel,) = pack([claim])
            [outcome] = await inboxes[target.version].receive(parcel.request)
            if not isinstance(outcome, Acknowledged):
                _ = kernel.retry(claim)


@pytest.mark.req("F41", "ORD-16", "ORD-17", "SET-30", "SET-31", "NEG-51")
def test_readers_never_see_an_empty_or_older_view_while_versions_change_places(database: TestDatabase) -> None:
    """Ten switches under traffic: no read goes back, every event ends in both versions, each by its own receipts."""
    with ExitStack() as stack:
        admin = Kernel(stack.enter_context(database.connect(autocommit=True)))
        tables = {version: f"public.{kit.table_of(version)}" for version in ("1", "2")}
        admin.connection.execute(reading.switching_view("public.balance", kit.NAME, tables))
        traffic = stack.enter_context(Traffic(database))
        _ = eventually(
            lambda: admin.value("select count(*) from public.balance") > 20 or traffic.errors, what="traffic"
        )
        for number in range(SWITCHES):
            version = "2" if number % 2 == 0 else "1"
            _follow(database, version)
            candidate = kit.definition(str(100 + number), projection_version=version)
            admin.register(candidate)
            Cutover(
                kit.accounts(version),
                database.dsn,
                delivery_set_version=str(100 + number),
                definition_digest=sha256(candidate).digest(),
                actor="tester",
                settings=SETTINGS,
            ).run()
            assert admin.value("select seapost.projection_current('accounts')") == version
        traffic.stop.set()
        stack.pop_all().close()
    assert traffic.errors == []
    assert traffic.backward == []
    assert traffic.reads > SWITCHES


def _follow(database: TestDatabase, version: str) -> None:
    """Feed a version what it lacks, as its follower does."""
    if version == "2" and _state(database, version) == "building":
        assert kit.rebuild(database, kit.accounts(version)).state == "shadow"
    projection = kit.accounts(version)
    _ = projection.inbox.close()
    with open_sync_pool(database.dsn, part="feed", role=kit.ROLE) as pool:
        with pool.connection() as connection:
            token = projection_feed.claim(connection, target=projection.target, actor="feeder")
        feed = Feed(projection, pool, token)
        while feed.once() > NEAR:
            pass


def _state(database: TestDatabase, version: str) -> str:
    with database.connect(autocommit=True) as connection:
        return kit.state(Kernel(connection), version)
