"""The service that writes invoices. It is told by events, which may come twice, and in any order.

Each handler writes through a SQLAlchemy Session whose transaction holds the receipt as well, so an invoice without a
receipt, or a receipt without its invoice, cannot be.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

from fastapi import FastAPI, HTTPException
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

import seapost
from examples.shop.contracts import OrderCancelled, OrderPlaced
from seapost.adapters.sqlalchemy import SessionTransactions
from seapost.database.pool import open_pool
from seapost.inbox.receive import Receiving
from seapost.server.receiver import create_app as create_receiver
from seapost.transport.token import TokenVerifier, load_public_key

DSN_VARIABLE: Final = "BILLING_DSN"
KEY_VARIABLE: Final = "DISPATCHER_PUBLIC_KEY"
ISSUER: Final = "seapost"
MOUNT: Final = "/events"


class Base(DeclarativeBase):
    """Tables of this service."""


class Invoice(Base):
    """What one order costs; nothing once it is cancelled."""

    __tablename__ = "invoices"

    order_id: Mapped[str] = mapped_column(primary_key=True)
    cents: Mapped[int]
    revision: Mapped[int]


def create_inbox(sessions: sessionmaker[Session]) -> seapost.Inbox:
    """The consumer: its handlers, each in the transaction of a Session."""
    inbox = seapost.Inbox("billing", transactions=SessionTransactions(sessions))

    def keep_newest(session: Session, order_id: str, cents: int, revision: int) -> None:
        """Deliveries have no order: an older revision never overwrites a newer one."""
        new = insert(Invoice).values(order_id=order_id, cents=cents, revision=revision)
        session.execute(
            new.on_conflict_do_update(
                index_elements=[Invoice.order_id],
                set_={"cents": new.excluded.cents, "revision": new.excluded.revision},
                where=Invoice.revision < new.excluded.revision,
            )
        )

    @inbox.consumer(OrderPlaced)
    def bill(session: Session, event: OrderPlaced, received: seapost.Received) -> None:
        """Write the invoice."""
        keep_newest(session, event.order_id, event.cents, received.aggregate.revision)

    @inbox.consumer(OrderCancelled)
    def take_back(session: Session, event: OrderCancelled, received: seapost.Received) -> None:
        """Nothing is owed any more, whether or not the order has been heard of."""
        keep_newest(session, event.order_id, 0, received.aggregate.revision)

    return inbox


def create_app(dsn: str, *, verifier: TokenVerifier | None) -> FastAPI:
    """The service on one database; the dispatcher's calls come in below `/events`.

    Args:
        dsn: connection string of the service's own database, which holds the inbox's schema.
        verifier: checks the token of each call; None is for tests inside one process.
    """
    engine = create_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(dsn))
    sessions = sessionmaker(engine)
    pool = open_pool(dsn, part="inbox")
    receiving = Receiving(create_inbox(sessions), pool)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        Base.metadata.create_all(engine)
        async with pool, receiving:
            yield
        engine.dispose()

    app = FastAPI(title="Billing", lifespan=lifespan)
    app.mount(MOUNT, create_receiver([receiving], verifier=verifier))

    @app.get("/invoices/{order_id}")
    def invoice(order_id: str) -> dict[str, int]:
        """What an order costs."""
        with sessions() as session:
            found = session.get(Invoice, order_id)
        if found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "There is no invoice yet.")
        return {"cents": found.cents}

    return app


def from_environment() -> FastAPI:
    """The service on the database that `BILLING_DSN` names, called by the owner of `DISPATCHER_PUBLIC_KEY`."""
    key = load_public_key(Path(os.environ[KEY_VARIABLE]).read_bytes())
    return create_app(os.environ[DSN_VARIABLE], verifier=TokenVerifier([key], issuer=ISSUER))
