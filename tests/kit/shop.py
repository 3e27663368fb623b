"""A shop as a user has it: a folder with code, a producer's and a consumer's database, and the commands run there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from seapost.cli.exit_codes import ExitCode
from seapost.cli.keys import ensure_pair
from seapost.database.installer import GuardLevel
from tests.kit.commands import Finished, Running, seapost
from tests.kit.database import DatabaseServer, TestDatabase, open_directory
from tests.kit.eventually import eventually_row
from tests.kit.kernel import Kernel

LOCK: Final = 4_711
"""The advisory lock that an order called `slow` waits for in its handler; `SHOP` names it as well."""

SHOP: Final = """\
from seapost.contracts.events import Event
from seapost.inbox.inbox import Inbox
from seapost.model.errors import Reject
from seapost.outbox.application import Application


class OrderPlaced(Event, type="order.placed@1", producer="shop", aggregate="order"):
    order: str
    password: str = "hunter2"


application = Application("shop")
application.route(OrderPlaced, "billing")

inbox = Inbox("billing")


@inbox.consumer(OrderPlaced)
def bill(transaction, event):
    if event.order == "slow":
        transaction.execute("select pg_advisory_xact_lock(4711)")
    if event.order == "bad":
        raise Reject("there is no such order")
    transaction.execute("insert into public.invoice values (%s)", (event.order,))
"""


@dataclass(frozen=True, slots=True)
class Shop:
    """A producer and its consumer as a user has them: a folder with code, and two databases."""

    folder: Path
    producer: TestDatabase
    consumer: TestDatabase
    env: dict[str, str]
    connection: Connection
    invoices: Connection

    def run(self, *arguments: str, **env: str) -> Finished:
        """Run one command in the folder."""
        return seapost(*arguments, folder=self.folder, env={**self.env, **env})

    def done(self, *arguments: str, **env: str) -> Any:  # noqa: ANN401 - JSON is what the command made of it
        """Run one command that must succeed; its document."""
        finished = self.run(*arguments, "--json", **env)
        assert finished.code == ExitCode.DONE, finished
        return finished.document

    def start(self, *arguments: str, **env: str) -> Running:
        """Start a command that goes on."""
        return Running(*arguments, folder=self.folder, env={**self.env, **env})

    def serve(self) -> Running:
        """Start the receiver on a free port, as the consumer's role."""
        return self.start("serve", "shop:inbox", "--port", "0", SEAPOST_CONSUMER_ROLE="seapost_consumer")

    def dispatch(self, address: str, *arguments: str, **env: str) -> Running:
        """Start a dispatcher that delivers to this address, as the dispatcher's role."""
        return self.start(
            "dispatch",
            *arguments,
            "--destination",
            "billing",
            SEAPOST_DATABASE_ROLE="seapost_dispatcher",
            SEAPOST_DESTINATIONS_BILLING_URL=address,
            SEAPOST_DESTINATIONS_BILLING_ALLOW_NETWORKS="127.0.0.1",
            **env,
        )

    def append(self, *orders: str) -> list[UUID]:
        """Append one event for each order through the public call."""
        with psycopg.connect(self.producer.dsn) as connection:
            namespace = _shop_module(self.folder)
            return [
                namespace["append"](connection, namespace["OrderPlaced"](order=order), key=f"order-{place}", revision=1)
                for place, order in enumerate(orders)
            ]

    def wait(self, event_id: UUID, status: str) -> None:
        """Wait until the delivery has this status."""
        _ = eventually_row(
            self.connection,
            "select 1 from seapost.outbox_deliveries where event_id = %s and status = %s",
            (event_id, status),
        )

    def leases(self) -> int:
        """How many deliveries somebody holds."""
        row = self.connection.execute(
            "select count(*) from seapost.outbox_deliveries where status = 'leased'"
        ).fetchone()
        assert row is not None
        return row[0]


def _shop_module(folder: Path) -> dict[str, Any]:
    """The user's module, read anew, so that tests share no classes."""
    namespace: dict[str, Any] = {"__name__": "shop"}
    exec(compile((folder / "shop.py").read_text(encoding="utf-8"), "shop.py", "exec"), namespace)  # noqa: S102 - our own text
    exec("from seapost.outbox.append import append", namespace)  # noqa: S102 - as above
    return namespace


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give an empty folder that an embedded server's own user can enter."""
    directory = open_directory()
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def new_shop(folder: Path, database: TestDatabase, database_server: DatabaseServer) -> Iterator[Shop]:
    """Give a shop as its author leaves it: code and two migrated databases, nothing else prepared."""
    consumer = database_server.create(GuardLevel.LEAN)
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    invoices = consumer.connect(autocommit=True)
    invoices.execute("create table public.invoice (number text not null)")
    invoices.execute("grant insert on public.invoice to seapost_consumer")
    env = {"SEAPOST_DATABASE_DSN": database.dsn, "SEAPOST_CONSUMER_DSN": consumer.dsn}
    yield Shop(folder, database, consumer, env, database.connect(autocommit=True), invoices)
    database_server.drop(consumer)


@pytest.fixture
def shop(new_shop: Shop) -> Shop:
    """Give a prepared shop: keys, routes active at the producer and known to the consumer."""
    private, public = new_shop.folder / "private.pem", new_shop.folder / "public.pem"
    assert len(ensure_pair(private, public)) == 2
    new_shop.env["SEAPOST_WORKLOAD_PRIVATE_KEY_FILE"] = str(private)
    new_shop.env["SEAPOST_RECEIVER_PUBLIC_KEY_FILES"] = str(public)
    candidate = _shop_module(new_shop.folder)["application"].definition("1").candidate_bytes()
    for connection in (new_shop.connection, new_shop.invoices):
        _ = Kernel(connection).register(candidate)
    Kernel(new_shop.connection).activate("1", candidate)
    return new_shop
