"""`python -m examples.plain`: place orders, deliver them to billing, look at the invoices.

An embedded server holds two databases, one for orders and one for billing. The order and its event commit together; the
invoice and its receipt commit together; the dispatcher in between believes nothing but the receipt.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg

import seapost
from seapost.database.embedded import EmbeddedServer
from seapost.database.installer import migrate
from seapost.database.pool import open_pool, open_sync_pool
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.dispatcher.settings import DestinationSettings
from seapost.inbox.receive import Receiving
from seapost.outbox import routes
from seapost.transport.inprocess import InProcessTransport

ORDERS: Final = 50
SECONDS_MAX: Final = 30.0


class OrderPlaced(seapost.Event, type="order.placed@1", producer="orders", aggregate="order"):
    """What billing must learn."""

    order_id: str
    cents: int


application = seapost.Application("orders")
application.route(OrderPlaced, "billing")

billing = seapost.Inbox("billing")


@billing.consumer(OrderPlaced)
def bill(transaction: psycopg.Connection[Any], event: OrderPlaced) -> None:
    """Write the invoice; the receipt is in the same transaction."""
    transaction.execute("insert into invoices (order_id, cents) values (%s, %s)", (event.order_id, event.cents))


def place_order(connection: psycopg.Connection[Any], order_id: str, cents: int) -> None:
    """Write the order and its event; both commit with the caller's transaction, or neither."""
    connection.execute("insert into orders (id, cents) values (%s, %s)", (order_id, cents))
    seapost.append(connection, OrderPlaced(order_id=order_id, cents=cents), key=order_id, revision=1)


async def deliver(orders_dsn: str, billing_dsn: str, number: int) -> None:
    """Run a dispatcher until so many invoices are written, then stop it in order."""
    async with (
        open_pool(orders_dsn, part="dispatcher", role="seapost_dispatcher", size_max=8) as pool,
        open_pool(billing_dsn, part="inbox", role="seapost_consumer") as inbox_pool,
    ):
        with open_sync_pool(billing_dsn, part="inbox-threads", role="seapost_consumer") as threads:
            async with Receiving(billing, inbox_pool, threads) as receiving:
                destination = Destination(DestinationSettings(name="billing"), InProcessTransport(receiving.receive))
                dispatcher = Dispatcher(pool, [destination], listen_dsn=orders_dsn, listen_role="seapost_dispatcher")
                running = asyncio.create_task(dispatcher.run())
                async with asyncio.timeout(SECONDS_MAX), await psycopg.AsyncConnection.connect(billing_dsn) as looking:
                    await looking.set_autocommit(True)
                    while await count(looking) < number:  # noqa: ASYNC110 - the database is another process
                        await asyncio.sleep(0.05)
                dispatcher.stop()
                await running


async def count(connection: psycopg.AsyncConnection[Any]) -> int:
    """How many invoices there are."""
    [number] = await (await connection.execute("select count(*) from invoices")).fetchone() or (0,)
    return int(number)


async def declare(orders_dsn: str, billing_dsn: str) -> None:
    """Tell both databases the routes: billing's copy first, then the one that new events freeze."""
    definition = application.definition("1")
    async with await psycopg.AsyncConnection.connect(billing_dsn) as connection:
        await routes.register(connection, definition, source_release="example", actor="example")
    async with await psycopg.AsyncConnection.connect(orders_dsn) as connection:
        await routes.apply(connection, definition, source_release="example", actor="example")


def main() -> None:
    """Place, deliver, compare."""
    with databases() as (orders_dsn, billing_dsn):
        with psycopg.connect(orders_dsn) as connection:
            connection.execute("create table orders (id text primary key, cents int not null)")
        with psycopg.connect(billing_dsn) as connection:
            connection.execute("create table invoices (order_id text primary key, cents int not null)")
            connection.execute("grant insert on invoices to seapost_consumer")
        asyncio.run(declare(orders_dsn, billing_dsn))

        for number in range(ORDERS):
            with psycopg.connect(orders_dsn) as connection:
                place_order(connection, f"order-{number}", 100 + number)
        with psycopg.connect(orders_dsn) as connection:
            place_order(connection, "order-regretted", 999)
            connection.rollback()  # the event goes with the order

        asyncio.run(deliver(orders_dsn, billing_dsn, ORDERS))
        with psycopg.connect(orders_dsn) as one, psycopg.connect(billing_dsn) as other:
            orders = one.execute("select id, cents from orders order by 1").fetchall()
            invoices = other.execute("select order_id, cents from invoices order by 1").fetchall()
            waiting = one.execute("select from seapost.outbox_events where published_at is null").fetchall()
    print(f"orders={len(orders)} invoices={len(invoices)} equal={orders == invoices} unpublished={len(waiting)}")
    if orders != invoices or waiting:
        raise SystemExit(1)


@contextmanager
def databases() -> Generator[tuple[str, str]]:
    """A throw-away server with the database of the orders and the one of billing."""
    with tempfile.TemporaryDirectory(prefix="seapost-plain-") as directory:
        Path(directory).chmod(0o755)  # as root, the server runs as a user of its own and must get in
        with EmbeddedServer(Path(directory) / "data", durable=False) as server:
            with psycopg.connect(server.dsn(), autocommit=True) as connection:
                connection.execute("create database orders")
                connection.execute("create database billing")
            for name in ("orders", "billing"):
                migrate(server.dsn(name))
            yield server.dsn("orders"), server.dsn("billing")


if __name__ == "__main__":
    main()
