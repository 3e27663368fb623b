"""The example of the README, run as it stands and carried all the way to the receipt."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import psycopg
import pytest

import seapost
from seapost.database.pool import open_pool, open_sync_pool
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.dispatcher.settings import DestinationSettings
from seapost.inbox.receive import Receiving
from seapost.outbox import routes
from seapost.transport.inprocess import InProcessTransport
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.documents import ROOT
from tests.kit.eventually import eventually_async

README: Final = ROOT / "README.md"
LINES_MAX: Final = 30
APPENDS: Final = "\nwith psycopg.connect(DSN)"


def _example() -> str:
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, "the README has one example"
    return str(blocks[0])


async def _route(database: TestDatabase, application: seapost.Application, *, activate: bool) -> None:
    async with await psycopg.AsyncConnection.connect(database.dsn, autocommit=True) as connection:
        found = await routes.plan(connection, application)
        step = routes.apply if activate else routes.register
        await step(connection, found.definition, source_release="readme", actor="tester")


async def _deliver(producer: TestDatabase, consumer: TestDatabase, inbox: seapost.Inbox) -> None:
    """Run a dispatcher until the delivery is acknowledged."""
    watching = await producer.connect_async(autocommit=True)

    async def acknowledged() -> bool:
        cursor = await watching.execute("select status from seapost.outbox_deliveries")
        return [row[0] for row in await cursor.fetchall()] == ["acknowledged"]

    async with (
        open_pool(producer.dsn, part="dispatcher", role="seapost_dispatcher") as pool,
        open_pool(consumer.dsn, part="inbox") as inbox_pool,
    ):
        with open_sync_pool(consumer.dsn, part="inbox-sync") as sync_pool:
            async with Receiving(inbox, inbox_pool, sync_pool) as receiving:
                transport = InProcessTransport(receiving.receive)
                destination = Destination(DestinationSettings(name=inbox.destination), transport)
                dispatcher = Dispatcher(pool, [destination])
                running = asyncio.create_task(dispatcher.run())
                await eventually_async(acknowledged, what="the acknowledgement")
                dispatcher.stop()
                await running


def test_the_example_is_short() -> None:
    """What a newcomer reads first fits on a screen."""
    code = [line for line in _example().splitlines() if line.strip()]
    assert len(code) <= LINES_MAX


@pytest.mark.req("GEN-16", "APP-04")
async def test_the_example_delivers(database_server: DatabaseServer, database: TestDatabase) -> None:
    """The order of the README is stored once, billed once, and acknowledged with the receipt of the consumer."""
    consumer = database_server.create(database.guards)
    try:
        producing, receiving = database.connect(autocommit=True), consumer.connect(autocommit=True)
        producing.execute("create table public.orders (id text primary key, cents int not null)")
        receiving.execute("create table public.invoices (order_id text primary key, cents int not null)")
        names: dict[str, Any] = {"DSN": database.dsn}
        declare, found, append = _example().partition(APPENDS)
        assert found
        exec(compile(declare, str(README), "exec", dont_inherit=True), names)  # noqa: S102 - our own page
        await _route(consumer, names["shop"], activate=False)
        await _route(database, names["shop"], activate=True)
        exec(compile(found + append, str(README), "exec", dont_inherit=True), names)  # noqa: S102 - our own page
        await _deliver(database, consumer, names["billing"])

        assert producing.execute("select * from orders").fetchall() == [("order-17", 1990)]
        assert receiving.execute("select * from invoices").fetchall() == [("order-17", 1990)]
        ours = producing.execute("select ack_receipt_key, ack_receipt_digest from seapost.outbox_deliveries").fetchall()
        theirs = receiving.execute("select receipt_ref, receipt_digest from seapost.inbox_receipts").fetchall()
        assert ours == theirs
        database.assert_places()
    finally:
        database_server.drop(consumer)
